//! Small problems and plans, as short texts.

use remat_plan::{
    Accounting, OpId, OrderMode, Paging, PagingMode, Plan, PlanFile, Problem, ProblemOp, ProblemStorage, ProblemTensor,
    Step, StorageId, StorageRole, TensorId, Transfer,
};

/// Builds a problem op by op.
pub(crate) struct Net(pub(crate) Problem);

/// Where a result lives.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// In a storage of its own.
    New(StorageRole, u64),
    /// In the storage of this tensor.
    View(&'a str),
}

/// A transient result of so many bytes.
pub(crate) fn transient(bytes: u64) -> Place<'static> {
    Place::New(StorageRole::Transient, bytes)
}

/// A graph output of so many bytes.
pub(crate) fn kept(bytes: u64) -> Place<'static> {
    Place::New(StorageRole::Kept, bytes)
}

impl Net {
    pub(crate) fn new() -> Self {
        Self(Problem {
            name: "net".into(),
            accounting: Accounting::Runtime,
            order: OrderMode::Free,
            max_computes: None,
            budget: None,
            paging: None,
            objective: remat_plan::Objective::Time,
            deadline: None,
            ops: Vec::new().into(),
            tensors: Vec::new().into(),
            storages: Vec::new().into(),
        })
    }

    pub(crate) fn input(mut self, name: &str) -> Self {
        self.tensor(name, Place::New(StorageRole::External, 1000), None);
        self
    }

    pub(crate) fn op(mut self, name: &str, duration: u64, reads: &[&str], results: &[(&str, Place<'_>)]) -> Self {
        let id = self.0.ops.next_key();
        let reads = reads.iter().map(|name| tensor(&self.0, name)).collect();
        let defines = results
            .iter()
            .map(|&(name, place)| self.tensor(name, place, Some(id)))
            .collect();
        self.0.ops.push(ProblemOp {
            name: name.into(),
            duration,
            energy_pj: 0,
            workspace: 0,
            recomputable: true,
            reads,
            defines,
        });
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Problem)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn done(self) -> Problem {
        self.0.validate().unwrap();
        self.0
    }

    fn tensor(&mut self, name: &str, place: Place<'_>, producer: Option<OpId>) -> TensorId {
        let root = self.0.tensors.next_key();
        let storage = match place {
            Place::New(role, bytes) => self.0.storages.push_and_get_key(ProblemStorage { root, bytes, role }),
            Place::View(base) => self.0.tensors[tensor(&self.0, base)].storage,
        };
        self.0.tensors.push(ProblemTensor {
            name: name.into(),
            storage,
            producer,
        });
        root
    }
}

/// A synchronous second memory without end: a nanosecond per byte out, two per byte in.
pub(crate) fn paging() -> Paging {
    let way = |bytes_per_s| Transfer {
        latency_ns: 0,
        bytes_per_s,
        energy_pj: 0,
        energy_pj_per_byte: 0,
    };
    Paging {
        mode: PagingMode::Sync,
        capacity: None,
        page_out: way(1_000_000_000),
        page_in: way(500_000_000),
    }
}

/// The network that the long texts of the rules speak about.
pub(crate) fn example() -> Net {
    Net::new()
        .input("x")
        .op("conv", 10, &["x"], &[("a", transient(100))])
        .op("flat", 1, &["a"], &[("v", Place::View("a"))])
        .op("gemm", 20, &["v"], &[("b", transient(200))])
        .op("relu", 5, &["b"], &[("c", transient(100))])
        .op("add", 5, &["v", "c"], &[("y", kept(100))])
}

/// The valid plan for [`example`] with a recompute: peak 300, duration 52.
pub(crate) const RECOMPUTING: &str = "compute conv, compute flat, compute gemm, free a, compute relu, free b, recompute conv, \
     recompute flat, compute add, free a, free c";

/// The valid plan for [`example`] without one: peak 400, duration 41.
pub(crate) const PLAIN: &str =
    "compute conv, compute flat, compute gemm, compute relu, free b, compute add, free a, free c";

pub(crate) fn op(problem: &Problem, name: &str) -> OpId {
    let found = problem.ops.iter_enumerated().find(|(_, op)| op.name == name);
    found.unwrap_or_else(|| panic!("no op `{name}`")).0
}

pub(crate) fn tensor(problem: &Problem, name: &str) -> TensorId {
    let found = problem
        .tensors
        .iter_enumerated()
        .find(|(_, tensor)| tensor.name == name);
    found.unwrap_or_else(|| panic!("no tensor `{name}`")).0
}

pub(crate) fn storage(problem: &Problem, name: &str) -> StorageId {
    problem.tensors[tensor(problem, name)].storage
}

/// A plan from `compute a, recompute b, free c, page_out d, page_in d`.
pub(crate) fn plan(problem: &Problem, text: &str) -> Plan {
    let step = |step: &str| {
        let (kind, name) = step.trim().split_once(' ').unwrap();
        match kind {
            "compute" => Step::Compute(op(problem, name)),
            "recompute" => Step::Recompute(op(problem, name)),
            "free" => Step::Free(storage(problem, name)),
            "page_out" => Step::PageOut(storage(problem, name)),
            "page_in" => Step::PageIn(storage(problem, name)),
            _ => panic!("no step `{step}`"),
        }
    };
    Plan {
        steps: text.split(',').map(step).collect(),
    }
}

/// A plan file with these claims and without certificate.
pub(crate) fn file(problem: &Problem, plan: &Plan, peak_bytes: u64, duration: u64) -> PlanFile {
    PlanFile {
        format: remat_plan::PLAN_FORMAT.into(),
        model: problem.name.clone(),
        accounting: problem.accounting,
        order: problem.order,
        budget_bytes: problem.budget,
        peak_bytes,
        duration,
        energy_pj: None,
        objective: problem.objective,
        deadline: problem.deadline,
        baseline_peak_bytes: 0,
        baseline_duration: problem.total_duration(),
        setup: None,
        certificate: None,
        steps: PlanFile::records(problem, plan),
    }
}
