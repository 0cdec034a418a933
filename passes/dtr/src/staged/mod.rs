//! DTR as a compiler pass: it is executed once, on the static graph, and the ops it ran in their order are the plan. Nothing is
//! decided at run time.

mod trace_of;

use remat_plan::{OpId, Plan, Problem, Status, StopReason, Structure, baseline, lower_sequence};
use remat_solve::{Call, Figures, Outcome, Phase, Registry, SolveControl, Solver, measure};

use self::trace_of::trace_of;
use crate::runtime::{Runtime, Stop};
use crate::{Deallocation, Heuristic, SimulateOptions, Trace};

/// A plan that takes more than this multiple of the baseline's time counts as none.
const THRASH_LIMIT: f64 = 10.0;
/// Executions under larger budgets that may be spent on finding one that would do.
const PROBES: u32 = 6;

/// Executes DTR with one heuristic and hands out what it did as a plan.
///
/// First runs follow the reference order. Memory is counted as the problem has it: all operands, all results, duplicates and workspace
/// of an op together. Graph outputs stay once they are computed. Storages that cannot be computed again are tried both ways: kept
/// as long as something may need them, and freed after their last use, which pins what descends from them; the better plan is
/// taken. Everything is deterministic.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    name: &'static str,
    description: &'static str,
    heuristic: Heuristic,
}

static ALL: [Staged; 3] = [
    Staged {
        name: "dtr",
        description: "dynamic tensor rematerialization, staged; evicts by cost with evicted neighbourhood, size and staleness",
        heuristic: Heuristic::Dtr,
    },
    Staged {
        name: "dtr:eq",
        description: "dynamic tensor rematerialization, staged; evicts by cost with evicted classes, size and staleness",
        heuristic: Heuristic::DtrEq,
    },
    Staged {
        name: "dtr:msps",
        description: "dynamic tensor rematerialization, staged; evicts by cost with evicted ancestors, and size",
        heuristic: Heuristic::Msps,
    },
];

impl Staged {
    /// One for each heuristic that is ever the best of the paper's on the static graphs.
    pub const ALL: &'static [Self] = &ALL;
}

/// Adds the solvers of this crate.
pub fn register(registry: &mut Registry) {
    registry.add(Staged::ALL.iter().map(|solver| solver as &dyn Solver));
}

/// Ops of the largest problem on which all executions together are quick.
const QUICK: usize = 1_000;

impl Solver for Staged {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.description
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let structure = Structure::of(problem);
        let (trace, ops) = trace_of(problem, &structure);
        let call = Call::new(self.name, problem, control);
        if problem.check(&structure).is_err() {
            return Outcome::new(None, call.not_found(Status::Infeasible, StopReason::Proved, 0), None);
        }
        let mut execution = Execution {
            problem,
            structure: &structure,
            trace: &trace,
            ops: &ops,
            control,
            heuristic: self.heuristic,
            steps: 0,
        };
        match execution.solve() {
            Ok(found) => {
                let (figures, plan) = (&found.figures, || Some(found.plan.clone()));
                call.tell(figures.duration, figures.peak, execution.steps, Phase::Greedy, &plan);
                let certificate = call.found(found.figures.duration, StopReason::Converged, execution.steps);
                Outcome::new(Some(found.plan), certificate, Some(found.figures.peak))
            }
            Err((stop, lowest_peak)) => Outcome::new(
                None,
                call.not_found(Status::Unknown, stop, execution.steps),
                Some(lowest_peak),
            ),
        }
    }

    fn is_quick(&self, problem: &Problem) -> bool {
        problem.ops.len() <= QUICK
    }
}

/// A plan and what it takes.
struct Found {
    plan: Plan,
    figures: Figures,
}

/// One call of a solver.
struct Execution<'a> {
    problem: &'a Problem,
    structure: &'a Structure,
    trace: &'a Trace,
    ops: &'a [OpId],
    control: &'a SolveControl<'a>,
    heuristic: Heuristic,
    steps: u64,
}

impl Execution<'_> {
    fn found(&self, plan: Plan) -> Found {
        let figures = measure(self.problem, self.structure, &plan);
        Found { plan, figures }
    }

    /// The baseline where it fits, else the better of the plans under a budget.
    fn best(&mut self, budget: Option<u64>) -> Result<Found, Stop> {
        let unchanged = self.found(baseline(self.problem));
        if budget.is_none_or(|budget| unchanged.figures.peak <= budget) {
            return Ok(unchanged);
        }
        let freed_early = self.run(budget, true);
        if !self.trace.ops.iter().any(|op| op.most_runs < u32::MAX) {
            return freed_early;
        }
        match (freed_early, self.run(budget, false)) {
            (Ok(a), Ok(b)) => Ok(if b.figures < a.figures { b } else { a }),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
            (Err(stop), Err(_)) => Err(stop),
        }
    }

    /// Executes DTR once.
    fn run(&mut self, budget: Option<u64>, banishes_pinned: bool) -> Result<Found, Stop> {
        let options = SimulateOptions {
            heuristic: self.heuristic,
            deallocation: Deallocation::Eager,
            budget,
            thrash_limit: THRASH_LIMIT,
            seed: self.control.seed,
        };
        let control = self.control;
        let interrupt = || control.is_cancelled() || control.is_late();
        let steps_left = control.step_limit.map(|limit| limit.saturating_sub(self.steps));
        let mut runtime = Runtime::new(self.trace, &options)
            .banishing_pinned(banishes_pinned)
            .at_most(steps_left.map(|left| left.max(self.ops.len() as u64)))
            .interrupted_by(&interrupt);
        let result = runtime.execute();
        self.steps += runtime.run_count;
        result?;
        let sequence = runtime.sequence.iter().map(|&op| self.ops[op.index()]);
        let plan = lower_sequence(self.problem, self.structure, sequence);
        let plan = plan.expect("the runtime runs every op, each after what it reads");
        Ok(self.found(plan))
    }

    /// A plan within the budget, or why there is none and the lowest peak that was reached instead.
    ///
    /// Where the budget itself is missed, a few larger ones are tried: they say what would do, and since lowering frees earlier
    /// than DTR does, their plans may need no more than the budget that was missed.
    fn solve(&mut self) -> Result<Found, (StopReason, u64)> {
        let stop = match self.best(self.problem.budget) {
            Ok(found) => return Ok(found),
            Err(stop) => stop,
        };
        let missed = self.problem.budget.unwrap_or(u64::MAX);
        let mut above = self.found(baseline(self.problem)).figures.peak;
        if stop == Stop::Interrupted {
            return Err((self.interruption(), above));
        }
        let mut below = missed;
        for _ in 0..PROBES {
            if above <= below.saturating_add(1) {
                break;
            }
            let middle = below + (above - below) / 2;
            match self.best(Some(middle)) {
                Ok(found) if found.figures.peak <= missed => return Ok(found),
                Ok(found) => above = found.figures.peak.min(middle),
                Err(Stop::Interrupted) => return Err((self.interruption(), above)),
                Err(Stop::OutOfMemory | Stop::Thrash) => below = middle,
            }
        }
        Err((StopReason::Converged, above))
    }

    fn interruption(&self) -> StopReason {
        if self.control.is_cancelled() {
            StopReason::Cancelled
        } else {
            StopReason::TimeLimit
        }
    }
}
