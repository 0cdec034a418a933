//! What a plan does step by step.

use remat_ir::Graph;
use remat_plan::{BlockPlacement, Plan, Problem, Step};
use remat_verify::Replay;

/// What durations count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Nanoseconds, as for models.
    Nanoseconds,
    /// Units of a graph that states its own.
    Units,
}

/// A plan, its problem and its replay under a name.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What the run is called, `before` for instance.
    pub name: &'a str,
    /// What is run.
    pub problem: &'a Problem,
    /// The graph that the problem was made of: it knows types and shapes by the names of ops and tensors.
    pub graph: Option<&'a Graph>,
    /// The steps.
    pub plan: &'a Plan,
    /// The replay of these steps.
    pub replay: &'a Replay,
    /// Offsets, where there are some.
    pub placement: Option<&'a BlockPlacement>,
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
}
