//! What every solver on OR-Tools does before and after its model: limits, answers that need no model, certificates.

use remat_plan::{
    BoundCovers, Certificate, Evidence, NodeId, OpId, OrderMode, Plan, Problem, Status, StopReason, Structure,
    lower_sequence,
};
use remat_solve::{Call, Outcome, Phase, Search, SolveControl, Solver};

use crate::clock::{Clock, Ended};
use crate::library::loaded;
use crate::scaled::{Refusal, Scaled};

/// What a solver takes for each term of a model, the model itself included, and what it takes at least: estimated for CP-SAT with
/// two workers, generously.
const BYTES_PER_TERM: u64 = 600;
const BYTES_AT_LEAST: u64 = 32 << 20;
/// Steps of the local search that gives the first plan where the caller gives none.
const FIRST_PLAN_STEPS: u64 = 1_000_000;

/// Bytes that a model of so many terms takes together with what solves it.
#[must_use]
pub fn bytes_of(terms: u64) -> u64 {
    terms.saturating_mul(BYTES_PER_TERM).saturating_add(BYTES_AT_LEAST)
}

/// Terms of the largest model that so many bytes are enough for.
#[must_use]
pub fn terms_within(bytes: u64) -> u64 {
    bytes.saturating_sub(BYTES_AT_LEAST) / BYTES_PER_TERM
}

/// Why an attempt ends without its model.
#[derive(Debug)]
pub enum Early {
    /// The answer needs none.
    Answered(Box<Outcome>),
    /// It cannot be made, or not be solved.
    Refused(Refusal),
}

impl From<Refusal> for Early {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// One call of the solver of that name. A refusal is an answer without a plan.
pub fn call(
    name: &'static str,
    problem: &Problem,
    control: &SolveControl<'_>,
    attempt: impl FnOnce(&Run<'_>) -> Result<Outcome, Early>,
) -> Outcome {
    let run = Run::new(name, problem, control);
    match attempt(&run) {
        Ok(outcome) => outcome,
        Err(Early::Answered(outcome)) => *outcome,
        Err(Early::Refused(refusal)) => {
            tracing::info!(%refusal, solver = name, "refused");
            let bound = Bound::trivial(problem.total_duration());
            run.answer(None, None, bound, (Ended::Failed, 0))
        }
    }
}

/// A sequence within the budget.
#[derive(Clone, Debug)]
pub struct Incumbent {
    /// Its runs.
    pub sequence: Vec<NodeId>,
    /// Time of its runs, in units.
    pub duration: i64,
    /// Its peak, in units.
    pub peak: i64,
}

/// What a model has to say in the end.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Why the solver ended.
    pub ended: Ended,
    /// Lower bound on the time of the runs, in units.
    pub bound: i64,
    /// The plans that the bound covers.
    pub covers: BoundCovers,
    /// What the bound, or that there is no plan, rests on.
    pub evidence: Evidence,
    /// Conflicts met.
    pub steps: u64,
}

/// A bound on the objective, as it is certified.
pub struct Bound {
    /// In the unit of the objective.
    pub value: u64,
    /// The plans that it covers.
    pub covers: BoundCovers,
    /// What it rests on.
    pub evidence: Option<Evidence>,
}

impl Bound {
    /// What running every op once takes, and so every plan.
    #[must_use]
    pub fn trivial(value: u64) -> Self {
        Self {
            value,
            covers: BoundCovers::AllPlans,
            evidence: None,
        }
    }

    /// Whether it rests on integers alone.
    pub fn is_proved(&self) -> bool {
        !matches!(&self.evidence, Some(Evidence::Solver { tolerance, .. }) if *tolerance > 0.0)
    }
}

/// One call of a solver.
pub struct Run<'a> {
    /// Name of the solver.
    pub name: &'static str,
    /// The problem it was called with.
    pub problem: &'a Problem,
    /// What follows from the problem.
    pub structure: Structure,
    /// The limits of the call.
    pub clock: Clock<'a>,
}

impl<'a> Run<'a> {
    /// A call that begins now.
    pub fn new(name: &'static str, problem: &'a Problem, control: &'a SolveControl<'a>) -> Self {
        Self {
            name,
            problem,
            structure: Structure::of(problem),
            clock: Clock::new(control),
        }
    }

    /// The problem in reference order or, in free order, in that of the first computes of a plan.
    ///
    /// # Errors
    /// [`Refusal::Range`] if sums are too large to be counted exactly.
    pub fn instance(&self, plan: Option<&Plan>) -> Result<Scaled, Refusal> {
        let order = plan
            .filter(|_| self.problem.order == OrderMode::Free)
            .and_then(|plan| self.order_of(plan));
        Scaled::of(self.problem, &self.structure, order)
    }

