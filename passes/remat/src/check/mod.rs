//! Given plans, which the checker replays.

mod error;

use remat_plan::{PlanFile, Step};
use remat_verify::{CheckError, Rejection};

pub use error::{PlanError, Setting};

use crate::{Error, Model, PlacedPlan, Solution};

/// Replays a plan that was read from a file.
///
/// # Errors
/// [`PlanError::Rejected`] if it breaks a rule, [`PlanError::OtherModel`] if that is because it is for another model, [`PlanError::File`] if
/// it is malformed, [`PlanError::Pages`] if it moves storages and the model was read without a second memory.
pub fn check_plan(model: &Model, file: &PlanFile) -> Result<Solution, Error> {
    let fit = Fit::new(model, file);
    fit.check_paging()?;
    let mut problem = model.problem().clone();
    problem.budget = file.budget_bytes;
    problem.order = file.order;
    problem.objective = file.objective;
    problem.deadline = file.deadline;
    let replay = remat_verify::check_file(&problem, file).map_err(|error| match error {
        CheckError::File(error) => PlanError::File(error),
        CheckError::Rejected(rejection) => fit.judge(rejection),
    })?;
    fit.warn();
    if let Some(capacity) = model.capacity().filter(|capacity| replay.peak > capacity.bytes()) {
        let (peak, memory) = (replay.peak, capacity.memory);
        tracing::warn!(
            "the plan takes {peak} bytes, and device `{}` has {memory}",
            capacity.device
        );
    }
    let plan = file.plan(&problem)?;
    let placement = file.placement(&problem)?;
    let placed = placement.map(|placement| PlacedPlan::of(&problem, &plan, &replay, placement));
    let placement = placed.transpose().map_err(PlanError::Rejected)?;
    let mut solution = Solution::of(model, problem, plan, replay, file.certificate.clone());
    solution.bound = file.bound;
    solution.placement = placement;
    Ok(solution)
}

/// Whether the plan is one for this model, read as it is; what a plan that fails is to be told by.
struct Fit<'a> {
    model: &'a Model,
    plan: &'a PlanFile,
}

impl<'a> Fit<'a> {
    fn new(model: &'a Model, plan: &'a PlanFile) -> Self {
        Self { model, plan }
    }

    /// Refuses a plan that moves storages where the model has no second memory.
    fn check_paging(&self) -> Result<(), PlanError> {
        use remat_plan::StepKind::{PageIn, PageOut};
        let steps = self
            .plan
            .steps
            .iter()
            .filter(|step| matches!(step.op, PageOut | PageIn));
        needs_pages(self.model, steps.count())
    }

    /// The error of a plan that breaks rules: one for another model is called that.
    fn judge(&self, rejection: Rejection) -> PlanError {
        let found = self.model.problem().graph_digest();
        match &self.plan.setup {
            Some(setup) if setup.graph != found => PlanError::OtherModel {
                plan_model: self.plan.model.clone(),
                plan_graph: setup.graph.clone(),
                model: self.model.problem().name.clone(),
                graph: found,
                rejection: Box::new(rejection),
            },
            _ => PlanError::Rejected(rejection),
        }
    }

    /// Tells of a plan that was made for other figures than those of the model.
    fn warn(&self) {
        let Some(setup) = &self.plan.setup else { return };
        let problem = self.model.problem();
        if setup.graph != problem.graph_digest() {
            tracing::warn!(
                "the plan was made for another model, `{}`, and holds for this one too",
                self.plan.model
            );
        } else if setup.problem != problem.digest() {
            tracing::warn!("the plan was made for other sizes, times or energies of the same model");
        }
    }
}

/// Refuses so many moves where the model has no second memory.
pub(crate) fn needs_pages(model: &Model, moves: usize) -> Result<(), PlanError> {
    if moves > 0 && model.problem().paging.is_none() {
        return Err(PlanError::Pages { moves });
    }
    Ok(())
}

/// How many of the steps move storages.
pub(crate) fn moves(steps: &[Step]) -> usize {
    let moves = steps
        .iter()
        .filter(|step| matches!(step, Step::PageOut(_) | Step::PageIn(_)));
    moves.count()
}
