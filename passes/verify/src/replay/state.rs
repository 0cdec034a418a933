//! What a replay knows at a step: memory, clock, figures and violations so far.

use remat_plan::{Objective, OpId, Plan, Problem, Step, StorageId, StorageRole, TensorId};
use typed_index_collections::TiVec;

use crate::Code;
use crate::clock::{Clock, Span};
use crate::memory::{Location, Memory};
use crate::rejection::Findings;
use crate::text::Bytes;

/// Memory at one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct StepTrace {
    /// Position of the step, from 0.
    pub step: usize,
    /// Bytes that count while it happens.
    pub during: u64,
    /// Bytes of the storages that are resident afterwards.
    pub after: u64,
}

/// The figures of a plan that keeps every rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replay {
    /// Largest number of bytes that count at a step.
    pub peak: u64,
    /// The first step at which the peak is reached; 0 for a plan without steps.
    pub peak_step: usize,
    /// Time until the last step has ended, in the unit of the problem.
    pub duration: u64,
    /// Time of all recomputes.
    pub recompute_duration: u64,
    /// Time of all transfers, which may overlap runs.
    pub paging_duration: u64,
    /// Energy of all runs and transfers, in picojoules.
    pub energy: u64,
    /// The part of it that goes into recomputes.
    pub recompute_energy: u64,
    /// The part of it that goes into transfers.
    pub paging_energy: u64,
    /// Largest number of bytes in the second memory.
    pub second_peak: u64,
    /// How many steps run an op again.
    pub recomputes: usize,
    /// Memory at each step.
    pub trace: Vec<StepTrace>,
    /// When each step begins and ends; for paging steps, when their transfers do.
    pub times: Vec<Span>,
}

impl Replay {
    /// What the problem's objective measures.
    #[must_use]
    pub fn objective(&self, objective: Objective) -> u64 {
        match objective {
            Objective::Time => self.duration,
            Objective::Energy => self.energy,
            Objective::Peak => self.peak,
        }
    }
}

/// A plan that is being replayed, and what was found so far.
pub(super) struct Replayer<'a> {
    pub(super) problem: &'a Problem,
    pub(super) budget: Option<u64>,
    pub(super) memory: Memory<'a>,
    pub(super) clock: Clock,
    pub(super) pages: Pages,
    /// Bytes of the resident storages.
    pub(super) resident: u64,
    /// How often each op ran.
    pub(super) runs: TiVec<OpId, u32>,
    /// Of the ops that create memory and ran, the last one in reference order.
    pub(super) latest: Option<OpId>,
    /// For each op those after which it must never run.
    pub(super) never_after: TiVec<OpId, Vec<OpId>>,
    /// How often each storage came or went.
    pub(super) changes: TiVec<StorageId, u64>,
    /// The number of changes of its storage at which the loss of each tensor was reported.
    pub(super) reported: TiVec<TensorId, Option<u64>>,
    pub(super) replay: Replay,
    pub(super) findings: Findings,
}

impl<'a> Replayer<'a> {
    pub(super) fn new(problem: &'a Problem, plan: &Plan, budget: Option<u64>) -> Self {
        let mut never_after: TiVec<OpId, Vec<OpId>> = TiVec::from(vec![Vec::new(); problem.ops.len()]);
        for pair in &problem.anti_dependences {
            never_after[pair.before].push(pair.after);
        }
        Self {
            problem,
            budget,
            never_after,
            memory: Memory::new(problem),
            clock: Clock::default(),
            pages: Pages::of(problem, plan),
            resident: 0,
            runs: TiVec::from(vec![0; problem.ops.len()]),
            latest: None,
            changes: TiVec::from(vec![0; problem.storages.len()]),
            reported: TiVec::from(vec![None; problem.tensors.len()]),
            replay: Replay::default(),
            findings: Findings::default(),
        }
    }

    /// Bytes in memory now.
    pub(super) fn memory_now(&self) -> u64 {
        self.clock
            .memory_at(self.clock.now, self.resident)
            .unwrap_or(self.resident)
    }

    pub(super) fn note_peak(&mut self, position: usize, during: u64) {
        if during > self.replay.peak {
            self.replay.peak = during;
            self.replay.peak_step = position;
        }
    }

    pub(super) fn check_budget(&mut self, position: usize, name: &str, during: u64) {
        let Some(budget) = self.budget.filter(|&budget| during > budget) else {
            return;
        };
        self.findings.add(Code::V006, Some(position), || {
            let (need, budget) = (Bytes(during), Bytes(budget));
            format!("budget exceeded at step {position} (`{name}`): need {need}, budget {budget}")
        });
    }

    /// Whether the plan may free or move the storage at all.
    pub(super) fn may_give_up(&mut self, position: usize, storage: StorageId, verb: &str) -> bool {
        let why = match self.problem.storages[storage].role {
            StorageRole::Transient => return true,
            StorageRole::LiveOut => "holds a graph output",
            StorageRole::External => "belongs to the caller or the session",
        };
        let name = self.problem.storage_name(storage);
        self.findings.add(Code::V009, Some(position), || {
            format!("step {position} {verb} `{name}`, which {why}")
        });
        false
    }

    /// Takes a resident storage out of memory.
    pub(super) fn leave(&mut self, storage: StorageId, to: Location) {
        self.memory.relocate(storage, to);
        self.changes[storage] += 1;
        self.resident = self.resident.saturating_sub(self.problem.storages[storage].bytes);
    }

    /// The number, or the largest one with a violation where it does not fit.
    pub(super) fn fits(&mut self, position: usize, name: &str, what: &str, value: Option<u64>) -> u64 {
        value.unwrap_or_else(|| {
            self.findings.add(Code::V016, Some(position), || {
                format!("the {what} up to step {position} (`{name}`) does not fit 64 bits")
            });
            u64::MAX
        })
    }
}

/// What the second memory holds, and when storages come from it.
pub(super) struct Pages {
    /// For each storage the steps that would take it out of memory, the last one first, and whether they page it out.
    pub(super) exits: TiVec<StorageId, Vec<(usize, bool)>>,
    /// Whether the second memory has a copy of each storage.
    pub(super) copied: TiVec<StorageId, bool>,
    /// When the last page-in of each storage has ended.
    pub(super) arrived: TiVec<StorageId, u64>,
    /// Bytes of all copies.
    pub(super) held: u64,
}

impl Pages {
    fn of(problem: &Problem, plan: &Plan) -> Self {
        let mut exits: TiVec<StorageId, Vec<(usize, bool)>> = TiVec::from(vec![Vec::new(); problem.storages.len()]);
        for (position, step) in plan.steps.iter().enumerate().rev() {
            if let Step::Free(storage) | Step::PageOut(storage) = *step
                && let Some(exits) = exits.get_mut(storage)
            {
                exits.push((position, matches!(step, Step::PageOut(_))));
            }
        }
        Self {
            exits,
            copied: TiVec::from(vec![false; problem.storages.len()]),
            arrived: TiVec::from(vec![0; problem.storages.len()]),
            held: 0,
        }
    }

    /// When the storage is there to be read, if it was paged in.
    pub(super) fn arrived(&self, storage: StorageId) -> u64 {
        self.arrived[storage]
    }

    /// Whether the storage, which is in memory after the step, leaves it with a page-out.
    pub(super) fn leaves_by_page_out(&mut self, position: usize, storage: StorageId) -> bool {
        let exits = &mut self.exits[storage];
        while exits.last().is_some_and(|&(exit, _)| exit <= position) {
            exits.pop();
        }
        exits.last().is_some_and(|&(_, is_page_out)| is_page_out)
    }
}
