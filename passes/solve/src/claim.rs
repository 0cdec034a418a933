//! What solvers tell and certify that prove no bound of their own.

use web_time::Instant;

use remat_plan::{BoundCovers, Certificate, Evidence, Objective, OrderMode, Plan, Problem, Status, StopReason};

use crate::{Phase, Progress, SolveControl};

/// One call of a solver that knows a trivial bound only, such as that no plan is shorter than running every op once.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The problem it was called with.
    pub problem: &'a Problem,
    /// The control it was called with.
    pub control: &'a SolveControl<'a>,
    /// Name of the solver.
    pub solver: &'static str,
    /// Threads that worked.
    pub threads: usize,
    /// What no plan undercuts, in the unit of the objective.
    pub bound: u64,
    /// When the call began.
    pub started: Instant,
}

impl<'a> Call<'a> {
    /// A call of a solver on one thread that begins now, with the bound that no plan takes less time than running every op once.
    #[must_use]
    pub fn new(solver: &'static str, problem: &'a Problem, control: &'a SolveControl<'a>) -> Self {
        Self {
            problem,
            control,
            solver,
            threads: 1,
            bound: problem.total_duration(),
            started: Instant::now(),
        }
    }
}

impl Call<'_> {
    /// Tells the observer, if there is one, of a plan with this objective and peak.
    pub fn tell(&self, objective: u64, peak: u64, steps: u64, phase: Phase, plan: &dyn Fn() -> Option<Plan>) {
        if let Some(observer) = self.control.observer {
            let progress = Progress {
                objective,
                bound: self.bound,
                gap: Certificate::relative_gap(objective, self.bound),
                peak,
                elapsed: self.started.elapsed(),
                steps,
                phase,
                baseline: None,
            };
            observer.improved(&progress, plan);
        }
    }

    /// The certificate of a plan with this objective. It is optimal, and that is why the search stopped, if it reaches the bound.
    #[must_use]
    pub fn found(&self, objective: u64, stop: StopReason, steps: u64) -> Certificate {
        self.certificate(Status::Feasible, Some(objective), stop, steps)
    }

    /// The certificate where no plan was found, because none exists or for want of luck.
    #[must_use]
    pub fn not_found(&self, status: Status, stop: StopReason, steps: u64) -> Certificate {
        self.certificate(status, None, stop, steps)
    }

    fn certificate(&self, status: Status, objective: Option<u64>, stop: StopReason, steps: u64) -> Certificate {
        let infeasible = status == Status::Infeasible;
        let mut certificate = Certificate {
            status,
            objective,
            bound: self.bound,
            // That there is no plan in one order says nothing about others; the bound holds for all.
            bound_covers: if infeasible && self.problem.order == OrderMode::Fixed {
                BoundCovers::FixedOrder
            } else {
                BoundCovers::AllPlans
            },
            // What one op needs bounds the peak; times and energies are bounded by running every op once, which needs no proof.
            evidence: (infeasible || self.problem.objective == Objective::Peak).then_some(Evidence::Combinatorial),
            gap: None,
            stop,
            solver: self.solver.to_owned(),
            seed: self.control.seed,
            threads: self.threads,
            steps,
            elapsed_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            problem: self.problem.digest(),
        };
        certificate.settle();
        certificate
    }
}
