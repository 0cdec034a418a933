//! What a plan does step by step.

use remat_chart::{BlockChart, TakenBy};
use remat_plan::{BlockPlacement, Plan, Problem, Resident, Step};
use remat_verify::{Interval, Replay, intervals};

/// What durations count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Nanoseconds, as for models.
    Nanoseconds,
    /// Units of a graph that states its own.
    Units,
}

/// Something that takes bytes for a while.
pub type Taken = remat_chart::Taken;

/// A plan, its problem and its replay under a name.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What the run is called, `as it came` for instance.
    pub name: &'a str,
    /// What is run.
    pub problem: &'a Problem,
    /// The steps.
    pub plan: &'a Plan,
    /// The replay of these steps.
    pub replay: &'a Replay,
    /// Offsets, where there are some.
    pub placement: Option<&'a BlockPlacement>,
}

/// What takes bytes under a plan, from which step of it to which, in the order of first steps; offsets are 0 where there is no placement.
#[must_use]
pub fn taken(problem: &Problem, plan: &Plan, replay: &Replay, placement: Option<&BlockPlacement>) -> Vec<Taken> {
    let offset = |place: usize| {
        // Of an accepted placement both lists name the same in the same order.
        let placed = placement.and_then(|placement| placement.intervals.get(place));
        placed.map_or(0, |placed| placed.offset)
    };
    let needed = intervals(problem, plan, replay).into_iter().enumerate();
    needed
        .map(|(place, interval)| {
            let (by, name) = named(problem, plan, &interval);
            Taken {
                by,
                name,
                steps: (interval.steps.start, interval.steps.end),
                bytes: (offset(place), interval.bytes),
            }
        })
        .collect()
}

fn named(problem: &Problem, plan: &Plan, interval: &Interval) -> (TakenBy, String) {
    match (interval.what, plan.steps.get(interval.steps.start)) {
        (Resident::Workspace(op), _) => (TakenBy::Workspace, format!("workspace of {}", problem.ops[op].name)),
        (Resident::Storage(storage), step) => {
            let by = match step {
                _ if interval.is_output => TakenBy::Output,
                Some(Step::Recompute(_)) => TakenBy::Again,
                Some(Step::PageIn(_)) => TakenBy::Back,
                _ => TakenBy::Result,
            };
            (by, problem.storage_name(storage).to_owned())
        }
    }
}

impl Run<'_> {
    /// Bytes that are taken during each op or transfer, the frees between them left out.
    #[must_use]
    pub fn memory(&self) -> Vec<u64> {
        let steps = self.plan.steps.iter().zip(&self.replay.trace);
        let shown = steps.filter(|(step, _)| !matches!(step, Step::Free(_)));
        shown.map(|(_, trace)| trace.during).collect()
    }

    /// For each step of the plan, and for its end, how many ops and transfers come before it.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let mut before = 0;
        let mut positions = Vec::with_capacity(self.plan.steps.len() + 1);
        for step in &self.plan.steps {
            positions.push(before);
            before += usize::from(!matches!(step, Step::Free(_)));
        }
        positions.push(before);
        positions
    }

    /// What takes bytes, from which op or transfer to which.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        let positions = self.positions();
        let at = |step: usize| positions.get(step).copied().unwrap_or_default();
        let mut all = taken(self.problem, self.plan, self.replay, self.placement);
        for taken in &mut all {
            taken.steps = (at(taken.steps.0), at(taken.steps.1));
        }
        all.retain(|taken| taken.steps.0 < taken.steps.1);
        all
    }

    /// The block over ops and transfers, where there is one.
    pub(crate) fn block(&self) -> Option<BlockChart> {
        let placement = self.placement?;
        Some(BlockChart {
            bytes: placement.block.bytes,
            load: self.replay.peak,
            steps: self.memory().len(),
            taken: self.taken(),
        })
    }
}
