//! From a problem to plans that the checker accepts.

use remat_plan::{
    Block, BlockPlacement, Certificate, OrderMode, PlacedInterval, Plan, Problem, Status, StopReason, Structure,
    baseline,
};
use remat_schedule::{PlanPeaks, Schedule, encode, placement_of, plan_of};
use remat_solve::{Domain, SolveControl, Solver};
use remat_verify::{Code, Replay, check_block, intervals, replay};

/// Ops of a problem that solvers are run on.
const MOST_OPS: usize = 64;
/// Steps of a search.
const STEPS: u64 = 200;

/// Plans a problem with several solvers under several budgets. Whatever they return is replayed, and what they claim is compared with
/// that and with what the others claim. Returns a plan for each budget that one was found for, the baseline first.
pub(crate) fn plans(problem: &Problem) -> Vec<(Problem, Plan)> {
    assert_eq!(problem.validate(), Ok(()));
    let free = Problem {
        budget: None,
        deadline: None,
        ..problem.clone()
    };
    let unchanged = baseline(&free);
    let found = match replay(&free, &unchanged) {
        Ok(found) => found,
        // Durations fit, but not times of transfers and waiting: none in a baseline.
        Err(rejection) => panic_with(&format!("the baseline is rejected: {rejection}"), &free),
    };
    is_a_schedule(&free, &unchanged, &found);
    let mut plans = vec![(free.clone(), unchanged)];
    if problem.ops.is_empty() || problem.ops.len() > MOST_OPS {
        return plans;
    }
    let structure = Structure::of(problem);
    let least = free.bottleneck(&structure).map_or(0, |most| most.bytes);
    assert!(
        least <= found.peak,
        "a lower bound of {least} on a peak of {}",
        found.peak
    );
    let middle = least + (found.peak - least) / 2;
    let budgets = [problem.budget.unwrap_or(middle), middle, least];
    for (round, budget) in budgets.into_iter().enumerate() {
        let order = match (round, problem.order) {
            (1, OrderMode::Fixed) => OrderMode::Free,
            (1, OrderMode::Free) => OrderMode::Fixed,
            (_, order) => order,
        };
        let problem = Problem {
            budget: Some(budget),
            order,
            ..problem.clone()
        };
        if problem.check(&structure).is_ok() {
            plans.extend(solved(&problem, round).map(|plan| (problem, plan)));
        }
    }
    plans
}

/// The plan of one of the solvers, if one finds any.
fn solved(problem: &Problem, round: usize) -> Option<Plan> {
    let mut best: Option<(Plan, Replay)> = None;
    let mut claims = Vec::new();
    for solver in chosen(problem, round) {
        let control = SolveControl::new().step_limit(STEPS).threads(1);
        let outcome = solver.solve(problem, &control);
        if let Some(plan) = outcome.plan {
            match replay(problem, &plan) {
                Ok(replay) => {
                    is_a_schedule(problem, &plan, &replay);
                    holds(problem, &outcome.certificate, &replay);
                    if best.is_none() {
                        best = Some((plan, replay));
                    }
                }
                Err(rejection) => {
                    // `remat::solve` takes these as no plan: not every solver knows deadlines, and none how long a plan may become.
                    let is_late = problem.deadline.is_some() && rejection.codes() == [Code::V019];
                    let is_endless = rejection.codes() == [Code::V016];
                    if !is_late && !is_endless {
                        let name = solver.name();
                        panic_with(&format!("the plan of `{name}` is rejected: {rejection}"), problem);
                    }
                }
            }
        }
        claims.push(outcome.certificate);
    }
    if let Some((_, replay)) = &best {
        for claim in &claims {
            contradicts_nothing(problem, claim, replay);
        }
    }
    best.map(|(plan, _)| plan)
}

