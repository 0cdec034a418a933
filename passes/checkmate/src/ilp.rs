//! The integer program, solved.

use remat_plan::{Evidence, Problem};
use remat_solve::{External, Outcome, Proves, SolveControl, Solver};

use super::{Freeing, Setting, model, start};
use remat_ortools::ModelSize;
use remat_ortools::OrTools;
use remat_ortools::Refusal;
use remat_ortools::clock::Ended;
use remat_ortools::program::task::Task;
use remat_ortools::run::{self, Claim, Early, Incumbent, Run};

/// The integer program of the Checkmate paper.
///
/// First computes keep the reference order. A warm start is where the solver starts from, as far as it is in stage form, and what
/// remains where nothing better is found. After every solution `R` is replaced by the cheapest one for its `S`; then the plan is
/// lowered, which frees what the program held for nothing.
///
/// The bound covers [`StageForm`](remat_plan::BoundCovers::StageForm) in fixed order where every op has one result at most, and
/// [`CandidateSet`](remat_plan::BoundCovers::CandidateSet) else. Refuses programs of more than ten million terms, or of more memory than the caller allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckmateIlp {
    /// How memory is freed.
    pub freeing: Freeing,
}

impl CheckmateIlp {
    /// The program of the paper.
    pub const NEW: Self = Self {
        freeing: Freeing::Hazards,
    };

    /// The size of the program, without building it.
    ///
    /// # Errors
    /// [`Refusal`] if it cannot express the problem. No program is too large to be counted.
    pub fn model_size(&self, problem: &Problem) -> Result<ModelSize, Refusal> {
        let control = SolveControl::default();
        let run = Run::new(self.name(), problem, &control);
        Ok(Setting::of(&run)?.size(self.freeing))
    }

    fn attempt(&self, run: &Run<'_>) -> Result<Outcome, Early> {
        let setting = Setting::of(run)?;
        let instance = &setting.instance;
        run.needs_model(instance)?;
        setting.allow(run, self.freeing)?;
        let warm = run.clock.control.warm_start;
        let mut best = warm.and_then(|plan| run.incumbent(instance, instance.sequence_of(plan)?));
        let claim = self.minimize(run, &setting, &mut best);
        Ok(run.outcome(instance, best.as_ref(), claim))
    }

    fn minimize(&self, run: &Run<'_>, setting: &Setting, best: &mut Option<Incumbent>) -> Claim {
        let instance = &setting.instance;
        let (total, left_out) = (instance.total_duration(), setting.left_out());
        let budget = instance.scaled_budget(run.problem.budget);
        let Some((program, layout)) = model::build(setting, budget, self.freeing) else {
            return Claim {
                ended: Ended::Infeasible,
                bound: total,
                covers: setting.covers(),
                evidence: Evidence::Combinatorial,
                steps: 0,
            };
        };
        let hint = best.as_ref().and_then(|best| {
            let stages = start::stages_of(&setting.graph, &best.sequence);
            start::values(setting, &program, &layout, stages.computed(), stages.retained())
        });
        let known = best.as_ref().map(|best| best.duration - left_out);
        let mut improved = |solution: &[i64], _: i64, bound: i64| {
            let Some(found) = run.incumbent(instance, layout.sequence(&setting.graph, solution)) else {
                tracing::debug!("a solution of the stages does not keep the budget");
                return false;
            };
            if best.as_ref().is_none_or(|best| found.duration < best.duration) {
                run.report(instance, &found, (left_out + bound).max(total), 0);
                *best = Some(found);
            }
            true
        };
        let task = Task {
            program: &program,
            hint: hint.as_deref(),
            known,
            lower: total - left_out,
        };
        let answer = task.on_highs(&run.clock, &mut improved);
        Claim {
            ended: answer.ended,
            bound: (left_out + answer.bound).max(total),
            covers: setting.covers(),
            evidence: answer.evidence,
            steps: answer.conflicts,
        }
    }
}

impl Solver for CheckmateIlp {
    fn name(&self) -> &'static str {
        "checkmate:ilp"
    }

    fn describe(&self) -> &'static str {
        "the Checkmate paper's integer program on HiGHS; a reference"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        run::call(self.name(), problem, control, |run| self.attempt(run))
    }

    fn proves(&self) -> Proves {
        Proves::OwnForm
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }
}
