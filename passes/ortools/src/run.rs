//! What every solver of this crate does before and after its model: limits, answers that need no model, certificates.

use remat_plan::{
    BoundCovers, Certificate, Evidence, NodeId, OpId, OrderMode, Plan, Problem, Status, StopReason, Structure,
    lower_sequence,
};
use remat_solve::{Outcome, Phase, Progress, SolveControl};

use crate::clock::{Clock, Ended};
use crate::library::library;
use crate::scaled::{Refusal, Scaled};

/// What a solver takes for each term of a model, the model itself included, and what it takes at least: estimated for CP-SAT with
/// two workers, generously.
pub(crate) const BYTES_PER_TERM: u64 = 600;
pub(crate) const BYTES_AT_LEAST: u64 = 32 << 20;

/// A sequence within the budget.
#[derive(Clone, Debug)]
pub(crate) struct Incumbent {
    pub(crate) sequence: Vec<NodeId>,
    /// Time of its runs, in units.
    pub(crate) duration: i64,
    /// Its peak, in units.
    pub(crate) peak: i64,
}

/// What a model has to say in the end.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) ended: Ended,
    /// Lower bound on the time of the runs, in units.
    pub(crate) bound: i64,
    pub(crate) covers: BoundCovers,
    /// What the bound, or that there is no plan, rests on.
    pub(crate) evidence: Evidence,
    /// Conflicts met.
    pub(crate) steps: u64,
}

/// A bound on the objective, as it is certified.
pub(crate) struct Bound {
    pub(crate) value: u64,
    pub(crate) covers: BoundCovers,
    pub(crate) evidence: Option<Evidence>,
}

impl Bound {
    /// What running every op once takes, and so every plan.
    pub(crate) fn trivial(value: u64) -> Self {
        Self {
            value,
            covers: BoundCovers::AllPlans,
            evidence: None,
        }
    }

    /// Whether it rests on integers alone.
    pub(crate) fn is_proved(&self) -> bool {
        !matches!(&self.evidence, Some(Evidence::Solver { tolerance, .. }) if *tolerance > 0.0)
    }
}

