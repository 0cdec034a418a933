//! The solvers that move storages to a second memory.

use remat_plan::Problem;

use super::work::{self, Method};
use remat_solve::{Domain, Outcome, SolveControl, Solver};

/// Search over sequences with recomputes and transfers, for time or energy, under budget, deadline and capacity of the second memory.
///
/// First runs keep the reference order. The bound is what running every op once takes. Uses one thread. First it does what the policy of
/// Capuchin, the dynamic program over chains, and its two halves (transfers alone and recomputes alone) do, each from nothing and with all of
/// the steps: where steps are limited and not time, it is never worse than one of them under the same limit. A plan to start from is
/// an answer, and where the whole search starts if it is the best one. Without a second memory it only recomputes.
/// Where the objective is the peak, it searches for the least time, as the budget is not its to choose.
#[derive(Clone, Copy, Debug)]
pub struct PagingSearch {
    name: &'static str,
    describe: &'static str,
    method: Method,
}

impl PagingSearch {
    /// Recomputes and transfers.
    pub const NEW: Self = Self {
        name: "paging",
        describe: "greedy and annealing of recomputes and transfers to a second memory, for time or energy",
        method: Method::Both,
    };
    /// Transfers alone.
    pub const TRANSFERS: Self = Self {
        name: "paging:transfers",
        describe: "the same with transfers alone",
        method: Method::Pages,
    };
    /// Recomputes alone.
    pub const RECOMPUTES: Self = Self {
        name: "paging:recomputes",
        describe: "the same with recomputes alone",
        method: Method::Runs,
    };
    /// The policy of the Capuchin paper.
    pub const CAPUCHIN: Self = Self {
        name: "capuchin",
        describe: "Capuchin's policy: hidden transfers first, then what saves most memory per second",
        method: Method::Capuchin,
    };
    /// The dynamic program of the POFO paper.
    pub const POFO: Self = Self {
        name: "pofo",
        describe: "training steps whose forward pass is a chain: a dynamic program over checkpoints that stay or move",
        method: Method::Pofo,
    };
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::NEW, Self::TRANSFERS, Self::RECOMPUTES, Self::CAPUCHIN, Self::POFO];
}

impl Solver for PagingSearch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        work::solve(self.name, self.method, problem, control)
    }

    fn domain(&self) -> Domain {
        Domain::Goals
    }
}
