//! What solves a 0/1 program, and what of its answer is proved.
//!
//! CP-SAT counts in integers, so its answer is taken as it is. HiGHS counts in floating point: what it says of a program is checked
//! before it is believed. The linear relaxation comes first, its bound proved again in integers ([`super::proof`]). When the solver is
//! done, CP-SAT looks for a solution that is better than the best plan, with the program's exact sizes and in what is left of the time: if
//! there is none, the plan is optimal, and if there is no plan either, the program has no solution. What could not be checked in time is
//! stated as a bound of that solver, within its tolerance, and as no proof.

use super::linear::relax;
use super::mip;
use super::rounded::LARGEST_UNPROVED;
use super::{Program, cp};
use remat_plan::Evidence;

use crate::clock::{Clock, Ended};
use crate::cpsat::Answer;

/// The share of the time that the linear relaxation may take before a solver in floating point begins.
const SHARE_OF_RELAXATION: f64 = 0.25;

/// A program to be solved.
pub struct Task<'a> {
    /// What is minimized.
    pub program: &'a Program,
    /// A solution, or part of one, to start from.
    pub hint: Option<&'a [i64]>,
    /// What the best plan so far would cost.
    pub known: Option<i64>,
    /// A bound on the cost that is proved.
    pub lower: i64,
}

/// Is told of every better solution, with its cost and the bound at that time; whether there is a plan that costs no more.
pub type Improved<'a> = &'a mut dyn FnMut(&[i64], i64, i64) -> bool;

impl Task<'_> {
    /// Minimizes the cost on CP-SAT, in integers.
    #[must_use]
    pub fn on_cp_sat(&self, clock: &Clock<'_>, improved: Improved<'_>) -> Answer {
        self.search(None, self.lower, clock, improved)
    }

    /// Minimizes the cost on HiGHS, in floating point and with one thread; CP-SAT checks its answer in what is left of the time.
    #[must_use]
    pub fn on_highs(&self, clock: &Clock<'_>, improved: Improved<'_>) -> Answer {
        let relaxed = relax(self.program, &clock.share(SHARE_OF_RELAXATION));
        let lower = self.lower.max(relaxed.bound);
        let mut answer = Answer {
            ended: Ended::Infeasible,
            bound: lower,
            evidence: Evidence::ExactIntegers,
            conflicts: 0,
        };
        if relaxed.ended == Ended::Infeasible {
            return answer;
        }
        let rounded = self.program.rounded_to(LARGEST_UNPROVED);
        let mut known = self.known;
        let start = self.hint.map(|hint| rounded.solution(self.program, hint));
        let mut better = |solution: &[i64], cost: i64| {
            if improved(solution, cost, lower) {
                known = Some(known.map_or(cost, |known| known.min(cost)));
            }
        };
        let said = mip::minimize(&rounded, start, clock, &mut better);
        answer.ended = said.ended;
        if let Some(known) = known.filter(|&known| known <= lower) {
            (answer.ended, answer.bound) = (Ended::Optimal, known);
        } else if matches!(said.ended, Ended::Optimal | Ended::Infeasible) {
            answer = self.search(known, lower, clock, improved);
        }
        // What the solver says beyond what is proved is stated as its own, and is no proof.
        let said_of_plans = said.bound.min(known.unwrap_or(i64::MAX));
        if answer.bound < said_of_plans && !matches!(answer.ended, Ended::Optimal | Ended::Infeasible) {
            answer.bound = said_of_plans;
            answer.evidence = Evidence::solver("HiGHS", mip::TOLERANCE);
        }
        tracing::info!(?said.ended, said.bound, ?answer, "checked");
        answer
    }

    /// The best solution that costs less than a plan that is known, in integers: that there is none proves the plan the best.
    fn search(&self, known: Option<i64>, lower: i64, clock: &Clock<'_>, improved: Improved<'_>) -> Answer {
        let search = cp::Search {
            program: self.program,
            parameters: cp::parameters(clock.control),
            hint: self.hint.filter(|_| known.is_none()),
            lower,
            below: known,
        };
        let mut answer = search.minimize(clock, &mut |solution: &[i64], cost: i64, bound: i64| {
            improved(solution, cost, bound);
        });
        if let (Some(known), Ended::Infeasible) = (known, answer.ended) {
            (answer.ended, answer.bound) = (Ended::Optimal, known);
        }
        answer
    }
}
