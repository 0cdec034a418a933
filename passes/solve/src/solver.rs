//! What a solver is, what it returns, and which there are.

use remat_plan::{Certificate, Plan, Problem};

use crate::classic::CLASSIC;
use crate::{Search, SolveControl};

/// An algorithm for the rematerialization problem.
///
/// Whatever a solver returns is a claim; only the checker (`remat-verify`) decides whether a plan is valid.
pub trait Solver: Send + Sync {
    /// Short name, as given on a command line.
    fn name(&self) -> &'static str;

    /// One line for people.
    fn describe(&self) -> &'static str;

    /// Searches for a plan of least duration within the problem's budget.
    ///
    /// The problem must be [valid](Problem::validate).
    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome;

    /// Whether the solver constructs its plans for this problem directly, in well below a second, so that a portfolio can afford to
    /// take its answer along. Searches and exact solvers keep the default: no.
    fn is_quick(&self, problem: &Problem) -> bool {
        let _ = problem;
        false
    }
}

/// What a solver found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The best plan within the budget; absent where none was found.
    pub plan: Option<Plan>,
    /// What is claimed about it.
    pub certificate: Certificate,
    /// Without a plan: the lowest peak in bytes that any sequence reached, so that the caller can name a budget that would do.
    /// With a plan: a peak that the plan does not exceed. Absent where nothing was tried.
    pub lowest_peak: Option<u64>,
    /// What each of its parts answered, where the solver calls others; their claims have to agree with all of their plans.
    pub parts: Vec<Self>,
}

static SOLVERS: [&dyn Solver; 9] = [
    &Search,
    &CLASSIC[0],
    &CLASSIC[1],
    &CLASSIC[2],
    &CLASSIC[3],
    &CLASSIC[4],
    &CLASSIC[5],
    &CLASSIC[6],
    &CLASSIC[7],
];

/// All solvers of this crate, the one to prefer first.
#[must_use]
pub fn registry() -> &'static [&'static dyn Solver] {
    &SOLVERS
}

/// The solver of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Solver> {
    registry().iter().copied().find(|solver| solver.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_are_found_by_their_names_and_no_others_are() {
        for solver in registry() {
            assert!(by_name(solver.name()).is_some_and(|found| found.name() == solver.name()));
        }
        assert!(by_name("no such solver").is_none());
    }
}
