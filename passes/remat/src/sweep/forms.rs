//! Plans of a front for the model in other forms: with fused chains that run tile by tile, and with plans of its subgraphs.

use remat_plan::{BudgetSpec, PlanFile};
use remat_solve::{Activity, Doing, SolveControl};

use super::file::{FrontFile, PointRecord};
use super::form_point::FormPoint;
use super::front::{Front, FrontPoint};
use super::request::SweepRequest;
use crate::{Error, ErrorKind, FissionRequest, LoadOptions, Model, SolveRequest, check_plan, solve, tile};

/// Overhead in per cent up to which a plan for the original model is good enough.
const CHEAP_PERCENT: f64 = 0.5;

/// What is asked of a sweep in tiles.
#[derive(Clone, Copy, Debug)]
pub struct TiledSweep<'a> {
    /// How the model was read.
    pub options: &'a LoadOptions,
    /// Which fused chains may run tile by tile.
    pub fission: &'a FissionRequest,
    /// What was asked of the sweep.
    pub request: &'a SweepRequest,
    /// A front of before: plans in tiles that it has are taken where they are better than what is known, after the checker replayed them.
    pub resume: Option<&'a FrontFile>,
}

/// Who plans subgraphs.
pub trait BodyPlanner {
    /// The model with plans for those of its subgraphs that have to take less for what is asked; `None` where it stays as it is.
    ///
    /// # Errors
    /// If what was planned cannot be applied.
    fn plan(&self, model: &Model, request: &SolveRequest, control: &SolveControl<'_>) -> Result<Option<Model>, Error>;

    /// The model with its subgraphs as a plan file has them, after the checker replayed their plans; `None` where it says nothing of them.
    ///
    /// # Errors
    /// [`PlanError`](crate::PlanError) for a plan that is wrong, or for no subgraph of the model.
    fn apply(&self, model: &Model, plan: &PlanFile) -> Result<Option<Model>, Error>;
}

/// What is asked of a sweep with plans of subgraphs.
#[derive(Clone, Copy)]
pub struct BodySweep<'a> {
    /// Who plans them.
    pub planner: &'a dyn BodyPlanner,
    /// What was asked of the sweep.
    pub request: &'a SweepRequest,
    /// A front of before, as in [`TiledSweep::resume`].
    pub resume: Option<&'a FrontFile>,
}

/// Looks for a better plan in tiles for each budget of a front that has no plan, or one that takes time, and for the lowest peak. Limits are as
/// those of [`sweep`](super::sweep); `visited` is called after every budget.
///
/// # Errors
/// [`FissionError`](crate::FissionError) for a model that is not ONNX; those of [`sweep`](super::sweep).
pub fn sweep_in_tiles(
    model: &Model,
    front: &mut Front,
    sweep: &TiledSweep<'_>,
    control: &SolveControl<'_>,
    visited: &mut dyn FnMut(&Front) -> Result<(), Error>,
) -> Result<(), Error> {
    let form = Form {
        name: "in tiles",
        record: |record| record.in_tiles.as_ref(),
        slot: |point| &mut point.in_tiles,
        make: &|asked, control| {
            Ok(tile(model, sweep.options, asked, sweep.fission, control)?
                .into_iter()
                .next())
        },
        restore: &|plan| match plan.setup.as_ref().and_then(|setup| setup.tiling.as_ref()) {
            Some(tiling) => model.tiled(tiling, sweep.options).map(Some),
            None => Ok(None),
        },
    };
    form.sweep(front, sweep.request, sweep.resume, control, visited)
}

/// The same with plans of subgraphs, each budget with its own.
///
/// # Errors
/// Those of the planner and of [`sweep`](super::sweep).
pub fn sweep_in_bodies(
    model: &Model,
    front: &mut Front,
    sweep: &BodySweep<'_>,
    control: &SolveControl<'_>,
    visited: &mut dyn FnMut(&Front) -> Result<(), Error>,
) -> Result<(), Error> {
    let form = Form {
        name: "with plans of subgraphs",
        record: |record| record.in_bodies.as_ref(),
        slot: |point| &mut point.in_bodies,
        make: &|asked, control| sweep.planner.plan(model, asked, control),
        restore: &|plan| sweep.planner.apply(model, plan),
    };
    form.sweep(front, sweep.request, sweep.resume, control, visited)
}

