//! Exact and bounded: the gap model over growing candidate sets.

pub(crate) mod candidates;
mod model;
pub(crate) mod windows;

use remat_plan::{BoundCovers, Evidence, Problem};
use remat_solve::{External, Outcome, Proves, SolveControl, Solver};

pub use candidates::Candidates;
pub use windows::Windows;

use crate::clock::{Clock, Ended};
use crate::library::OrTools;
use crate::program::task::Task;
use crate::run::{self, Claim, Early, Incumbent, Run, terms_within};
use crate::scaled::{Refusal, Scaled};
use crate::size::ModelSize;
use candidates::Stages;
use model::{GapModel, events};

/// The deepest set of users tried before all stages are.
const DEEPEST: u32 = 4;
/// With more recomputes than this the linear relaxation over all stages takes minutes, and the round is left out.
const MAX_RECOMPUTES: usize = 20_000;

/// The gap model: which results are resident between which possible runs, as a 0/1 program with a tight linear relaxation.
///
/// First computes keep the reference order (in free order: that of the warm start); recomputes happen in stages (see
/// [`Candidates`]). With `candidates` absent the sets grow from round to round, [`Candidates::Excess`] 1 and 2,
/// [`Candidates::Uses`] 1 to 4 and then [`Candidates::AllStages`] unless that would be too many; each round starts from the best
/// plan so far. Of the time left, half goes to each round, if all stages are to come, or else all of it.
///
/// The certificate's bound is that of the largest set that was solved or, where the last round reached a bound over all stages,
/// that one. It covers [`BoundCovers::StageForm`] after a round over all stages in fixed order, and
/// [`BoundCovers::CandidateSet`] else; the trivial bound, every op once, covers all plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The only set to solve; absent: growing sets.
    pub candidates: Option<Candidates>,
}

impl Gap {
    /// Growing candidate sets.
    pub const NEW: Self = Self { candidates: None };

    /// One candidate set only.
    #[must_use]
    pub const fn only(candidates: Candidates) -> Self {
        Self {
            candidates: Some(candidates),
        }
    }

    /// The size of the model with these candidates, without solving it.
    ///
    /// # Errors
    /// [`Refusal`] if the model cannot express the problem or would be too large.
    pub fn model_size(problem: &Problem, candidates: Candidates) -> Result<ModelSize, Refusal> {
        let control = SolveControl::default();
        let run = Run::new("gap", problem, &control);
        let instance = run.instance(None)?;
        let budget = instance.scaled_budget(problem.budget);
        let model = GapModel::new(
            &instance,
            events(&instance, &candidates.stages(&instance, budget)),
            budget,
            None,
        )?;
        Ok(model.program.size())
    }

    fn attempt(&self, run: &Run<'_>) -> Result<Outcome, Early> {
        let (instance, start) = run.started()?;
        let mut rounds = Rounds {
            run,
            instance: &instance,
            best: start,
            steps: 0,
        };
        let claim = match self.candidates {
            Some(candidates) => rounds.one(candidates, &run.clock)?,
            None => rounds.growing()?,
        };
        let best = rounds.best;
        Ok(run.outcome(&instance, best.as_ref(), claim))
    }
}

impl Solver for Gap {
    fn name(&self) -> &'static str {
        "gap"
    }

    fn describe(&self) -> &'static str {
        "exact 0/1 model over growing sets of recomputes, on CP-SAT; proves optimality or a bound"
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

struct Rounds<'a> {
    run: &'a Run<'a>,
    instance: &'a Scaled,
    best: Option<Incumbent>,
    steps: u64,
}

