//! Problems with fewer ops, and ops with fewer operands.

use std::collections::BTreeMap;
use std::ops::Range;

use remat::plan::{
    AntiDependence, Objective, OpId, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageId, StorageRole,
    TensorId,
};

use super::{Subject, outside};

/// A saved problem.
#[derive(Clone)]
pub(crate) struct ProblemSubject(pub(crate) Problem);

/// Positions in [`Subject::KINDS`].
const OPS: usize = 0;
const RESULTS: usize = 1;
const READS: usize = 2;
const ANTI_DEPENDENCES: usize = 3;

impl Subject for ProblemSubject {
    const KINDS: &'static [&'static str] = &["ops", "results", "operands", "anti-dependences", "limits"];

    fn count(&self, kind: usize) -> usize {
        let ops = &self.0.ops;
        match kind {
            OPS => ops.len(),
            RESULTS => ops.iter().map(|op| op.defines.len()).sum(),
            READS => ops.iter().map(|op| op.reads.len()).sum(),
            ANTI_DEPENDENCES => self.0.anti_dependences.len(),
            _ => limits(&self.0).len(),
        }
    }

    fn without(&self, kind: usize, parts: Range<usize>) -> Option<Self> {
        let mut problem = self.0.clone();
        match kind {
            OPS => {
                let kept: Vec<OpId> = outside(&problem.ops.keys().collect::<Vec<_>>(), &parts);
                problem = Rebuild::of(&problem, &kept);
            }
            RESULTS | READS => {
                let mut at = 0;
                for op in &mut problem.ops {
                    let list = if kind == RESULTS {
                        &mut op.defines
                    } else {
                        &mut op.reads
                    };
                    list.retain(|_| {
                        at += 1;
                        !parts.contains(&(at - 1))
                    });
                }
                problem = Rebuild::of(&problem, &problem.ops.keys().collect::<Vec<_>>());
            }
            ANTI_DEPENDENCES => problem.anti_dependences = outside(&problem.anti_dependences, &parts),
            _ => {
                for limit in &limits(&problem)[parts] {
                    limit(&mut problem);
                }
            }
        }
        let reduced = Self(problem);
        reduced.is_valid().then_some(reduced)
    }

    fn numbers(&mut self) -> Vec<&mut u64> {
        let problem = &mut self.0;
        let ops = problem.ops.iter_mut();
        let mut numbers: Vec<&mut u64> = ops
            .flat_map(|op| [&mut op.duration, &mut op.energy_pj, &mut op.workspace])
            .collect();
        numbers.extend(problem.storages.iter_mut().map(|storage| &mut storage.bytes));
        numbers.extend(problem.budget.as_mut());
        numbers.extend(problem.deadline.as_mut());
        if let Some(paging) = problem.paging.as_mut() {
            numbers.extend(paging.capacity.as_mut());
            for way in [&mut paging.page_out, &mut paging.page_in] {
                numbers.extend([
                    &mut way.latency_ns,
                    &mut way.bytes_per_s,
                    &mut way.energy_pj,
                    &mut way.energy_pj_per_byte,
                ]);
            }
        }
        numbers
    }

    fn is_valid(&self) -> bool {
        self.0.validate().is_ok()
    }

    fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(self.0.to_json().into_bytes())
    }
}

/// Takes a limit of a problem away.
type Take = fn(&mut Problem);

/// What takes each limit away that a problem has.
fn limits(problem: &Problem) -> Vec<Take> {
    let mut takes: Vec<Take> = Vec::new();
    if problem.budget.is_some() {
        takes.push(|problem| problem.budget = None);
    }
    if problem.max_computes.is_some() {
        takes.push(|problem| problem.max_computes = None);
    }
    if problem.deadline.is_some() {
        takes.push(|problem| problem.deadline = None);
    }
    if problem.objective != Objective::Time {
        takes.push(|problem| problem.objective = Objective::Time);
    }
    if problem.paging.is_some() {
        takes.push(|problem| problem.paging = None);
    }
    takes
}

/// A problem built anew from some of the ops of another, whose lists of operands and results may be shorter than its tables say.
struct Rebuild<'a> {
    old: &'a Problem,
    new: Problem,
    tensors: BTreeMap<TensorId, TensorId>,
    storages: BTreeMap<StorageId, StorageId>,
}

