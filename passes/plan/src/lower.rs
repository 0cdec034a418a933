//! From a sequence of ops to a plan: views are run on demand, storages leave memory after their last use.

use remat_files::shown;
use thiserror::Error;
use typed_index_collections::TiVec;

use crate::{OpId, Plan, Problem, Step, StorageId, StorageRole, Structure, TensorId};

/// Why a sequence is not a schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LowerError {
    /// An op stands before an op whose result it reads.
    #[error("`{op}` reads `{tensor}`, which is not computed before it", op = shown(.op), tensor = shown(.tensor))]
    NotComputed {
        /// The reader.
        op: String,
        /// What it reads.
        tensor: String,
    },
    /// A storage is brought back that was not computed before, or that must not be moved.
    #[error("`{}` is paged in, but it was not computed before, or it is not transient", shown(.0))]
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
/// the next one, at once where there is no use. It is paged out if that next event fetches it, or if it was paged out before
/// and a later event fetches it, so that its copy stays; else it is freed. Lazy views run right before their first reader after each
/// run of what they look at. The result is valid but for budget, deadline, capacity and the number of computes, which only the
/// checker judges.
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
    let mut departures = Departures::of(problem, runs);
    for (position, step) in runs.iter().enumerate() {
        let op = match *step {
            Step::Compute(op) | Step::Recompute(op) => op,
            Step::PageIn(storage) => {
                departures.begin(storage, position, true);
                continue;
            }
            Step::Free(_) | Step::PageOut(_) => continue,
        };
        for &tensor in &problem.ops[op].reads {
            departures.touch(problem.tensors[tensor].storage, position);
        }
        for &tensor in &problem.ops[op].defines {
            let storage = problem.tensors[tensor].storage;
            let is_root = problem.storages[storage].root == tensor;
            if problem.storages[storage].role == StorageRole::Transient && is_root {
                departures.begin(storage, position, false);
            }
        }
    }
    let mut leave_after = departures.end();
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

/// Where storages leave memory.
struct Departures {
    last_use: TiVec<StorageId, Option<usize>>,
    /// The last page-in of each storage.
    last_fetch: TiVec<StorageId, Option<usize>>,
    /// Whether the storage was paged out.
    copied: TiVec<StorageId, bool>,
    /// The steps to take after each run.
    after: Vec<Vec<Step>>,
}

impl Departures {
    fn of(problem: &Problem, runs: &[Step]) -> Self {
        let mut last_fetch: TiVec<StorageId, Option<usize>> = TiVec::from(vec![None; problem.storages.len()]);
        for (position, step) in runs.iter().enumerate() {
            if let Step::PageIn(storage) = *step {
                last_fetch[storage] = Some(position);
            }
        }
        Self {
            last_use: TiVec::from(vec![None; problem.storages.len()]),
            last_fetch,
            copied: TiVec::from(vec![false; problem.storages.len()]),
            after: vec![Vec::new(); runs.len()],
        }
    }

    fn touch(&mut self, storage: StorageId, position: usize) {
        let last = &mut self.last_use[storage];
        if last.is_some() {
            *last = Some(position);
        }
    }

    /// An instance begins, by a fetch or a run: the one before it ends.
    fn begin(&mut self, storage: StorageId, position: usize, fetched: bool) {
        let Some(last) = self.last_use[storage].replace(position) else {
            return;
        };
        let fetched_later = || self.last_fetch[storage].is_some_and(|fetch| fetch > position);
        let stays = fetched || self.copied[storage] && fetched_later();
        self.copied[storage] = stays;
        self.after[last].push(if stays {
            Step::PageOut(storage)
        } else {
            Step::Free(storage)
        });
    }

    fn end(mut self) -> Vec<Vec<Step>> {
        for (storage, last) in self.last_use.iter_enumerated() {
            if let Some(position) = *last {
                self.after[position].push(Step::Free(storage));
            }
        }
        self.after
    }
}
