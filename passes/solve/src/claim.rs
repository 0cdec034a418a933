//! What solvers tell and certify that prove no bound of their own.

use std::time::Instant;

use remat_plan::{BoundCovers, Certificate, OrderMode, Plan, Problem, Status, StopReason};

use crate::{Phase, Progress, SolveControl};

/// One call of a solver that knows the trivial bound only: no plan is shorter than running every op once.
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
    /// When the call began.
    pub started: Instant,
}

impl Call<'_> {
    /// Tells the observer, if there is one, of a plan of this duration and peak.
    pub fn tell(&self, duration: u64, peak: u64, steps: u64, phase: Phase, plan: &dyn Fn() -> Option<Plan>) {
        if let Some(observer) = self.control.observer {
            let bound = self.problem.total_duration();
            let progress = Progress {
                objective: duration,
                bound,
                gap: Certificate::relative_gap(duration, bound),
                peak,
                elapsed: self.started.elapsed(),
                steps,
                phase,
            };
            observer.improved(&progress, plan);
        }
    }

    /// The certificate of a plan of this duration. It is optimal, and that is why the search stopped, if it is as short as the bound.
    #[must_use]
    pub fn found(&self, duration: u64, stop: StopReason, steps: u64) -> Certificate {
        let (status, stop) = if duration <= self.problem.total_duration() {
            (Status::Optimal, StopReason::Proved)
        } else {
            (Status::Feasible, stop)
        };
        self.certificate(status, Some(duration), stop, steps)
    }

    /// The certificate where no plan was found, because none exists or for want of luck.
    #[must_use]
    pub fn not_found(&self, status: Status, stop: StopReason, steps: u64) -> Certificate {
        self.certificate(status, None, stop, steps)
    }

    fn certificate(&self, status: Status, objective: Option<u64>, stop: StopReason, steps: u64) -> Certificate {
        let bound = self.problem.total_duration();
        // That there is no plan in one order says nothing about others; the bound holds for all.
        let fixed = status == Status::Infeasible && self.problem.order == OrderMode::Fixed;
        Certificate {
            status,
            objective,
            bound,
            bound_covers: if fixed {
                BoundCovers::FixedOrder
            } else {
                BoundCovers::AllPlans
            },
            gap: objective.map(|objective| Certificate::relative_gap(objective, bound)),
            stop,
            solver: self.solver.to_owned(),
            seed: self.control.seed,
            threads: self.threads,
            steps,
            elapsed_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            problem: self.problem.digest(),
        }
    }
}
