//! The formulation of the Moccasin paper (Bartan et al., ICML 2023, section 2), as a reference to compare with.

mod model;
mod time;

use remat_ortools::clock::Ended;
use remat_ortools::cpsat::minimize;
use remat_ortools::program::LARGEST;
use remat_ortools::run::{self, Claim, Early, Incumbent, Run};
use remat_ortools::scaled::Scaled;
use remat_ortools::{ModelSize, OrTools, Refusal};
use remat_plan::{BoundCovers, Evidence, NodeId, OrderMode, Problem};
use remat_solve::{External, Outcome, Proves, Registry, SolveControl, Solver};

use model::{Goal, Model};
use time::Time;

/// How often a node may run where neither the problem nor the caller says. Section 3 of the paper: more gains nothing on its graphs.
const COMPUTES: u32 = 2;
/// More events than this are not modelled.
const MAX_EVENTS: u64 = 1 << 31;
/// Larger models are not built.
const MAX_TERMS: u64 = 4_000_000;

/// Retention intervals: up to `C` of them for each node, over staged events in fixed order, over plain positions in free order.
///
/// Phase 1 minimizes the larger of peak and budget, starting from every op once; its plan is what phase 2 starts from, which
/// minimizes duration. A warm start within the budget makes phase 1 superfluous.
///
/// An op with several results has one start and activity for all of them, and one end for each. The bound covers
/// [`BoundCovers::StageForm`] in fixed order and [`BoundCovers::AllPlans`] in free order, provided that the problem itself
/// allows no more than `C` computes; [`BoundCovers::CandidateSet`] else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moccasin {
    /// `C`; absent: what the problem allows, or 2.
    pub computes: Option<u32>,
}

impl Moccasin {
    /// As many computes as the problem allows, or 2.
    pub const NEW: Self = Self { computes: None };

    /// The size of the model of phase 2, without solving it.
    ///
    /// # Errors
    /// [`Refusal`] if the model cannot express the problem or would be too large.
    pub fn model_size(&self, problem: &Problem) -> Result<ModelSize, Refusal> {
        let control = SolveControl::default();
        let run = Run::new(self.name(), problem, &control);
        let instance = Scaled::of(problem, &run.structure, None)?;
        let phases = self.phases(&run, &instance)?;
        Ok(phases.model(Goal::Duration).size())
    }

    fn attempt(&self, run: &Run<'_>) -> Result<Outcome, Early> {
        let instance = Scaled::of(run.problem, &run.structure, None)?;
        run.needs_model(&instance)?;
        let phases = self.phases(run, &instance)?;
        Ok(phases.solve())
    }

    fn phases<'a>(&self, run: &'a Run<'a>, instance: &'a Scaled) -> Result<Phases<'a>, Refusal> {
        let most = self.computes.or(run.problem.max_computes).unwrap_or(COMPUTES).max(1);
        let computes = |node: NodeId| instance.max_computes(node).min(most);
        let nodes = || instance.nodes();
        let time = match run.problem.order {
            OrderMode::Fixed => Time::Staged { nodes: instance.len() },
            OrderMode::Free => Time::Free {
                runs: nodes().map(|node| computes(node) as usize).sum(),
            },
        };
        let edges: u64 = nodes()
            .flat_map(|node| {
                instance
                    .needs(node)
                    .iter()
                    .map(move |&value| (node, instance.producer(value)))
            })
            .map(|(user, producer)| 2 * (u64::from(computes(user)) + u64::from(computes(producer))))
            .sum();
        // Start and activity of each run, length and end for each of its values; a node without edges has them too.
        let variables: u64 = nodes()
            .map(|node| u64::from(computes(node)).saturating_mul(2 + 2 * instance.values(node).len() as u64))
            .fold(0, u64::saturating_add);
        let events = u64::try_from(time.events()).unwrap_or(u64::MAX);
        run.allow(edges.saturating_mul(2))?;
        if events > MAX_EVENTS || edges.max(variables) > MAX_TERMS {
            return Err(Refusal::TooLarge {
                terms: edges.max(variables).max(events),
                limit: MAX_TERMS,
            });
        }
        let demands = nodes().map(|node| i128::from(computes(node)) * i128::from(instance.bytes_of_run(node)));
        let step = demands.sum::<i128>().div_euclid(LARGEST.into()) + 1;
        let within = nodes().all(|node| instance.max_computes(node) <= computes(node));
        let covers = match run.problem.order {
            OrderMode::Fixed if within => instance.stage_form(),
            OrderMode::Free if within => instance.any_order(),
            OrderMode::Fixed | OrderMode::Free => BoundCovers::CandidateSet,
        };
        Ok(Phases {
            run,
            instance,
            most,
            time,
            covers,
            step: i64::try_from(step).unwrap_or(i64::MAX),
        })
    }
}

