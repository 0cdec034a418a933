//! Intervals of residency: what takes bytes, and from which step to which.

use std::ops::Range;

use remat_plan::{OpId, Plan, Problem, Resident, Step, StorageId, StorageRole};
use typed_index_collections::TiVec;

use crate::Replay;
use crate::clock::Span;
use crate::memory::{Location, Memory};

/// Something that takes bytes for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interval {
    /// What it is.
    pub what: Resident,
    /// The steps during which it takes its bytes; not empty.
    pub steps: Range<usize>,
    /// Its bytes, more than none.
    pub bytes: u64,
    /// Whether it is what a run makes of a storage that is resident.
    pub is_duplicate: bool,
    /// Whether it stays to the end: a graph output.
    pub is_output: bool,
}

/// The intervals of a plan whose replay is `replay`, in the order of their first steps; at one step storages by their ids, then the workspace.
/// [They end](remat_plan#the-block-of-a-plan) with their storages, and those that leave by DMA with their transfers.
#[must_use]
pub fn intervals(problem: &Problem, plan: &Plan, replay: &Replay) -> Vec<Interval> {
    let mut walk = Walk {
        problem,
        found: Vec::new(),
        open: TiVec::from(vec![None; problem.storages.len()]),
    };
    let runs = Runs::of(plan, &replay.times);
    let mut memory = Memory::new(problem);
    for (position, &step) in plan.steps.iter().enumerate() {
        match step {
            Step::Compute(op) | Step::Recompute(op) => {
                let mut created: Vec<StorageId> = Memory::creates(problem, op).collect();
                created.sort_unstable();
                for storage in created {
                    walk.begin(position, storage, memory.location(storage) == Location::Resident);
                }
                walk.workspace(position, op);
                memory.run(op);
            }
            Step::PageIn(storage) => {
                walk.begin(position, storage, false);
                memory.relocate(storage, Location::Resident);
            }
            Step::Free(storage) => {
                walk.end(storage, position);
                memory.relocate(storage, Location::Absent);
            }
            Step::PageOut(storage) => {
                walk.end(storage, runs.end_of_transfer(position, replay.times[position]));
                memory.relocate(storage, Location::PagedOut);
            }
        }
    }
    for storage in problem.storages.keys() {
        walk.end(storage, plan.steps.len());
    }
    walk.found
}

/// The intervals so far.
struct Walk<'a> {
    problem: &'a Problem,
    found: Vec<Interval>,
    /// The interval of each storage that is resident.
    open: TiVec<StorageId, Option<usize>>,
}

impl Walk<'_> {
    /// A storage becomes resident, or a duplicate is made of one that is.
    fn begin(&mut self, position: usize, storage: StorageId, is_duplicate: bool) {
        let entry = &self.problem.storages[storage];
        if entry.bytes == 0 {
            return;
        }
        if !is_duplicate {
            self.open[storage] = Some(self.found.len());
        }
        self.found.push(Interval {
            what: Resident::Storage(storage),
            steps: position..position + 1,
            bytes: entry.bytes,
            is_duplicate,
            is_output: entry.role == StorageRole::LiveOut && !is_duplicate,
        });
    }

    fn workspace(&mut self, position: usize, op: OpId) {
        let bytes = self.problem.ops[op].workspace;
        if bytes > 0 {
            self.found.push(Interval {
                what: Resident::Workspace(op),
                steps: position..position + 1,
                bytes,
                is_duplicate: false,
                is_output: false,
            });
        }
    }

    /// The interval of a storage has ended before that step.
    fn end(&mut self, storage: StorageId, before: usize) {
        if let Some(index) = self.open[storage].take() {
            let steps = &mut self.found[index].steps;
            steps.end = steps.end.max(before);
        }
    }
}

/// Runs by when they begin, which is the order in which they stand.
struct Runs(Vec<(u64, usize)>);

impl Runs {
    fn of(plan: &Plan, times: &[Span]) -> Self {
        let steps = plan.steps.iter().zip(times).enumerate();
        let runs = steps.filter(|(_, (step, _))| matches!(step, Step::Compute(_) | Step::Recompute(_)));
        Self(runs.map(|(position, (_, span))| (span.start, position)).collect())
    }

    /// The first step at which what leaves with the transfer of the step at `position` takes no bytes any more.
    fn end_of_transfer(&self, position: usize, span: Span) -> usize {
        let is_moved = span.end > span.start;
        let begun = self.0.partition_point(|&(start, _)| start < span.end);
        let last_run = self.0[..begun].last().map_or(0, |&(_, run)| run + 1);
        last_run.max(position + usize::from(is_moved))
    }
}
