//! Plans of a front with stretches of the model that run tile by tile.

use std::time::Instant;

use remat_plan::{BudgetSpec, PlanFile};
use remat_solve::{Activity, Doing, SolveControl};

use super::file::FrontFile;
use super::front::{Front, FrontPoint};
use super::request::SweepRequest;
use super::tiled_point::TiledPoint;
use crate::{Error, ErrorKind, FissionRequest, LoadOptions, Model, SolveRequest, check_plan, solve, tile};

/// Overhead in per cent up to which a plan without tiles is good enough.
const CHEAP_PERCENT: f64 = 0.5;

/// What is asked of a sweep in tiles.
#[derive(Clone, Copy, Debug)]
pub struct TiledSweep<'a> {
    /// How the model was read.
    pub options: &'a LoadOptions,
    /// Which stretches may run tile by tile.
    pub fission: &'a FissionRequest,
    /// What was asked of the sweep.
    pub request: &'a SweepRequest,
    /// A front of before: plans in tiles that it has are taken where they are better than what is known, after the checker replayed them.
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
    let TiledSweep {
        options,
        fission,
        request,
        resume,
    } = *sweep;
    for index in 0..front.points.len() {
        let point = &front.points[index];
        if !is_worth_tiles(point) {
            continue;
        }
        let known = resume.and_then(|file| {
            file.points
                .iter()
                .find(|record| record.budget == point.spec.to_string())
        });
        if let Some(plan) = known.and_then(|record| record.in_tiles.as_ref()) {
            front.points[index].in_tiles = restored(model, options, plan, point)?.map(Box::new);
            if front.points[index].in_tiles.is_some() {
                continue;
            }
        }
        if control.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        let spec = front.points[index].spec;
        if let Some(observer) = control.observer {
            observer.begins(&Doing::new(Activity::Plan, &format!("for {spec}, in tiles")));
        }
        let asked = SolveRequest {
            budget: front.points[index].budget.map_or(BudgetSpec::Min, BudgetSpec::Bytes),
            max_overhead: None,
            solver: request.solver.clone(),
        };
        let mut own = *control;
        own.warm_start = None;
        let end = request
            .time_per_budget
            .and_then(|time| Instant::now().checked_add(time));
        own.deadline = [end, control.deadline].into_iter().flatten().min();
        let found = planned(model, options, fission, &asked, &own)?;
        let point = &mut front.points[index];
        point.in_tiles = found.filter(|found| is_better(point, found)).map(Box::new);
        visited(front)?;
    }
    Ok(())
}

fn is_worth_tiles(point: &FrontPoint) -> bool {
    let is_cheap = |solution: &crate::Solution| solution.overhead.percent() < CHEAP_PERCENT;
    point.budget.is_none() || !point.solution().is_some_and(is_cheap)
}

/// Whether it keeps the budget in less time, or without one, in less memory.
fn is_better(point: &FrontPoint, tiled: &TiledPoint) -> bool {
    let Some(known) = point.solution() else {
        return true;
    };
    match point.budget {
        Some(budget) => tiled.peak <= budget && tiled.overhead.duration < known.overhead.duration,
        None => tiled.peak < known.replay.peak,
    }
}

fn planned(
    model: &Model,
    options: &LoadOptions,
    fission: &FissionRequest,
    request: &SolveRequest,
    control: &SolveControl<'_>,
) -> Result<Option<TiledPoint>, Error> {
    // What is found is planned with the second half of the time.
    let found = tile(model, options, request, fission, &control.share_of_time(0.5))?;
    let Some(tiled) = found.into_iter().next() else {
        return Ok(None);
    };
    match solve(&tiled, request, control) {
        Ok(solution) => Ok(TiledPoint::of(&tiled, &solution)),
        Err(error) if matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A plan of a file, if it is better than what is known.
fn restored(
    model: &Model,
    options: &LoadOptions,
    plan: &PlanFile,
    point: &FrontPoint,
) -> Result<Option<TiledPoint>, Error> {
    let Some(tiling) = plan.setup.as_ref().and_then(|setup| setup.tiling.as_ref()) else {
        return Ok(None);
    };
    let tiled = model.tiled(tiling, options)?;
    let found = TiledPoint::of(&tiled, &check_plan(&tiled, plan)?);
    Ok(found.filter(|found| is_better(point, found)))
}