impl Solver for Moccasin {
    fn name(&self) -> &'static str {
        "moccasin"
    }

    fn describe(&self) -> &'static str {
        "the Moccasin paper's retention intervals on CP-SAT, in two phases; a reference"
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

struct Phases<'a> {
    run: &'a Run<'a>,
    instance: &'a Scaled,
    most: u32,
    time: Time,
    covers: BoundCovers,
    /// What sizes are divided by and rounded down, so that CP-SAT counts them: 1 but for large ones. A bound stays a bound, and what keeps
    /// the rounded budget is a plan only if it keeps that of the problem.
    step: i64,
}

impl Phases<'_> {
    fn model(&self, goal: Goal) -> Model {
        let computes = |node: NodeId| self.instance.max_computes(node).min(self.most);
        let budget = self.instance.scaled_budget(self.run.problem.budget);
        let model = Model::new(self.instance, self.time, computes, (budget, self.step), goal);
        tracing::info!(?goal, size = ?model.size(), "retention intervals");
        model
    }

    fn solve(&self) -> Outcome {
        let (run, instance) = (self.run, self.instance);
        let mut steps = 0;
        let warm = run.clock.control.warm_start;
        let warm = warm.and_then(|plan| run.incumbent(instance, instance.sequence_of(plan)?));
        let found = match warm {
            Some(found) => Ok(found),
            None => self.lower_the_peak(&mut steps),
        };
        let total = instance.total_duration();
        match found {
            Ok(found) => self.shorten(found, steps),
            Err((ended, reached)) => {
                let claim = Claim {
                    ended,
                    bound: total,
                    covers: self.covers,
                    evidence: Evidence::solver("CP-SAT", 0.0),
                    steps,
                };
                let mut outcome = run.outcome(instance, None, claim);
                outcome.lowest_peak = Some(instance.unscaled(reached));
                outcome
            }
        }
    }

    /// Phase 1. Fails with the lowest peak reached.
    fn lower_the_peak(&self, steps: &mut u64) -> Result<Incumbent, (Ended, i64)> {
        let (run, instance) = (self.run, self.instance);
        let budget = instance.scaled_budget(run.problem.budget);
        let every_op_once: Vec<NodeId> = instance.nodes().collect();
        let known = instance.peak(&every_op_once).unwrap_or(i64::MAX);
        let mut model = self.model(Goal::Peak { known });
        model.start_from(instance, &every_op_once);
        let (model, solutions) = model.done();
        let (mut lowest, mut found) = (known, None);
        let mut improved = |solution: &[i64], _: i64, _: i64| {
            let sequence = solutions.sequence(solution);
            lowest = lowest.min(instance.peak(&sequence).unwrap_or(i64::MAX));
            found = run.incumbent(instance, sequence).or(found.take());
        };
        let most = budget / self.step;
        let answer = minimize(model, most, &run.clock, &mut improved);
        *steps += answer.conflicts;
        found.ok_or(match answer.ended {
            Ended::Optimal if answer.bound > most => (Ended::Infeasible, lowest),
            Ended::Optimal if self.step > 1 => (Ended::Unproved, lowest),
            Ended::Optimal => {
                tracing::error!("a solution of the intervals does not keep the budget");
                (Ended::Failed, lowest)
            }
            ended => (ended, lowest),
        })
    }

    /// Phase 2.
    fn shorten(&self, start: Incumbent, steps: u64) -> Outcome {
        let (run, instance) = (self.run, self.instance);
        let total = instance.total_duration();
        run.report(instance, &start, total, steps);
        let mut model = self.model(Goal::Duration);
        model.start_from(instance, &start.sequence);
        let (model, solutions) = model.done();
        let mut best = start;
        // A solution is always a plan. Each run has an event of its own, so their order is that of a sequence; every use lies in
        // an active interval, so by then its value was made; the intervals of a value are disjoint, so the one over a use belongs
        // to the latest run before it, and what the sequence holds is part of what the intervals hold.
        let mut improved = |solution: &[i64], _: i64, bound: i64| {
            let Some(found) = run.incumbent(instance, solutions.sequence(solution)) else {
                debug_assert!(self.step > 1, "a solution of the intervals is no plan");
                tracing::debug!("a solution of the intervals does not keep the budget");
                return;
            };
            if found.duration < best.duration {
                run.report(instance, &found, total + bound, steps);
                best = found;
            }
        };
        let answer = minimize(model, 0, &run.clock, &mut improved);
        let claim = Claim {
            ended: answer.ended,
            bound: total + answer.bound,
            covers: self.covers,
            evidence: answer.evidence,
            steps: steps + answer.conflicts,
        };
        run.outcome(instance, Some(&best), claim)
    }
}

/// Adds the solver of this crate.
pub fn register(registry: &mut Registry) {
    registry.add([&Moccasin::NEW as &dyn Solver]);
}
