//! The linear relaxation, rounded.

use std::time::Duration;

use remat_plan::{Evidence, Problem, Status, StopReason};
use remat_solve::{External, Outcome, Proves, SolveControl, Solver};

use super::layout::Layout;
use super::round::{Rounded, Rounding, round};
use super::{Freeing, Partition, Setting, model};
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
/// multipliers; it covers what that of [`super::CheckmateIlp`] covers. Rounding has half of the time.
///
/// Ends as [`StopReason::Converged`] without a plan where nothing that was rounded meets the budget. Takes no warm start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckmateLp {
    /// How fractions are rounded.
    pub rounding: Rounding,
    /// How memory is freed; [`Freeing::Packed`] unless one wants to see how weak the other relaxation is.
    pub freeing: Freeing,
}

/// What the two relaxations came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct LpReport {
    /// Lower bound on the duration from the relaxation at the full budget; absent where it was not solved.
    pub bound: Option<u64>,
    /// Time of the relaxation that is rounded.
    pub reduced: Duration,
    /// Time of the relaxation at the full budget.
    pub full: Duration,
}

impl CheckmateLp {
    /// Thresholds from 0.1 to 0.9.
    pub const NEW: Self = Self::with(Rounding::Sweep);
    /// Each entry at random.
    pub const RANDOMIZED: Self = Self::with(Rounding::Randomized);

    const fn with(rounding: Rounding) -> Self {
        Self {
            rounding,
            freeing: Freeing::Packed,
        }
    }

    /// Like [`Solver::solve`], with a report on the relaxations.
    pub fn solve_with_report(&self, problem: &Problem, control: &SolveControl<'_>) -> (Outcome, LpReport) {
        run::call(self.name(), problem, control, |run, report| self.attempt(run, report))
    }

    fn attempt(&self, run: &Run<'_>, report: &mut LpReport) -> Result<Outcome, Early> {
        let setting = Setting::of(run, Partition::Frontier)?;
        let instance = &setting.instance;
        run.needs_model(instance)?;
        setting.allow(run, self.freeing)?;
        let budget = instance.scaled_budget(run.problem.budget);
        let started = run.clock.elapsed();
        // Without a limit there would have been no need for a model.
        let reduced = (budget / 10 * TENTHS + budget % 10 * TENTHS / 10).max(setting.largest(run));
        let (relaxed, layout) = relax(&setting, reduced, self.freeing, &run.clock.share(0.5));
        report.reduced = run.clock.elapsed().saturating_sub(started);
        let rounded = match layout {
            Some(layout) if relaxed.ended == Ended::Optimal => {
                let fraction = |stage, node| layout.held_value(&relaxed.fractions, stage, node).unwrap_or(0.0);
                round(run, &setting, self.rounding, &fraction)
            }
            _ => Rounded::default(),
        };
        let started = run.clock.elapsed();
        let (bounding, _) = relax(&setting, budget, self.freeing, &run.clock);
        report.full = run.clock.elapsed().saturating_sub(started);
        let bound = setting.left_out() + bounding.bound;
        report.bound = (bounding.ended == Ended::Optimal).then(|| instance.unscaled_duration(bound));
        let claim = Claim {
            ended: bounding.ended,
            bound,
            covers: setting.covers(),
            evidence: bounding.evidence,
            steps: rounded.tried,
        };
        let mut outcome = run.outcome(instance, rounded.best.as_ref(), claim);
        if bounding.ended == Ended::Optimal
            && !matches!(outcome.certificate.status, Status::Optimal | Status::Infeasible)
        {
            outcome.certificate.stop = StopReason::Converged;
        }
        outcome.lowest_peak = outcome
            .lowest_peak
            .or(rounded.lowest_peak.map(|peak| instance.unscaled(peak)));
        Ok(outcome)
    }
}

/// The relaxation within a budget, and which variable is which in it.
fn relax(setting: &Setting, budget: i64, freeing: Freeing, clock: &Clock<'_>) -> (Relaxed, Option<Layout>) {
    match model::build(setting, budget, freeing) {
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
        match self.rounding {
            Rounding::Sweep => "checkmate:lp",
            Rounding::Randomized => "checkmate:lp-randomized",
        }
    }

    fn describe(&self) -> &'static str {
        match self.rounding {
            Rounding::Sweep => "the Checkmate paper's linear relaxation, rounded at thresholds from 0.1 to 0.9",
            Rounding::Randomized => {
                "the linear relaxation of `checkmate:lp`, its entries rounded at random a hundred times"
            }
        }
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        self.solve_with_report(problem, control).0
    }

    fn proves(&self) -> Proves {
        Proves::OwnForm
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }
}