type Made<'a> = dyn Fn(&SolveRequest, &SolveControl<'_>) -> Result<Option<Model>, Error> + 'a;

/// A form that the model may have for a budget.
struct Form<'a> {
    /// How the search for it is shown.
    name: &'static str,
    /// The plan in this form that a file has for a budget.
    record: fn(&PointRecord) -> Option<&PlanFile>,
    /// Where the plan in this form stands.
    slot: fn(&mut FrontPoint) -> &mut Option<Box<FormPoint>>,
    /// The model in this form for what is asked.
    make: &'a Made<'a>,
    /// The model in the form that a plan states.
    restore: &'a dyn Fn(&PlanFile) -> Result<Option<Model>, Error>,
}

impl Form<'_> {
    fn sweep(
        &self,
        front: &mut Front,
        request: &SweepRequest,
        resume: Option<&FrontFile>,
        control: &SolveControl<'_>,
        visited: &mut dyn FnMut(&Front) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for index in 0..front.points.len() {
            let point = &mut front.points[index];
            if !is_worth_a_form(point) {
                continue;
            }
            let spec = point.spec;
            let known = resume.and_then(|file| file.points.iter().find(|record| record.budget == spec.to_string()));
            if let Some(plan) = known.and_then(self.record) {
                let restored = self.restored(plan, point)?;
                *(self.slot)(point) = restored.map(Box::new);
                if (self.slot)(point).is_some() {
                    continue;
                }
            }
            if control.is_late() {
                break;
            }
            if let Some(observer) = control.observer {
                observer.begins(&Doing::new(Activity::Plan, &format!("for {spec}, {}", self.name)));
            }
            let asked = SolveRequest {
                budget: point.budget.map_or(BudgetSpec::Min, BudgetSpec::Bytes),
                max_overhead: None,
                solver: request.solver.clone(),
            };
            let mut own = control.at_most(request.time_per_budget);
            own.warm_start = None;
            let found = self.planned(&asked, &own)?.filter(|found| is_better(point, found));
            *(self.slot)(point) = found.map(Box::new);
            visited(front)?;
        }
        Ok(())
    }

    fn planned(&self, request: &SolveRequest, control: &SolveControl<'_>) -> Result<Option<FormPoint>, Error> {
        // What is found is planned with the second half of the time.
        let Some(model) = (self.make)(request, &control.share_of_time(0.5))? else {
            return Ok(None);
        };
        match solve(&model, request, control) {
            Ok(solution) => Ok(Some(FormPoint::of(&model, &solution))),
            Err(error) if matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A plan of a file, if it is better than what is known.
    fn restored(&self, plan: &PlanFile, point: &FrontPoint) -> Result<Option<FormPoint>, Error> {
        let Some(model) = (self.restore)(plan)? else {
            return Ok(None);
        };
        let found = FormPoint::of(&model, &check_plan(&model, plan)?);
        Ok(Some(found).filter(|found| is_better(point, found)))
    }
}

fn is_worth_a_form(point: &FrontPoint) -> bool {
    let is_cheap = |solution: &crate::Solution| solution.overhead.percent() < CHEAP_PERCENT;
    point.budget.is_none() || !point.solution().is_some_and(is_cheap)
}

/// Whether it keeps the budget in less time, or without one, in less memory.
fn is_better(point: &FrontPoint, found: &FormPoint) -> bool {
    if point.budget.is_some_and(|budget| found.peak > budget) {
        return false;
    }
    let Some(known) = point.solution() else {
        return true;
    };
    match point.budget {
        Some(_) => found.overhead.duration < known.overhead.duration,
        None => found.peak < known.replay.peak,
    }
}