/// One call of a solver.
pub(crate) struct Run<'a> {
    pub(crate) name: &'static str,
    pub(crate) problem: &'a Problem,
    pub(crate) structure: Structure,
    pub(crate) clock: Clock<'a>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(name: &'static str, problem: &'a Problem, control: &'a SolveControl<'a>) -> Self {
        Self {
            name,
            problem,
            structure: Structure::of(problem),
            clock: Clock::new(control),
        }
    }

    /// The problem in reference order or, in free order, in that of the first computes of a plan.
    pub(crate) fn instance(&self, plan: Option<&Plan>) -> Result<Scaled, Refusal> {
        let order = plan
            .filter(|_| self.problem.order == OrderMode::Free)
            .and_then(|plan| self.order_of(plan));
        Scaled::of(self.problem, &self.structure, order)
    }

    /// Refuses a model with so many terms where the caller allows too little memory for it.
    pub(crate) fn allow(&self, terms: u64) -> Result<(), Refusal> {
        let bytes = terms.saturating_mul(BYTES_PER_TERM).saturating_add(BYTES_AT_LEAST);
        match self.clock.control.memory_limit {
            Some(limit) if bytes > limit => Err(Refusal::Memory { bytes, limit }),
            _ => Ok(()),
        }
    }

    /// The order of first computes of a plan, if it is one in which the problem can be solved.
    fn order_of(&self, plan: &Plan) -> Option<Vec<OpId>> {
        let mut ran = vec![false; self.problem.ops.len()];
        let first = |op: &OpId| !self.structure.is_lazy(*op) && !std::mem::replace(&mut ran[op.index()], true);
        let order: Vec<OpId> = plan.runs().filter(first).collect();
        let complete = order.len() == self.structure.scheduled().count();
        let mut place = vec![0; self.problem.ops.len()];
        for (index, op) in order.iter().enumerate() {
            place[op.index()] = index;
        }
        let mut pairs = self.problem.anti_dependences.iter();
        let in_order = pairs.all(|pair| place[pair.before.index()] < place[pair.after.index()]);
        (complete && in_order && lower_sequence(self.problem, &self.structure, order.iter().copied()).is_ok())
            .then_some(order)
    }

    /// The answer where no model is needed: one op exceeds the budget alone, or nothing does.
    ///
    /// # Errors
    /// [`Refusal::Library`] where a model is needed and nothing is there to solve it.
    pub(crate) fn without_model(&self, instance: &Scaled) -> Result<Option<Outcome>, Refusal> {
        let total = instance.total_duration();
        if self.problem.check(&self.structure).is_err() {
            let covers = match self.problem.order {
                OrderMode::Fixed => BoundCovers::FixedOrder,
                OrderMode::Free => BoundCovers::AllPlans,
            };
            let claim = Claim {
                ended: Ended::Infeasible,
                bound: total,
                covers,
                evidence: Evidence::Combinatorial,
                steps: 0,
            };
            return Ok(Some(self.outcome(instance, None, claim)));
        }
        let sequence: Vec<NodeId> = instance.nodes().collect();
        let Some(found) = self.incumbent(instance, sequence) else {
            library().map_err(Clone::clone)?;
            return Ok(None);
        };
        let claim = Claim {
            ended: Ended::Optimal,
            bound: total,
            covers: BoundCovers::AllPlans,
            evidence: Evidence::Combinatorial,
            steps: 0,
        };
        Ok(Some(self.outcome(instance, Some(&found), claim)))
    }

    /// The sequence with its figures, if it runs and keeps the budget.
    pub(crate) fn incumbent(&self, instance: &Scaled, sequence: Vec<NodeId>) -> Option<Incumbent> {
        let peak = instance
            .peak(&sequence)
            .filter(|&peak| peak <= instance.scaled_budget(self.problem.budget))?;
        let duration = sequence.iter().map(|&node| instance.duration(node)).sum();
        Some(Incumbent {
            sequence,
            duration,
            peak,
        })
    }

    /// Tells the observer of an improvement.
    pub(crate) fn report(&self, instance: &Scaled, found: &Incumbent, bound: i64, steps: u64) {
        let objective = instance.unscaled_duration(found.duration);
        let bound = instance.unscaled_duration(bound);
        let peak = instance.unscaled(found.peak);
        let elapsed = self.clock.elapsed();
        tracing::debug!(objective, bound, peak, ?elapsed, "improved");
        if let Some(observer) = self.clock.control.observer {
            let gap = Certificate::relative_gap(objective, bound);
            let progress = Progress {
                objective,
                bound,
                gap,
                peak,
                elapsed,
                steps,
                phase: Phase::Exact,
                baseline: None,
            };
            observer.improved(&progress, &|| self.lower(instance, &found.sequence));
        }
    }

    fn lower(&self, instance: &Scaled, sequence: &[NodeId]) -> Option<Plan> {
        let ops = sequence.iter().map(|&node| instance.op(node));
        let plan = lower_sequence(self.problem, &self.structure, ops);
        plan.inspect_err(|error| tracing::error!(%error, "a sequence of the model could not be lowered"))
            .ok()
    }

    /// The answer of a run that ended with this incumbent and this claim.
    pub(crate) fn outcome(&self, instance: &Scaled, found: Option<&Incumbent>, claim: Claim) -> Outcome {
        let plan = found.and_then(|found| self.lower(instance, &found.sequence));
        let objective = plan
            .as_ref()
            .map(|plan| plan.runs().map(|op| self.problem.ops[op].duration).sum());
        let is_infeasible = objective.is_none() && claim.ended == Ended::Infeasible;
        let mut bound = Bound {
            value: instance.unscaled_duration(claim.bound),
            covers: claim.covers,
            evidence: Some(claim.evidence),
        };
        let total = self.problem.total_duration();
        if is_infeasible {
            bound.value = bound.value.max(total);
        } else if bound.value <= total {
            // Every plan takes that long: a stronger statement than that of the model.
            bound = Bound::trivial(total);
        }
        let status = match objective {
            Some(objective) if objective <= bound.value && bound.is_proved() => Status::Optimal,
            Some(_) => Status::Feasible,
            None if is_infeasible => Status::Infeasible,
            None => Status::Unknown,
        };
        let stop = match claim.ended {
            _ if status == Status::Optimal => StopReason::Proved,
            Ended::Optimal | Ended::Infeasible => StopReason::Proved,
            Ended::TimeLimit => StopReason::TimeLimit,
            Ended::StepLimit => StopReason::StepLimit,
            Ended::Cancelled => StopReason::Cancelled,
            Ended::Failed => StopReason::Refused,
            Ended::Unproved => StopReason::Converged,
        };
        let lowest_peak = found.map(|found| instance.unscaled(found.peak));
        Outcome {
            parts: Vec::new(),
            plan,
            certificate: self.certificate(status, objective, bound, stop, claim.steps),
            lowest_peak,
        }
    }

    /// The answer where no model is made: the warm start, if it is any good, is all there is.
    pub(crate) fn refused(&self, refusal: &Refusal) -> Outcome {
        tracing::info!(%refusal, solver = self.name, "refused");
        let bound = Bound::trivial(self.problem.total_duration());
        let certificate = self.certificate(Status::Unknown, None, bound, StopReason::Refused, 0);
        Outcome {
            parts: Vec::new(),
            plan: None,
            certificate,
            lowest_peak: None,
        }
    }

    pub(crate) fn certificate(
        &self,
        status: Status,
        objective: Option<u64>,
        bound: Bound,
        stop: StopReason,
        steps: u64,
    ) -> Certificate {
        let control = self.clock.control;
        let mut certificate = Certificate {
            status,
            objective,
            bound: bound.value,
            bound_covers: bound.covers,
            evidence: bound.evidence,
            gap: None,
            stop,
            solver: self.name.to_owned(),
            seed: control.seed,
            threads: control.threads.max(1),
            steps,
            elapsed_ms: u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX),
            problem: self.problem.digest(),
        };
        certificate.settle();
        certificate
    }
}
