//! Solutions as binary schedules for devices, and back.

use remat_schedule::{PlanPeaks, Schedule};

use crate::check::{moves, needs_pages};
use crate::{Error, Model, PlacedPlan, PlanError, Solution};

/// The schedule of a solution, with offsets where it has a block, in the format of `docs/schedule.md`.
///
/// # Errors
/// [`PlanError::Schedule`] if the plan exceeds what the format holds.
pub(crate) fn schedule(solution: &Solution) -> Result<Vec<u8>, Error> {
    let figures = PlanPeaks {
        peak: solution.replay.peak,
        second_peak: solution.replay.second_peak,
    };
    let (problem, plan) = (&solution.problem, &solution.plan);
    let placement = solution.placement.as_ref().map(|placed| &placed.placement);
    Ok(remat_schedule::encode(problem, plan, figures, placement)?)
}

/// Replays a schedule that was read from a file. What it promises of the peak is its budget.
///
/// # Errors
/// [`PlanError::Pages`] if it moves storages and the model was read without a second memory, which schedules do not describe.
/// [`PlanError::ScheduleFormat`] if the bytes are no schedule, [`PlanError::Schedule`] if it is that of another model,
/// [`PlanError::Rejected`] if it breaks a rule or takes more memory than it promises, its block included.
pub fn check_schedule(model: &Model, bytes: &[u8]) -> Result<Solution, Error> {
    let schedule = Schedule::open(bytes)?;
    let mut problem = model.problem().clone();
    problem.budget = Some(schedule.peak());
    let plan = remat_schedule::plan_of(&problem, &schedule)?;
    needs_pages(model, moves(&plan.steps))?;
    let replay = remat_verify::replay(&problem, &plan).map_err(PlanError::Rejected)?;
    let placement = remat_schedule::placement_of(&problem, &plan, &schedule);
    let placed = placement.map(|placement| PlacedPlan::of(&problem, &plan, &replay, placement));
    let placement = placed.transpose().map_err(PlanError::Rejected)?;
    let mut solution = Solution::of(model, problem, plan, replay, None);
    solution.placement = placement;
    Ok(solution)
}