impl Rounds<'_> {
    /// Set after set, as long as each is solved.
    fn growing(&mut self) -> Result<Claim, Refusal> {
        let mut claim: Option<Claim> = None;
        let mut before = None;
        let excess = [1, 2].map(Candidates::Excess);
        for candidates in excess.into_iter().chain((1..=DEEPEST).map(Candidates::Uses)) {
            let stages = self.stages(candidates);
            if before.as_ref() == Some(&stages) {
                break;
            }
            let share = if self.all_are_to_come() { 0.5 } else { 1.0 };
            match self.one(candidates, &self.run.clock.share(share)) {
                Ok(next) => {
                    claim = Some(match claim {
                        Some(before) => self.stronger(before, next),
                        None => next,
                    });
                }
                Err(refusal) if claim.is_none() => return Err(refusal),
                Err(_) => break,
            }
            if claim
                .as_ref()
                .is_some_and(|claim| !matches!(claim.ended, Ended::Optimal | Ended::Infeasible))
            {
                break;
            }
            before = Some(stages);
        }
        let all = if self.all_are_to_come() {
            self.one(Candidates::AllStages, &self.run.clock).ok()
        } else {
            None
        };
        match (claim, all) {
            (Some(claim), Some(all)) => Ok(self.stronger(claim, all)),
            (Some(claim), None) => Ok(Claim {
                steps: self.steps,
                ..claim
            }),
            (None, Some(all)) => Ok(all),
            (None, None) => self.one(Candidates::AllStages, &self.run.clock),
        }
    }

    fn all_are_to_come(&self) -> bool {
        let recomputes: usize = self.stages(Candidates::AllStages).iter().map(Vec::len).sum();
        recomputes <= MAX_RECOMPUTES
    }

    /// For each node the stages in which it may be recomputed.
    fn stages(&self, candidates: Candidates) -> Stages {
        let mut stages = candidates.stages(self.instance, self.instance.scaled_budget(self.run.problem.budget));
        if let Some(best) = &self.best {
            // A plan that is better than this one does without runs that alone take as long as all its recomputes.
            candidates::keep_shorter(
                &mut stages,
                self.instance,
                best.duration - self.instance.total_duration(),
            );
            candidates::include(&mut stages, &best.sequence);
        }
        stages
    }

    /// What to claim after a round and one over a larger set: the bound over the larger one, unless it says nothing.
    fn stronger(&self, smaller: Claim, larger: Claim) -> Claim {
        let solved = matches!(larger.ended, Ended::Optimal | Ended::Infeasible);
        let says_nothing = larger.bound <= self.instance.total_duration() && !solved;
        // Without a plan, what was not found over the larger set is more than what is not there over the smaller one.
        if says_nothing && self.best.is_some() {
            return Claim {
                ended: larger.ended,
                steps: self.steps,
                ..smaller
            };
        }
        larger
    }

    /// One model.
    fn one(&mut self, candidates: Candidates, clock: &Clock<'_>) -> Result<Claim, Refusal> {
        let (run, instance) = (self.run, self.instance);
        let started = clock.elapsed();
        let total = instance.total_duration();
        let stages = self.stages(candidates);
        let most = clock.control.memory_limit.map(terms_within);
        let budget = instance.scaled_budget(run.problem.budget);
        let model = GapModel::new(instance, events(instance, &stages), budget, most)?;
        let hint = self.best.as_ref().map(|best| model.hint(&best.sequence));
        tracing::info!(%candidates, recomputes = model.candidates(), size = ?model.program.size(), "gap model");
        let known = self.best.as_ref().map(|best| best.duration - total);
        let steps = self.steps;
        let best = &mut self.best;
        let mut improved = |solution: &[i64], _: i64, bound: i64| {
            let on: Vec<bool> = solution.iter().map(|&value| value != 0).collect();
            let Some(found) = run.incumbent(instance, model.sequence(&on)) else {
                tracing::debug!("a solution of the gap model does not keep the budget");
                return false;
            };
            if best.as_ref().is_none_or(|best| found.duration < best.duration) {
                run.report(instance, &found, total + bound, steps);
                *best = Some(found);
            }
            true
        };
        let (ended, bound, evidence) = if model.is_infeasible() {
            (Ended::Infeasible, 0, Evidence::Combinatorial)
        } else {
            let task = Task {
                program: &model.program,
                hint: hint.as_deref(),
                known,
                lower: 0,
            };
            let answer = task.on_cp_sat(clock, &mut improved);
            self.steps += answer.conflicts;
            (answer.ended, answer.bound, answer.evidence)
        };
        let elapsed = clock.elapsed().saturating_sub(started);
        tracing::info!(%candidates, ?ended, bound = instance.unscaled_duration(total + bound), ?elapsed, "round ended");
        let covers = match candidates {
            Candidates::AllStages => instance.stage_form(),
            Candidates::Excess(_) | Candidates::Uses(_) => BoundCovers::CandidateSet,
        };
        Ok(Claim {
            ended,
            bound: total + bound,
            covers,
            evidence,
            steps: self.steps,
        })
    }
}
