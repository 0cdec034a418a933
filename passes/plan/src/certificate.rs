//! What a solver claims about its answer.
//!
//! Every [`Certificate`] keeps these rules, which `remat-verify` checks:
//! 1. no plan that [`Certificate::bound_covers`] speaks about is better than `bound`; so `bound` is never above `objective`;
//! 2. [`Status::Optimal`] and [`Status::Infeasible`] are proofs, and [`StopReason::Proved`] is said of these two only: never of a run that
//!    was interrupted;
//! 3. a bound above what every plan takes (each op once), and the claim that there is no plan, rest on an [`Evidence`];
//! 4. that no plan exists is said of the plans that `bound_covers` speaks about, and of no others.
//!
//! [`Certificate::settle`] brings a certificate into this form; whether rule 1 holds is the solver's to prove.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::OrderMode;

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

impl BoundCovers {
    /// Whether these are all plans of a problem with this order: what is said of fewer leaves room for a better plan.
    #[must_use]
    pub fn is_every_plan(self, order: OrderMode) -> bool {
        match self {
            Self::AllPlans => true,
            Self::FixedOrder => order == OrderMode::Fixed,
            Self::StageForm | Self::CandidateSet => false,
        }
    }
}

/// What a bound, or the claim that there is no plan, rests on. Where a proof has several parts, the one that is hardest to check again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Evidence {
    /// An argument of this program about the problem, in exact integers: what one op needs at least, for example.
    Combinatorial,
    /// Numbers of a solver, multipliers for example, from which this program derived the claim in exact integers.
    ExactIntegers,
    /// The answer of a solver that is no part of this program.
    Solver {
        /// Its name, one of [`Evidence::SOLVERS`].
        name: String,
        /// By how much, relative to its size, a constraint may be violated and still count as kept; 0: the solver counts in integers.
        tolerance: f64,
    },
}

impl Evidence {
    /// The solvers that may be named, and whether they count in floating point.
    pub const SOLVERS: [(&'static str, bool); 2] = [("CP-SAT", false), ("HiGHS", true)];

    /// The answer of a solver.
    #[must_use]
    pub fn solver(name: &str, tolerance: f64) -> Self {
        Self::Solver {
            name: name.to_owned(),
            tolerance,
        }
    }
}

/// Why the solver stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The status is proved.
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
    /// What the bound, or the claim that there is no plan, rests on; absent where the bound is no more than every plan takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
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
    /// Brings status, stop reason and gap in line with objective and bound:
    /// - a run that was cancelled proves nothing;
    /// - a plan that meets a bound on all plans, or on all in reference order, is optimal; one that meets another bound only where the
    ///   solver says so;
    /// - a bound on fewer plans which the plan undercuts is lowered to its objective: the plan is none of them;
    /// - what is not proved did not stop because it was.
    ///
    /// A bound on all plans that lies above the objective is left as it is, for the checker to find.
    pub fn settle(&mut self) {
        let is_proof = self.stop != StopReason::Cancelled;
        self.status = match self.objective {
            None if self.status == Status::Infeasible && self.stop == StopReason::Proved => Status::Infeasible,
            None => Status::Unknown,
            Some(objective) => {
                let is_weak = matches!(self.bound_covers, BoundCovers::StageForm | BoundCovers::CandidateSet);
                let is_claimed = !is_weak || self.status == Status::Optimal;
                let is_outside = is_weak && objective < self.bound;
                let is_met = objective <= self.bound && is_claimed && !is_outside;
                if is_outside {
                    self.bound = objective;
                }
                if is_met && is_proof {
                    Status::Optimal
                } else {
                    Status::Feasible
                }
            }
        };
        self.stop = match self.status {
            Status::Optimal | Status::Infeasible => StopReason::Proved,
            Status::Feasible | Status::Unknown if self.stop == StopReason::Proved => StopReason::Converged,
            Status::Feasible | Status::Unknown => self.stop,
        };
        self.gap = self
            .objective
            .map(|objective| Self::relative_gap(objective, self.bound));
    }

    /// States the objective that the checker found for the plan, of the problem with this digest.
    ///
    /// Where the plan was changed since the solver claimed optimality among fewer plans than all, the claim is taken back.
    pub fn restate(&mut self, objective: u64, problem: String) {
        if self.status == Status::Optimal && self.objective != Some(objective) {
            self.status = Status::Feasible;
        }
        self.objective = Some(objective);
        self.problem = problem;
        self.settle();
    }

    /// Takes over the bound of another certificate of the same problem, with what it covers and rests on.
    pub fn take_bound(&mut self, other: &Self) {
        self.bound = other.bound;
        self.bound_covers = other.bound_covers;
        self.evidence.clone_from(&other.evidence);
    }

    /// Takes back what is proved: the run that the certificate belongs to was interrupted.
    pub fn interrupt(&mut self) {
        self.stop = StopReason::Cancelled;
        self.settle();
    }

    /// Whether the status is proved for every plan of a problem with this order: that none is better, or that there is none.
    #[must_use]
    pub fn is_final(&self, order: OrderMode) -> bool {
        self.stop == StopReason::Proved && self.bound_covers.is_every_plan(order)
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