    /// Refuses a model with so many terms where the caller allows too little memory for it.
    ///
    /// # Errors
    /// [`Refusal::Memory`] says how much it would take.
    pub fn allow(&self, terms: u64) -> Result<(), Refusal> {
        let bytes = bytes_of(terms);
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

    /// Ends the attempt where no model is needed: one op exceeds the budget alone, or nothing does.
    ///
    /// # Errors
    /// [`Early::Answered`] then, and [`Refusal::Library`] where a model is needed and nothing is there to solve it.
    pub fn needs_model(&self, instance: &Scaled) -> Result<(), Early> {
        let claim = |ended, covers| Claim {
            ended,
            bound: instance.total_duration(),
            covers,
            evidence: Evidence::Combinatorial,
            steps: 0,
        };
        let answered =
            |found: Option<&Incumbent>, claim| Err(Early::Answered(Box::new(self.outcome(instance, found, claim))));
        if self.problem.check(&self.structure).is_err() {
            return answered(None, claim(Ended::Infeasible, self.every_plan()));
        }
        match self.incumbent(instance, instance.nodes().collect()) {
            Some(found) => answered(Some(&found), claim(Ended::Optimal, BoundCovers::AllPlans)),
            None => Ok(loaded().map(|_| ()).map_err(|error| Refusal::from(error.clone()))?),
        }
    }

    /// What a statement about every plan in the order of the problem covers.
    #[must_use]
    pub fn every_plan(&self) -> BoundCovers {
        match self.problem.order {
            OrderMode::Fixed => BoundCovers::FixedOrder,
            OrderMode::Free => BoundCovers::AllPlans,
        }
    }

    /// The problem in the order of a plan to start from, and that plan where it keeps the budget: the caller's, or else one of the local search,
    /// the same on every machine.
    ///
    /// # Errors
    /// As [`Self::needs_model`] and [`Self::instance`].
    pub fn started(&self) -> Result<(Scaled, Option<Incumbent>), Early> {
        let control = self.clock.control;
        let mut instance = self.instance(control.warm_start)?;
        self.needs_model(&instance)?;
        let mut searched = None;
        if control.warm_start.is_none() {
            let mut first = SolveControl::new().seed(control.seed).step_limit(FIRST_PLAN_STEPS);
            first.deadline = self.clock.share(0.25).deadline();
            first.cancel = control.cancel;
            searched = Search.solve(self.problem, &first).plan;
            if searched.is_some() {
                // Where the problem allows any order, the search may have found a better one.
                instance = self.instance(searched.as_ref())?;
                self.needs_model(&instance)?;
            }
        }
        let start = control.warm_start.or(searched.as_ref());
        let start = start.and_then(|plan| self.incumbent(&instance, instance.sequence_of(plan)?));
        Ok((instance, start))
    }

    /// The sequence with its figures, if it runs and keeps the budget.
    #[must_use]
    pub fn incumbent(&self, instance: &Scaled, sequence: Vec<NodeId>) -> Option<Incumbent> {
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

    /// Tells the observer of a sequence and a bound in units.
    pub fn report(&self, instance: &Scaled, found: &Incumbent, bound: i64, steps: u64) {
        let objective = instance.unscaled_duration(found.duration);
        let bound = instance.unscaled_duration(bound);
        let peak = instance.unscaled(found.peak);
        tracing::debug!(objective, bound, peak, "improved");
        self.tell(objective, bound, peak, steps, &|| self.lower(instance, &found.sequence));
    }

    /// Tells the observer of a plan, a bound on its objective, its peak in bytes, and the steps until then.
    pub fn tell(&self, objective: u64, bound: u64, peak: u64, steps: u64, plan: &dyn Fn() -> Option<Plan>) {
        let call = Call {
            problem: self.problem,
            control: self.clock.control,
            solver: self.name,
            threads: self.clock.control.threads.max(1),
            bound,
            started: self.clock.started(),
        };
        call.tell(objective, peak, steps, Phase::Exact, plan);
    }

    fn lower(&self, instance: &Scaled, sequence: &[NodeId]) -> Option<Plan> {
        let ops = sequence.iter().map(|&node| instance.op(node));
        let plan = lower_sequence(self.problem, &self.structure, ops);
        plan.inspect_err(|error| tracing::error!(%error, "a sequence of the model could not be lowered"))
            .ok()
    }

    /// The answer of a run that ended with this incumbent and this claim.
    #[must_use]
    pub fn outcome(&self, instance: &Scaled, found: Option<&Incumbent>, claim: Claim) -> Outcome {
        let plan = found.and_then(|found| self.lower(instance, &found.sequence));
        let objective: Option<u64> = plan
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
        let lowest_peak = found.map(|found| instance.unscaled(found.peak));
        self.answer(plan.zip(objective), lowest_peak, bound, (claim.ended, claim.steps))
    }

    /// The answer with a plan and its objective, if there is one, why the solver ended, and after how many steps.
    #[must_use]
    pub fn answer(
        &self,
        found: Option<(Plan, u64)>,
        lowest_peak: Option<u64>,
        bound: Bound,
        (ended, steps): (Ended, u64),
    ) -> Outcome {
        let (plan, objective) = found.unzip();
        let status = match objective {
            Some(objective) if objective <= bound.value && bound.is_proved() => Status::Optimal,
            Some(_) => Status::Feasible,
            None if ended == Ended::Infeasible => Status::Infeasible,
            None => Status::Unknown,
        };
        let stop = match ended {
            _ if status == Status::Optimal => StopReason::Proved,
            Ended::Optimal | Ended::Infeasible => StopReason::Proved,
            Ended::TimeLimit => StopReason::TimeLimit,
            Ended::StepLimit => StopReason::StepLimit,
            Ended::Cancelled => StopReason::Cancelled,
            Ended::Failed => StopReason::Refused,
            Ended::Unproved => StopReason::Converged,
        };
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
        Outcome::new(plan, certificate, lowest_peak)
    }
}
