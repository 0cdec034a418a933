//! From a sequence of ops to a plan: views are run on demand, storages leave memory after their last use.

use thiserror::Error;
use typed_index_collections::TiVec;

use crate::{OpId, Plan, Problem, Step, StorageId, StorageRole, Structure, TensorId};

/// Why a sequence is not a schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LowerError {
    /// An op stands before an op whose result it reads.
    #[error("`{op}` reads `{tensor}`, which is not computed before it")]
    NotComputed {
        /// The reader.
        op: String,
        /// What it reads.
        tensor: String,
    },
    /// A storage is brought back that was not computed before, or that must not be moved.
    #[error("`{0}` is paged in, but it was not computed before, or it is not transient")]
    NotPaged(String),
}

/// What brings storages into memory. Their instances last from one event to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// An op runs.
    Run(OpId),
    /// A storage comes back from the second memory.
    Fetch(StorageId),
}

/// The plan that runs the scheduled ops in the order of `sequence` (an op that stands there again is recomputed).
///
/// [`lower_events`] without paging.
///
/// # Errors
/// [`LowerError`] if an op stands before an op whose result it reads.
pub fn lower_sequence(
    problem: &Problem,
    structure: &Structure,
    sequence: impl IntoIterator<Item = OpId>,
) -> Result<Plan, LowerError> {
    lower_events(problem, structure, sequence.into_iter().map(Event::Run))
}

/// The plan in which the scheduled ops run and storages come back in the order of `events`.
///
/// A use is served by the latest event before it that brought its storage into memory: a storage leaves after its last use before
/// the next one, at once where there is no use. It is paged out if that next event fetches it, else freed. Lazy views run right
/// before their first reader after each run of what they look at. The result is valid but for budget, deadline, capacity and the
/// number of computes, which only the checker judges.
///
/// # Errors
/// [`LowerError`] if an op stands before an op whose result it reads, or a storage is fetched that cannot be there.
pub fn lower_events(
    problem: &Problem,
    structure: &Structure,
    events: impl IntoIterator<Item = Event>,
) -> Result<Plan, LowerError> {
    let mut expansion = Expansion::new(problem, structure);
    for event in events {
        match event {
            Event::Run(op) => expansion.run(op)?,
            Event::Fetch(storage) => expansion.fetch(storage)?,
        }
    }
    Ok(with_departures(problem, &expansion.runs))
}

/// The plan that runs every op once, in reference order: what a runtime does without rematerialization.
#[must_use]
pub fn baseline(problem: &Problem) -> Plan {
    let structure = Structure::of(problem);
    lower_sequence(problem, &structure, structure.scheduled()).expect("the reference order is topological")
}

/// Runs ops in order and inserts lazy views where they are needed.
struct Expansion<'a> {
    problem: &'a Problem,
    structure: &'a Structure,
    runs: Vec<Step>,
    ran: TiVec<OpId, bool>,
    /// How often the memory of each storage was created anew.
    epoch: TiVec<StorageId, u32>,
    /// The epoch of its storage in which each tensor was last defined.
    defined: TiVec<TensorId, Option<u32>>,
}

impl<'a> Expansion<'a> {
    fn new(problem: &'a Problem, structure: &'a Structure) -> Self {
        Self {
            problem,
            structure,
            runs: Vec::with_capacity(problem.ops.len()),
            ran: TiVec::from(vec![false; problem.ops.len()]),
            epoch: TiVec::from(vec![0; problem.storages.len()]),
            defined: TiVec::from(vec![None; problem.tensors.len()]),
        }
    }

    fn is_defined(&self, tensor: TensorId) -> bool {
        let producer = self.problem.tensors[tensor].producer;
        producer.is_none() || self.defined[tensor] == Some(self.epoch[self.problem.tensors[tensor].storage])
    }

    /// Runs the lazy views `op` needs, deepest first, then `op`. Chains of views may be long, so the stack is explicit.
    fn run(&mut self, op: OpId) -> Result<(), LowerError> {
        let mut stack = vec![op];
        while let Some(&top) = stack.last() {
            let missing = self.problem.ops[top]
                .reads
                .iter()
                .copied()
                .find(|&t| !self.is_defined(t));
            let Some(tensor) = missing else {
                self.emit(top);
                stack.pop();
                continue;
            };
            match self.problem.tensors[tensor].producer {
                Some(view) if self.structure.is_lazy(view) => stack.push(view),
                _ => {
                    let (op, tensor) = (&self.problem.ops[op].name, &self.problem.tensors[tensor].name);
                    return Err(LowerError::NotComputed {
                        op: op.clone(),
                        tensor: tensor.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn fetch(&mut self, storage: StorageId) -> Result<(), LowerError> {
        let entry = &self.problem.storages[storage];
        if self.epoch[storage] == 0 || entry.role != StorageRole::Transient {
            return Err(LowerError::NotPaged(self.problem.storage_name(storage).to_owned()));
        }
        self.runs.push(Step::PageIn(storage));
        Ok(())
    }

    fn emit(&mut self, op: OpId) {
        let again = std::mem::replace(&mut self.ran[op], true);
        self.runs
            .push(if again { Step::Recompute(op) } else { Step::Compute(op) });
        for &storage in self.structure.owns(op) {
            if !again || self.problem.storages[storage].role == StorageRole::Transient {
                self.epoch[storage] += 1;
            }
        }
        for &tensor in &self.problem.ops[op].defines {
            self.defined[tensor] = Some(self.epoch[self.problem.tensors[tensor].storage]);
        }
    }
}

/// Adds a `Free`, or a `PageOut` where a `PageIn` follows, after the last use of every instance of a transient storage.
fn with_departures(problem: &Problem, runs: &[Step]) -> Plan {
    let mut last_use: TiVec<StorageId, Option<usize>> = TiVec::from(vec![None; problem.storages.len()]);
    let mut leave_after: Vec<Vec<Step>> = vec![Vec::new(); runs.len()];
    for (position, step) in runs.iter().enumerate() {
        let op = match *step {
            Step::Compute(op) | Step::Recompute(op) => op,
            Step::PageIn(storage) => {
                if let Some(last) = last_use[storage].replace(position) {
                    leave_after[last].push(Step::PageOut(storage));
                }
                continue;
            }
            Step::Free(_) | Step::PageOut(_) => continue,
        };
        for &tensor in &problem.ops[op].reads {
            let last = &mut last_use[problem.tensors[tensor].storage];
            if last.is_some() {
                *last = Some(position);
            }
        }
        for &tensor in &problem.ops[op].defines {
            let storage = problem.tensors[tensor].storage;
            let is_root = problem.storages[storage].root == tensor;
            if problem.storages[storage].role != StorageRole::Transient || !is_root {
                continue;
            }
            if let Some(last) = last_use[storage].replace(position) {
                leave_after[last].push(Step::Free(storage));
            }
        }
    }
    for (storage, last) in last_use.iter_enumerated() {
        if let Some(position) = *last {
            leave_after[position].push(Step::Free(storage));
        }
    }
    let mut steps = Vec::with_capacity(2 * runs.len());
    for (&step, leaving) in runs.iter().zip(&mut leave_after) {
        steps.push(step);
        // Frees first: what follows them finds more memory.
        leaving.sort_unstable_by_key(|step| match *step {
            Step::Free(storage) => (0, storage),
            Step::PageOut(storage) | Step::PageIn(storage) => (1, storage),
            Step::Compute(_) | Step::Recompute(_) => (2, StorageId::new(0)),
        });
        steps.append(leaving);
    }
    Plan { steps }
}