/// The default solver and another one, which depends on the problem. Solvers that count no steps, and a default one that calls such
/// solvers, are left to `passes/remat/tests/it/truth.rs`: thousands of problems would take hours.
fn chosen(problem: &Problem, round: usize) -> [&'static dyn Solver; 2] {
    let domain = if problem.is_time_within_budget() {
        Domain::Time
    } else {
        Domain::Goals
    };
    let all: Vec<_> = remat::solvers()
        .filter(|solver| solver.counts_steps() && solver.domain() == domain)
        .collect();
    let digest = problem
        .digest()
        .bytes()
        .fold(round, |sum, byte| sum * 31 % 9973 + usize::from(byte));
    let is_quick = remat::solvers()
        .filter(|solver| solver.missing().is_none())
        .all(Solver::counts_steps);
    let first = if is_quick { remat::default_solver() } else { all[0] };
    [first, all[digest % all.len()]]
}

/// What a certificate says of its own plan.
fn holds(problem: &Problem, certificate: &Certificate, replay: &Replay) {
    let found = replay.objective(problem.objective);
    let name = &certificate.solver;
    assert!(
        certificate.status != Status::Infeasible && certificate.status != Status::Unknown,
        "`{name}` has a plan and says {:?}",
        certificate.status
    );
    assert!(
        certificate.stop != StopReason::Refused,
        "`{name}` has a plan and says that it refused"
    );
    // Views that lowering adds may take time that the solver did not count.
    let optimal = certificate.status == Status::Optimal && certificate.bound_covers.is_every_plan(problem.order);
    if optimal {
        assert_eq!(
            certificate.bound,
            found,
            "`{name}` proves another objective: {}",
            problem.to_json()
        );
    }
}

/// A bound on all plans holds for the plan of any solver.
fn contradicts_nothing(problem: &Problem, claim: &Certificate, replay: &Replay) {
    if !claim.bound_covers.is_every_plan(problem.order) {
        return;
    }
    let found = replay.objective(problem.objective);
    assert!(
        claim.status != Status::Infeasible,
        "`{}` proves that there is no plan, and there is one: {}",
        claim.solver,
        problem.to_json()
    );
    assert!(
        claim.bound <= found,
        "`{}` proves a bound of {}, and there is a plan of {found}: {}",
        claim.solver,
        claim.bound,
        problem.to_json()
    );
}

/// A plan that the checker accepts is written for devices and read back.
fn is_a_schedule(problem: &Problem, plan: &Plan, replay: &Replay) {
    let figures = PlanPeaks {
        peak: replay.peak,
        second_peak: replay.second_peak,
    };
    let bytes = encode(problem, plan, figures, None).expect("a plan that the checker accepts is a schedule");
    let schedule = Schedule::open(&bytes).expect("what was written is read");
    assert_eq!(plan_of(problem, &schedule).as_ref(), Ok(plan));
    is_placed(problem, plan, replay, figures);
}

/// A plan that the checker accepts has a block that it accepts, which a schedule for devices spells out.
fn is_placed(problem: &Problem, plan: &Plan, replay: &Replay, figures: PlanPeaks) {
    let mut end = 0u64;
    let stacked = intervals(problem, plan, replay).into_iter().map(|interval| {
        let offset = end;
        end = end.saturating_add(interval.bytes);
        PlacedInterval {
            step: interval.steps.start,
            what: interval.what,
            offset,
        }
    });
    let intervals = stacked.collect();
    let placement = BlockPlacement {
        block: Block {
            bytes: end,
            alignment: 1,
            outputs_bytes: None,
            certificate: None,
        },
        intervals,
    };
    if end == u64::MAX {
        return;
    }
    if let Err(rejection) = check_block(problem, plan, replay, &placement) {
        panic_with(&format!("a block without overlaps is rejected: {rejection}"), problem);
    }
    let bytes = encode(problem, plan, figures, Some(&placement)).expect("a block that the checker accepts");
    let schedule = Schedule::open(&bytes).expect("what was written is read");
    assert_eq!(placement_of(problem, plan, &schedule), Some(placement));
}

/// Says what did not hold, and for which problem.
#[expect(clippy::panic, reason = "how a fuzz target reports a finding")]
pub(crate) fn panic_with(what: &str, problem: &Problem) -> ! {
    panic!("{what}\n{}", problem.to_json())
}
