//! Small problems, op by op.

use remat_plan::{
    Accounting, AntiDependence, OpId, OrderMode, Paging, PagingMode, Problem, ProblemOp, ProblemStorage, ProblemTensor,
    StorageId, StorageRole, Structure, TensorId, Transfer, baseline,
};

/// Builds a problem op by op; as it starts, in free order and runtime accounting, without limits.
#[derive(Clone, Debug)]
pub struct Net(pub Problem);

/// Where a result lives; `T` names a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Place<T> {
    /// In a storage of its own, of so many bytes.
    New(StorageRole, u64),
    /// In the storage of this tensor.
    View(T),
}

/// A transient result of so many bytes.
#[must_use]
pub fn transient<T>(bytes: u64) -> Place<T> {
    Place::New(StorageRole::Transient, bytes)
}

/// A graph output of so many bytes.
#[must_use]
pub fn kept<T>(bytes: u64) -> Place<T> {
    Place::New(StorageRole::LiveOut, bytes)
}

impl Default for Net {
    fn default() -> Self {
        Self::new()
    }
}

impl Net {
    /// A problem without ops.
    #[must_use]
    pub fn new() -> Self {
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
            anti_dependences: Vec::new(),
        })
    }

    /// Adds a tensor of 1000 bytes from outside.
    #[must_use]
    pub fn input(mut self, name: &str) -> Self {
        self.tensor(name, Place::New(StorageRole::External, 1000), None);
        self
    }

    /// Adds an op that may run again, without workspace; operands and the bases of views by their names.
    #[must_use]
    pub fn op(mut self, name: &str, duration: u64, reads: &[&str], results: &[(&str, Place<&str>)]) -> Self {
        let reads = reads.iter().map(|name| tensor(&self.0, name)).collect();
        let mut results = results.iter();
        self.push(step(name, duration, reads), |net| {
            let &(name, place) = results.next()?;
            let place = match place {
                Place::New(role, bytes) => Place::New(role, bytes),
                Place::View(base) => Place::View(tensor(&net.0, base)),
            };
            Some((name.to_owned(), place))
        });
        self
    }

    /// Adds an op whose results are named by their numbers, `t0` being the first tensor of the problem.
    pub fn add(&mut self, op: ProblemOp, results: impl IntoIterator<Item = Place<TensorId>>) -> OpId {
        let mut results = results.into_iter();
        self.push(op, |net| Some((format!("t{}", net.0.tensors.len()), results.next()?)))
    }

    fn push(&mut self, mut op: ProblemOp, mut next: impl FnMut(&Self) -> Option<(String, Place<TensorId>)>) -> OpId {
        let id = self.0.ops.next_key();
        while let Some((name, place)) = next(self) {
            op.defines.push(self.tensor(&name, place, Some(id)));
        }
        self.0.ops.push(op);
        id
    }

    /// States that one op never runs after another one, both by their names.
    ///
    /// # Panics
    /// If there is no op of such a name.
    #[must_use]
    pub fn never_after(mut self, before: &str, after: &str) -> Self {
        let (before, after) = (op(&self.0, before), op(&self.0, after));
        self.0.anti_dependences.push(AntiDependence { before, after });
        self
    }

    /// Changes what is there so far.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Problem)) -> Self {
        change(&mut self.0);
        self
    }

    /// The problem.
    ///
    /// # Panics
    /// If it is not valid.
    #[must_use]
    pub fn done(self) -> Problem {
        let valid = self.0.validate();
        assert!(valid.is_ok(), "{valid:?}");
        self.0
    }

    fn tensor(&mut self, name: &str, place: Place<TensorId>, producer: Option<OpId>) -> TensorId {
        let root = self.0.tensors.next_key();
        let storage = match place {
            Place::New(role, bytes) => self.0.storages.push_and_get_key(ProblemStorage { root, bytes, role }),
            Place::View(base) => self.0.tensors[base].storage,
        };
        self.0.tensors.push(ProblemTensor {
            name: name.into(),
            storage,
            producer,
        });
        root
    }
}

