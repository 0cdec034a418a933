//! A budget that is refused, with what is known of those that are not.

use std::fmt;
use std::time::{Duration, Instant};

use remat_plan::{BoundCovers, BudgetSpec, Certificate, Objective, Status, Step, StopReason, Structure};
use remat_solve::{Search, SolveControl, Solver};

use crate::registry::solver_named;
use crate::solution::{accept, seek};
use crate::{Error, Goal, Model, Room, Solution, SolveError, SolveRequest};

/// Longest time to look for the lowest peak after a budget was refused.
const LONGEST_LOOK: Duration = Duration::from_secs(3);

/// The lowest peak that a plan is known for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowestPeak {
    /// The peak in bytes.
    pub bytes: u64,
    /// The op that runs at the peak, where it is known.
    pub op: Option<String>,
    /// Whether it is proved that no plan has a lower peak.
    pub proved: bool,
}

/// A budget that is refused.
#[derive(Debug)]
pub struct Refusal {
    /// Why: [`SolveError::Infeasible`], [`SolveError::ProvedInfeasible`], [`SolveError::NoPlanOfItsKind`] or [`SolveError::NoPlan`].
    pub cause: SolveError,
    /// The budget in bytes.
    pub budget: u64,
    /// What shares are of: the peak of running every op once in reference order.
    pub baseline: u64,
    /// The op that needs most by itself; absent where there are no ops.
    pub op: Option<String>,
    /// What it needs: no plan takes less.
    pub need: u64,
    /// The lowest peak known.
    pub lowest: Option<LowestPeak>,
    /// The device whose memory is the budget.
    pub room: Option<Room>,
    /// What to ask for instead; absent where nothing is known to work.
    pub retry: Option<BudgetSpec>,
}

impl Refusal {
    /// Bytes exactly, in the unit that fits, and in per cent of the baseline.
    fn bytes(&self, bytes: u64) -> String {
        let exact = exact(bytes);
        if self.baseline == 0 {
            return exact;
        }
        let permille = u128::from(bytes) * 1_000 / u128::from(self.baseline);
        format!("{exact}, {}.{} %", permille / 10, permille % 10)
    }
}

/// Bytes exactly, and from a kibibyte on also in the unit that fits.
pub(crate) fn exact(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    format!("{} ({bytes} bytes)", bytesize::ByteSize(bytes).display().iec())
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = self.bytes(self.budget);
        match &self.cause {
            SolveError::Infeasible(_) => write!(f, "no plan can meet the budget of {budget}")?,
            SolveError::ProvedInfeasible { claim, .. } => {
                let is_fixed = claim.bound_covers == BoundCovers::FixedOrder;
                let order = if is_fixed { " in the given order" } else { "" };
                write!(
                    f,
                    "no plan{order} can meet the budget of {budget}: `{}` proved it",
                    claim.solver
                )?;
            }
            SolveError::NoPlan { stop, .. } => {
                write!(f, "no plan within the budget of {budget} was found: {}", ended(*stop))?;
            }
            other => write!(f, "{other}")?,
        }
        if let Some(room) = &self.room {
            write!(f, "; {room}")?;
        }
        write!(f, "; the model takes {} as it is", exact(self.baseline))?;
        if let Some(op) = &self.op {
            let need = self.bytes(self.need);
            let missing = self.need.saturating_sub(self.budget);
            match missing {
                0 => write!(f, ", op `{op}` alone needs {need}")?,
                _ => write!(f, ", op `{op}` alone needs {need}: {} more", exact(missing))?,
            }
        }
        if let Some(lowest) = &self.lowest {
            write!(
                f,
                "; the lowest peak {} is {}",
                lowest.found(),
                self.bytes(lowest.bytes)
            )?;
            if let Some(op) = lowest.op.as_ref().filter(|op| self.op.as_ref() != Some(op)) {
                write!(f, ", at op `{op}`")?;
            }
        }
        Ok(())
    }
}

impl LowestPeak {
    fn found(&self) -> &'static str {
        if self.proved {
            "of all plans"
        } else {
            "found (there may be a lower one)"
        }
    }
}

impl std::error::Error for Refusal {}

fn ended(stop: StopReason) -> &'static str {
    match stop {
        StopReason::TimeLimit => "the time limit was reached",
        StopReason::StepLimit => "the step limit was reached",
        StopReason::MemoryLimit => "the memory limit was reached",
        StopReason::Cancelled => "the search was interrupted",
        StopReason::Converged | StopReason::Proved => "the search came to its end",
        StopReason::Refused => "the solver cannot work on this problem",
    }
}

