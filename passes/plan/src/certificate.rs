//! What a solver claims about its answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the search ended, in the words of CP-SAT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// A plan was found and no plan within what the bound covers is better.
    Optimal,
    /// A plan was found.
    Feasible,
    /// No plan exists within what the bound covers.
    Infeasible,
    /// Neither a plan nor a proof was found.
    Unknown,
}

/// The plans that a bound speaks about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoundCovers {
    /// Every plan, in any order and with any number of computes.
    AllPlans,
    /// Every plan whose first computes follow the reference order.
    FixedOrder,
    /// Every plan in stage form, the space of the Checkmate and Moccasin papers: first computes follow the reference order, and
    /// between two of them recomputes follow it as well, each op at most once.
    StageForm,
    /// Only the plans that the solver's model can express; better ones may exist.
    CandidateSet,
}

/// Why the solver stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Nothing better can exist.
    Proved,
    /// The deadline passed.
    TimeLimit,
    /// The step limit was reached.
    StepLimit,
    /// Improvements had ceased for long.
    Converged,
    /// The caller asked to stop.
    Cancelled,
    /// The process took more memory than it was allowed.
    MemoryLimit,
    /// The solver did not start: its model cannot express the problem, or would be too large.
    Refused,
}

/// What a solver claims about its answer, and under which circumstances it was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// How the search ended.
    pub status: Status,
    /// What the problem's objective measures of the plan: its duration, its energy in picojoules, or its peak in bytes; absent where
    /// there is no plan.
    pub objective: Option<u64>,
    /// Lower bound on the objective of every plan that `bound_covers` speaks about.
    pub bound: u64,
    /// The plans the bound speaks about.
    pub bound_covers: BoundCovers,
    /// `(objective - bound) / objective`; absent where there is no plan.
    pub gap: Option<f64>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Name of the solver.
    pub solver: String,
    /// Seed of its random choices.
    pub seed: u64,
    /// Number of threads it used.
    pub threads: usize,
    /// Search steps it took.
    pub steps: u64,
    /// Wall time in milliseconds.
    pub elapsed_ms: u64,
    /// [`crate::Problem::digest`] of the problem it was given.
    pub problem: String,
}

impl Certificate {
    /// States the objective that the checker found for the plan, of the problem with this digest.
    ///
    /// A plan that meets a bound on all plans is optimal. Where the plan was changed since the solver claimed optimality among fewer
    /// plans, the claim is taken back.
    pub fn restate(&mut self, objective: u64, problem: String) {
        let covers_all = self.bound_covers == BoundCovers::AllPlans;
        if covers_all && objective <= self.bound {
            self.status = Status::Optimal;
        } else if !covers_all && self.status == Status::Optimal && self.objective != Some(objective) {
            self.status = Status::Feasible;
        }
        self.objective = Some(objective);
        self.gap = Some(Self::relative_gap(objective, self.bound));
        self.problem = problem;
    }

    /// The relative gap of an objective to a bound: 0 where they meet, below 1 otherwise.
    #[must_use]
    pub fn relative_gap(objective: u64, bound: u64) -> f64 {
        if objective == 0 {
            0.0
        } else {
            objective.saturating_sub(bound) as f64 / objective as f64
        }
    }
}
