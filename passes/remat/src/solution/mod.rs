//! Plans that the checker has replayed, and what is asked for to get one.

mod accept;
mod error;
mod overhead;
mod place;
mod placed;
mod prune;
mod solve;

use remat_plan::{Bound, BudgetSpec, Certificate, OrderMode, Plan, PlanFile, Problem};
use remat_verify::Replay;

pub(crate) use accept::accept;
pub use error::{BugReport, LowestPeak, Refusal, SolveError};
pub use overhead::Overhead;
pub(crate) use overhead::longest;
pub(crate) use place::{Outputs, Request};
pub use placed::PlacedPlan;
pub(crate) use prune::prune;
pub(crate) use solve::seek;
pub use solve::{solve, solve_for};

use crate::Model;

/// The overhead that [`BudgetSpec::Auto`] allows where none is stated, in millionths of the baseline duration.
const DEFAULT_OVERHEAD: u64 = 50_000;

/// What is asked of a solver.
#[derive(Clone, Debug)]
pub struct SolveRequest {
    /// The budget.
    pub budget: BudgetSpec,
    /// Largest overhead, in millionths of the baseline duration; absent: [`DEFAULT_OVERHEAD`] for [`BudgetSpec::Auto`], no limit for all
    /// other budgets. With [`BudgetSpec::Min`] the same as [`BudgetSpec::Auto`].
    pub max_overhead: Option<u64>,
    /// Name of the solver.
    pub solver: String,
}

impl SolveRequest {
    /// Largest overhead, in millionths of the baseline duration, where there is a limit.
    #[must_use]
    pub fn most_overhead(&self) -> Option<u64> {
        let by_default = matches!(self.budget, BudgetSpec::Auto).then_some(DEFAULT_OVERHEAD);
        self.max_overhead.or(by_default)
    }
}

/// A plan that passed the checker.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The problem with the budget that was solved for.
    pub problem: Problem,
    /// The plan.
    pub plan: Plan,
    /// What the checker found.
    pub replay: Replay,
    /// What the solver claims; absent for plans that people wrote.
    pub certificate: Option<Certificate>,
    /// Time before and after.
    pub overhead: Overhead,
    /// What the budget bounds.
    pub bound: Bound,
    /// Where storages lie in one block.
    pub placement: Option<PlacedPlan>,
}

impl Solution {
    /// A plan that the checker has replayed, as a solution of the model.
    #[must_use]
    pub fn of(model: &Model, problem: Problem, plan: Plan, replay: Replay, certificate: Option<Certificate>) -> Self {
        let overhead = Overhead {
            duration: replay.duration,
            baseline: model.baseline_duration(),
        };
        Self {
            problem,
            plan,
            replay,
            certificate,
            overhead,
            bound: Bound::Load,
            placement: None,
        }
    }

    /// The plan with its figures, ready to be written.
    #[must_use]
    pub fn plan_file(&self, model: &Model) -> PlanFile {
        let file = PlanFile {
            format: remat_plan::PLAN_FORMAT.to_owned(),
            model: self.problem.name.clone(),
            accounting: self.problem.accounting,
            order: self.problem.order,
            budget_bytes: self.problem.budget,
            bound: self.bound,
            peak_bytes: self.replay.peak,
            duration: self.replay.duration,
            energy_pj: (self.replay.energy > 0).then_some(self.replay.energy),
            objective: self.problem.objective,
            deadline: self.problem.deadline,
            baseline_peak_bytes: model.baseline().peak,
            baseline_duration: model.baseline().duration,
            setup: model.setup().cloned(),
            certificate: self.certificate.clone(),
            bodies: model.bodies().to_vec(),
            block: None,
            steps: PlanFile::records(&self.problem, &self.plan),
        };
        match &self.placement {
            Some(placed) => file.placed(&self.problem, &placed.placement),
            None => file,
        }
    }

    /// Takes back what is claimed about the plan but its figures: a run that was interrupted proves nothing.
    pub fn interrupt(&mut self) {
        if let Some(certificate) = &mut self.certificate {
            certificate.interrupt();
        }
    }

    /// The certificate's bound, where it speaks about all plans that keep to `order`; else 0.
    #[must_use]
    pub fn bound_on_all_plans(&self, order: OrderMode) -> u64 {
        let certificate = self.certificate.as_ref();
        let certificate = certificate.filter(|certificate| certificate.bound_covers.is_every_plan(order));
        certificate.map_or(0, |certificate| certificate.bound)
    }
}