impl<'a> Rebuild<'a> {
    fn of(old: &'a Problem, kept: &[OpId]) -> Problem {
        let mut rebuild = Self {
            old,
            new: Problem {
                ops: Vec::new().into(),
                tensors: Vec::new().into(),
                storages: Vec::new().into(),
                anti_dependences: Vec::new(),
                ..old.clone()
            },
            tensors: BTreeMap::new(),
            storages: BTreeMap::new(),
        };
        for &op in kept {
            rebuild.op(op);
        }
        let new = |old: OpId| kept.iter().position(|&op| op == old).map(OpId::new);
        let pairs = old.anti_dependences.iter();
        let pairs = pairs.filter_map(|pair| {
            let (before, after) = (new(pair.before)?, new(pair.after)?);
            Some(AntiDependence { before, after })
        });
        rebuild.new.anti_dependences = pairs.collect();
        rebuild.new
    }

    fn op(&mut self, op: OpId) {
        let entry = &self.old.ops[op];
        let mut reads: Vec<TensorId> = Vec::new();
        for &read in &entry.reads {
            let read = self.operand(read);
            if !reads.contains(&read) {
                reads.push(read);
            }
        }
        let id = self.new.ops.next_key();
        let defines = entry.defines.iter();
        let defines = defines.map(|&result| self.result(result, id, &reads)).collect();
        self.new.ops.push(ProblemOp {
            reads,
            defines,
            ..entry.clone()
        });
    }

    /// What is read in the place of a tensor: itself; what a view that is left out looks at; memory of the caller.
    fn operand(&mut self, tensor: TensorId) -> TensorId {
        let mut tensor = tensor;
        while let Some(base) = self.base(tensor) {
            tensor = base;
        }
        if let Some(&known) = self.tensors.get(&tensor) {
            return known;
        }
        let old = self.old.tensors[tensor].storage;
        let storage = match self.storages.get(&old) {
            // Only memory of the caller is shared with what no op makes.
            Some(&storage) if self.new.storages[storage].role == StorageRole::External => storage,
            _ => self.storage(old, StorageRole::External),
        };
        self.tensor(tensor, storage, None)
    }

    /// For a view that no op has made so far: what its op reads in the same storage.
    fn base(&self, tensor: TensorId) -> Option<TensorId> {
        let entry = &self.old.tensors[tensor];
        let is_view = self.old.storages[entry.storage].root != tensor;
        if self.tensors.contains_key(&tensor) || !is_view {
            return None;
        }
        let mut reads = self.old.ops[entry.producer?].reads.iter().copied();
        reads.find(|&read| self.old.tensors[read].storage == entry.storage)
    }

    /// A result: a root, or a view of something the op reads or makes; else it gets memory of its own.
    fn result(&mut self, tensor: TensorId, op: OpId, reads: &[TensorId]) -> TensorId {
        let old = self.old.tensors[tensor].storage;
        let shared = self.storages.get(&old).copied().filter(|&storage| {
            let root = &self.new.tensors[self.new.storages[storage].root];
            let is_read = reads.iter().any(|&read| self.new.tensors[read].storage == storage);
            self.old.storages[old].root != tensor && (is_read || root.producer == Some(op))
        });
        let role = self.old.storages[old].role;
        let storage = shared.unwrap_or_else(|| self.storage(old, role));
        self.tensor(tensor, storage, Some(op))
    }

    /// New memory of the size of an old one; the tensor that is added next roots it.
    fn storage(&mut self, old: StorageId, role: StorageRole) -> StorageId {
        let new = self.new.storages.push_and_get_key(ProblemStorage {
            root: self.new.tensors.next_key(),
            bytes: self.old.storages[old].bytes,
            role,
        });
        self.storages.insert(old, new);
        new
    }

    fn tensor(&mut self, old: TensorId, storage: StorageId, producer: Option<OpId>) -> TensorId {
        let new = self.new.tensors.push_and_get_key(ProblemTensor {
            name: self.old.tensors[old].name.clone(),
            storage,
            producer,
        });
        self.tensors.insert(old, new);
        new
    }
}