/// Puts to a refused budget what is known of others; every other error is returned as it is. `request` is what was asked of the solver,
/// `besides` what the file takes beyond the plan, which came off the budget.
///
/// The lowest peak is looked for, within what is left of the limits and a few seconds. Where that finds a plan within the budget after
/// all, it is the answer.
///
/// # Errors
/// [`SolveError::Refused`] for a budget that is refused, else `error`.
pub fn explained(
    error: Error,
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
    besides: u64,
) -> Result<Solution, Error> {
    let error = match error {
        Error::Solve(error) => error,
        error => return Err(error),
    };
    let (budget, reached) = match &error {
        SolveError::Infeasible(infeasible) => (infeasible.budget, 0),
        SolveError::ProvedInfeasible { budget, .. } | SolveError::NoPlanOfItsKind { budget, .. } => (*budget, 0),
        SolveError::NoPlan { stop, .. } if *stop == StopReason::Refused => return Err(error.into()),
        SolveError::NoPlan { budget, reached, .. } => (*budget, *reached),
        _ => return Err(error.into()),
    };
    let asked = request.on_device(model).unwrap_or_else(|_| request.clone()).budget;
    if !matches!(asked, BudgetSpec::Share(_) | BudgetSpec::Bytes(_)) {
        return Err(error.into());
    }
    let found = look(model, request, goal, control);
    if let (Some(found), SolveError::NoPlan { .. }) = (&found, &error)
        && found.replay.peak <= budget
        && solver_named(&request.solver).is_ok_and(Solver::searches)
        && found.problem.objective == Objective::Time
    {
        return rescued(model, found, budget).ok_or_else(|| error.into());
    }
    let problem = model.problem();
    let bottleneck = problem.bottleneck(&Structure::of(problem));
    let need = bottleneck.map_or(0, |most| most.bytes);
    let floor = match error {
        SolveError::ProvedInfeasible { .. } => need.max(budget.saturating_add(1)),
        _ => need,
    };
    let lowest = found.map(|found| (found.replay.peak, op_at_peak(&found)));
    let reached = (reached > 0).then_some((reached, None));
    let lowest = lowest.into_iter().chain(reached).min_by_key(|&(bytes, _)| bytes);
    // Nothing but a device makes a number of it.
    let room = model.room().filter(|_| request.budget == BudgetSpec::Auto).cloned();
    let refusal = Refusal {
        cause: error,
        budget: budget.saturating_add(besides),
        baseline: model.baseline().peak,
        op: bottleneck.map(|most| problem.ops[most.op].name.clone()),
        need: need.saturating_add(besides),
        retry: (lowest.is_some() && room.is_none()).then_some(BudgetSpec::Min),
        room,
        lowest: lowest.map(|(bytes, op)| LowestPeak {
            bytes: bytes.saturating_add(besides),
            op,
            proved: bytes <= floor,
        }),
    };
    Err(SolveError::Refused(Box::new(refusal)).into())
}

/// The solution of a short search for the lowest peak.
fn look(model: &Model, request: &SolveRequest, goal: Goal, control: &SolveControl<'_>) -> Option<Solution> {
    let mut own = *control;
    own.observer = None;
    let latest = Instant::now() + LONGEST_LOOK;
    own.deadline = Some(control.deadline.map_or(latest, |deadline| deadline.min(latest)));
    let mut problem = model.problem().clone();
    goal.apply(&mut problem);
    let lowest = SolveRequest {
        budget: BudgetSpec::Min,
        solver: if problem.is_time_within_budget() {
            Search.name().to_owned()
        } else {
            request.solver.clone()
        },
        ..request.clone()
    };
    seek(model, &lowest, goal, &own).ok()
}

/// The plan that was found for a lower budget, for this one. What was claimed of the lower budget is not claimed of this one.
fn rescued(model: &Model, found: &Solution, budget: u64) -> Option<Solution> {
    let mut problem = found.problem.clone();
    problem.budget = Some(budget);
    let certificate = Certificate {
        status: Status::Feasible,
        bound: problem.total_duration(),
        bound_covers: BoundCovers::AllPlans,
        evidence: None,
        ..found.certificate.clone()?
    };
    accept(model, problem, found.plan.clone(), certificate).ok()
}

/// The op that runs at the peak.
fn op_at_peak(found: &Solution) -> Option<String> {
    match found.plan.steps.get(found.replay.peak_step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) => Some(found.problem.ops[op].name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_budget_need_and_lowest_peak_in_bytes_and_per_cent() {
        let cause = SolveError::NoPlan {
            budget: 300,
            reached: 600,
            stop: StopReason::StepLimit,
        };
        let refusal = Refusal {
            cause,
            budget: 300,
            baseline: 1_000,
            op: Some("conv".to_owned()),
            need: 400,
            room: None,
            lowest: Some(LowestPeak {
                bytes: 600,
                op: None,
                proved: false,
            }),
            retry: Some(BudgetSpec::Min),
        };
        assert_eq!(
            refusal.to_string(),
            "no plan within the budget of 300 bytes, 30.0 % was found: the step limit was reached; the model takes 1000 bytes as it is, \
             op `conv` alone needs 400 bytes, 40.0 %: 100 bytes more; the lowest peak found (there may be a lower one) is 600 bytes, 60.0 %"
        );
    }
}
