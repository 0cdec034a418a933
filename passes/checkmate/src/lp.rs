//! The linear relaxation, rounded.

use remat_plan::{Evidence, Problem, Status, StopReason};
use remat_solve::{External, Outcome, Proves, SolveControl, Solver};

use super::layout::Layout;
use super::round::{Rounded, round};
use super::{Freeing, Setting, model};
use remat_ortools::OrTools;
use remat_ortools::clock::{Clock, Ended};
use remat_ortools::program::linear::{self, Relaxed};
use remat_ortools::run::{self, Claim, Early, Run};

/// The share of the budget that is left to rounding: `eps` of the paper is 0.1.
const TENTHS: i64 = 9;

/// The approximation of the Checkmate paper: the linear relaxation of the integer program, rounded in two phases.
///
/// The relaxation is solved with nine tenths of the budget, but not less than the largest op takes alone, since what is rounded takes
/// more memory than the fractions; plans are accepted by their true peak and the true budget. The relaxation at the full budget gives the bound, proved in integers from its
/// multipliers; it covers what that of [`super::CheckmateIlp`] covers. Rounding has half of the time. Memory is freed as in
/// [`Freeing::Packed`], without which the relaxation says next to nothing.
///
/// Ends as [`StopReason::Converged`] without a plan where nothing that was rounded meets the budget. Takes no warm start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckmateLp;

fn attempt(run: &Run<'_>) -> Result<Outcome, Early> {
    let setting = Setting::of(run)?;
    let instance = &setting.instance;
    run.needs_model(instance)?;
    setting.allow(run, Freeing::Packed)?;
    let budget = instance.scaled_budget(run.problem.budget);
    // Without a limit there would have been no need for a model.
    let reduced = (budget / 10 * TENTHS + budget % 10 * TENTHS / 10).max(setting.largest(run));
    let (relaxed, layout) = relax(&setting, reduced, &run.clock.share(0.5));
    let rounded = match layout {
        Some(layout) if relaxed.ended == Ended::Optimal => {
            let fraction = |stage, node| layout.held_value(&relaxed.fractions, stage, node).unwrap_or(0.0);
            round(run, &setting, &fraction)
        }
        _ => Rounded::default(),
    };
    let (bounding, _) = relax(&setting, budget, &run.clock);
    let bound = setting.left_out() + bounding.bound;
    let claim = Claim {
        ended: bounding.ended,
        bound,
        covers: setting.covers(),
        evidence: bounding.evidence,
        steps: rounded.tried,
    };
    let mut outcome = run.outcome(instance, rounded.best.as_ref(), claim);
    if bounding.ended == Ended::Optimal && !matches!(outcome.certificate.status, Status::Optimal | Status::Infeasible) {
        outcome.certificate.stop = StopReason::Converged;
    }
    outcome.lowest_peak = outcome
        .lowest_peak
        .or(rounded.lowest_peak.map(|peak| instance.unscaled(peak)));
    Ok(outcome)
}

/// The relaxation within a budget, and which variable is which in it.
fn relax(setting: &Setting, budget: i64, clock: &Clock<'_>) -> (Relaxed, Option<Layout>) {
    match model::build(setting, budget, Freeing::Packed) {
        Some((program, layout)) => (linear::relax(&program, clock), Some(layout)),
        None => {
            let nothing = Relaxed {
                ended: Ended::Infeasible,
                bound: 0,
                evidence: Evidence::Combinatorial,
                fractions: Vec::new(),
            };
            (nothing, None)
        }
    }
}

impl Solver for CheckmateLp {
    fn name(&self) -> &'static str {
        "checkmate:lp"
    }

    fn describe(&self) -> &'static str {
        "the Checkmate paper's linear relaxation, rounded at thresholds from 0.1 to 0.9"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        run::call(self.name(), problem, control, attempt)
    }

    fn proves(&self) -> Proves {
        Proves::OwnForm
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }
}