/// An op without results that may run again and needs no workspace, for [`Net::add`].
#[must_use]
pub fn step(name: &str, duration: u64, reads: Vec<TensorId>) -> ProblemOp {
    ProblemOp {
        name: name.into(),
        duration,
        energy_pj: 0,
        workspace: 0,
        recomputable: true,
        reads,
        defines: Vec::new(),
    }
}

/// A problem in the setting of the papers: duration, bytes and operands of each op, which has one transient result; in fixed order.
#[must_use]
pub fn paper<R: AsRef<[usize]>>(ops: &[(u64, u64, R)]) -> Problem {
    let mut net = Net::new().with(|problem| {
        problem.accounting = Accounting::Paper;
        problem.order = OrderMode::Fixed;
    });
    for (id, (duration, bytes, reads)) in ops.iter().enumerate() {
        let mut reads: Vec<TensorId> = reads.as_ref().iter().map(|&read| TensorId::new(read)).collect();
        reads.sort_unstable();
        reads.dedup();
        net.add(step(&format!("op{id}"), *duration, reads), [transient(*bytes)]);
    }
    net.0
}

/// Five results of a chain that are all read again at the end, the last first: keeping all of them is expensive. Each op may run twice.
#[must_use]
pub fn fan() -> Problem {
    let mut ops: Vec<(u64, u64, Vec<usize>)> = vec![(3, 4, Vec::new())];
    ops.extend((0..4).map(|index| (2 + index as u64, 4, vec![index])));
    ops.push((1, 1, vec![4]));
    ops.extend((0..5).map(|index| (1, 1, vec![4 - index, 5 + index])));
    at_most_twice(paper(&ops))
}

/// The problem in which each op may run twice.
#[must_use]
pub fn at_most_twice(problem: Problem) -> Problem {
    Problem {
        max_computes: Some(2),
        ..problem
    }
}

/// The problem without its order.
#[must_use]
pub fn in_free_order(problem: Problem) -> Problem {
    Problem {
        order: OrderMode::Free,
        ..problem
    }
}

/// Peak of running every op once.
///
/// # Panics
/// If the problem is not valid.
#[must_use]
pub fn baseline_peak(problem: &Problem) -> u64 {
    let unlimited = Problem {
        budget: None,
        deadline: None,
        ..problem.clone()
    };
    let replayed = remat_verify::replay(&unlimited, &baseline(problem));
    replayed.expect("the baseline is valid").peak
}

/// The most bytes that one op needs.
#[must_use]
pub fn least_budget(problem: &Problem) -> u64 {
    let worst = problem.bottleneck(&Structure::of(problem));
    worst.map_or(0, |worst| worst.bytes)
}

/// The problem with a budget at a share of the way from what one op needs to the peak of running every op once.
#[must_use]
pub fn with_budget(mut problem: Problem, hundredths: u64) -> Problem {
    let least = least_budget(&problem);
    let room = baseline_peak(&problem).saturating_sub(least);
    problem.budget = Some(least + room * hundredths / 100);
    problem
}

/// A synchronous second memory without end: a nanosecond per byte out, two per byte in.
#[must_use]
pub fn paging() -> Paging {
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
#[must_use]
pub fn example() -> Net {
    Net::new()
        .input("x")
        .op("conv", 10, &["x"], &[("a", transient(100))])
        .op("flat", 1, &["a"], &[("v", Place::View("a"))])
        .op("gemm", 20, &["v"], &[("b", transient(200))])
        .op("relu", 5, &["b"], &[("c", transient(100))])
        .op("add", 5, &["v", "c"], &[("y", kept(100))])
}

/// The op of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn op(problem: &Problem, name: &str) -> OpId {
    let found = problem.ops.iter_enumerated().find(|(_, op)| op.name == name);
    found.unwrap_or_else(|| panic!("no op `{name}`")).0
}

/// The tensor of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn tensor(problem: &Problem, name: &str) -> TensorId {
    let found = problem
        .tensors
        .iter_enumerated()
        .find(|(_, tensor)| tensor.name == name);
    found.unwrap_or_else(|| panic!("no tensor `{name}`")).0
}

/// The storage of the tensor of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn storage(problem: &Problem, name: &str) -> StorageId {
    problem.tensors[tensor(problem, name)].storage
}
