//! Plans that come with a block, and planning and placing in turns until the block keeps the budget.

use remat_plan::{BlockPlacement, Bound, BudgetSpec, Certificate};
use remat_solve::SolveControl;

use crate::solution::{Outputs, Request, accept, seek};
use crate::{Error, Goal, Model, PlacedPlan, PlacementError, Solution, SolveRequest, solve_or_explain};

/// Share of the time for placing a plan whose load keeps the budget.
const PLACING: f64 = 0.1;
/// Share of the time that is left for each search for a plan, and then for each search for its offsets.
const EACH: f64 = 0.5;
/// Most turns: without a limit in time, a block that is never small enough ends here.
const MOST_TURNS: usize = 16;

/// [`solve_or_explain`], and a place in one block for everything that counts.
///
/// With [`Bound::Load`] the budget bounds the load, and the block is as low as is found. With [`Bound::Block`] a budget in bytes or as a
/// share bounds the block: where it does not fit, a plan of a lower load is sought, and placed again, within the limits of `control`. Other
/// budgets name no number that a block could keep.
///
/// # Errors
/// As [`solve_or_explain`], and [`PlacementError`]: [`PlacementError::NoBlock`] where a limit was reached before a block was small enough.
pub fn solve_in_block(
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    bound: Bound,
    control: &SolveControl<'_>,
) -> Result<Solution, Error> {
    let asked = request.on_device(model)?.budget;
    let budget = match asked {
        BudgetSpec::Share(_) | BudgetSpec::Bytes(_) => asked.bytes(model.baseline_peak().bytes),
        BudgetSpec::Auto | BudgetSpec::Min | BudgetSpec::None => None,
    };
    let Some(budget) = budget.filter(|_| bound == Bound::Block) else {
        let mut solution = solve_or_explain(model, request, goal, &control.share_of_time(1.0 - PLACING))?;
        solution.place(model, control)?;
        warn_of_device(model, &solution);
        return Ok(solution);
    };
    let mut first = None;
    let mut limit = budget;
    let mut least: Option<PlacedPlan> = None;
    for _ in 0..MOST_TURNS {
        let planning = control.share_of_time(EACH);
        let sought = if first.is_none() {
            solve_or_explain(model, request, goal, &planning)
        } else {
            let lower = SolveRequest {
                budget: BudgetSpec::Bytes(limit),
                ..request.clone()
            };
            seek(model, &lower, goal, &planning)
        };
        let sought = match (sought, &least) {
            (Ok(sought), _) => sought,
            (Err(error), None) => return Err(error),
            // That there is no plan of a lower load says nothing of blocks.
            (Err(_), Some(_)) => break,
        };
        let mut solution = held_to(model, sought, budget, first.as_ref())?;
        first = first.or_else(|| solution.certificate.clone());
        // Outputs may lie anywhere where only so the block is small enough.
        for outputs in [Outputs::First, Outputs::Anywhere] {
            let request = Request::of(model, &solution, outputs);
            if let Some(placement) = request.within(budget, &control.share_of_time(EACH))? {
                let placement = request.lowest(Some(&placement), &control.share_of_time(EACH))?;
                solution.placement = Some(judged(&solution, placement)?);
                solution.bound = Bound::Block;
                return Ok(solution);
            }
        }
        let passes_alone = control.step_limit(0);
        let lowest = Request::of(model, &solution, Outputs::Anywhere).lowest(None, &passes_alone)?;
        let found = judged(&solution, lowest)?;
        limit = next_limit(budget, &found, limit);
        if least.as_ref().is_none_or(|least| found.block() < least.block()) {
            least = Some(found);
        }
        if control.is_cancelled() || control.is_late() {
            break;
        }
    }
    let (block, load) = least.map_or((0, 0), |least| (least.block(), least.load));
    Err(PlacementError::NoBlock { budget, block, load }.into())
}

fn judged(solution: &Solution, placement: BlockPlacement) -> Result<PlacedPlan, PlacementError> {
    let placed = PlacedPlan::of(&solution.problem, &solution.plan, &solution.replay, placement);
    placed.map_err(PlacementError::Rejected)
}

/// The plan under the budget for the block. What was claimed of plans of a lower load is not claimed of all whose blocks keep the budget;
/// what was claimed of all plans of this load, `first`, is.
fn held_to(model: &Model, sought: Solution, budget: u64, first: Option<&Certificate>) -> Result<Solution, Error> {
    let Some((first, mut certificate)) = first.zip(sought.certificate.clone()) else {
        return Ok(sought);
    };
    certificate.take_bound(first);
    let mut problem = sought.problem;
    problem.budget = Some(budget);
    accept(model, problem, sought.plan, certificate)
}

/// The load to seek next: as much below the budget as the block was above the load, but lower than before.
fn next_limit(budget: u64, found: &PlacedPlan, limit: u64) -> u64 {
    let scaled = u128::from(budget) * u128::from(found.load) / u128::from(found.block().max(1));
    let scaled = u64::try_from(scaled).unwrap_or(budget);
    scaled.min(found.load.saturating_sub(1)).min(limit.saturating_sub(1))
}

/// Tells of a block that is larger than what the device leaves.
fn warn_of_device(model: &Model, solution: &Solution) {
    let block = solution.placement.as_ref().map_or(0, PlacedPlan::block);
    if let Some(capacity) = model.capacity().filter(|capacity| block > capacity.bytes()) {
        let (memory, device) = (capacity.memory, &capacity.device);
        tracing::warn!("the block takes {block} bytes, and device `{device}` has {memory}");
    }
}
