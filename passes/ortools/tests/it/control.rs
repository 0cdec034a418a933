//! Limits, warm starts and repeatability.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use remat_checkmate::CheckmateIlp;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Gap};
use remat_plan::{OpId, Plan, Status, StopReason, Structure, lower_sequence};
use remat_solve::{Observer, Progress, SolveControl, Solver};

use remat_testing::net::{at_most_twice, fan, paper, with_budget};
use remat_testing::{Need, Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(one_thread_gives_the_same_plan_every_time, Need::OrTools),
        trial!(a_raised_flag_stops_before_the_model_is_solved, Need::OrTools),
        trial!(without_time_there_is_no_claim_beyond_the_trivial_one, Need::OrTools),
        trial!(a_deadline_ends_a_solve_that_is_under_way, Need::OrTools),
        trial!(a_flag_raised_during_a_solve_ends_it, Need::OrTools),
        trial!(improvements_are_told_in_order_and_end_at_the_answer, Need::OrTools),
        trial!(
            a_warm_start_is_what_remains_where_nothing_better_is_found_in_time,
            Need::OrTools
        ),
        trial!(a_warm_start_beyond_the_budget_is_not_returned, Need::OrTools),
    ]
}

const GAP: Gap = Gap::only(Candidates::AllStages);

fn solvers() -> [&'static dyn Solver; 3] {
    [&GAP, &Moccasin::NEW, &CheckmateIlp::NEW]
}

fn one_thread_gives_the_same_plan_every_time() {
    let problem = with_budget(fan(), 30);
    for solver in solvers() {
        let solve = || solver.solve(&problem, &SolveControl::new().seed(3));
        let (first, second) = (solve(), solve());
        assert!(first.plan.is_some());
        assert_eq!(first.plan, second.plan, "{}", solver.name());
        assert_eq!(first.certificate.bound, second.certificate.bound);
    }
}

fn a_raised_flag_stops_before_the_model_is_solved() {
    let problem = with_budget(fan(), 30);
    let flag = AtomicBool::new(true);
    for solver in solvers() {
        let certificate = solver.solve(&problem, &SolveControl::new().cancel(&flag)).certificate;
        assert_eq!(certificate.stop, StopReason::Cancelled, "{}", solver.name());
    }
}

fn without_time_there_is_no_claim_beyond_the_trivial_one() {
    let problem = with_budget(fan(), 30);
    for solver in solvers() {
        let certificate = solver
            .solve(&problem, &SolveControl::new().time_limit(Duration::ZERO))
            .certificate;
        assert_eq!(certificate.stop, StopReason::TimeLimit, "{}", solver.name());
        assert_eq!(certificate.bound, problem.total_duration());
        assert!(certificate.status != Status::Infeasible);
    }
}

/// A long chain with skips: more than a moment's work for CP-SAT.
fn hard() -> remat_plan::Problem {
    let ops: Vec<(u64, u64, Vec<usize>)> = (0..120)
        .map(|index: usize| {
            let reads = [index.wrapping_sub(1), index * 7 / 11, index * 3 / 5];
            let reads = reads.into_iter().filter(|&read| read < index).collect();
            (1 + index as u64 * 37 % 41, 1 + index as u64 * 53 % 61, reads)
        })
        .collect();
    with_budget(at_most_twice(paper(&ops)), 30)
}

fn a_deadline_ends_a_solve_that_is_under_way() {
    let problem = hard();
    for solver in solvers() {
        let outcome = solver.solve(&problem, &SolveControl::new().time_limit(Duration::from_millis(300)));
        assert!(matches!(
            outcome.certificate.stop,
            StopReason::TimeLimit | StopReason::Proved
        ));
        if let Some(plan) = outcome.plan {
            remat_verify::replay(&problem, &plan).unwrap();
        }
    }
}

fn a_flag_raised_during_a_solve_ends_it() {
    let problem = hard();
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let certificate = Moccasin::NEW
            .solve(&problem, &SolveControl::new().cancel(&flag))
            .certificate;
        assert!(matches!(certificate.stop, StopReason::Cancelled | StopReason::Proved));
    });
}

#[derive(Default)]
struct Log(Mutex<Vec<Progress>>);

impl Observer for Log {
    fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
        self.0.lock().unwrap().push(*progress);
    }
}

fn improvements_are_told_in_order_and_end_at_the_answer() {
    let problem = with_budget(fan(), 30);
    let log = Log::default();
    let outcome = Moccasin::NEW.solve(&problem, &SolveControl::new().observer(&log));
    let told: Vec<u64> = log
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|progress| progress.objective)
        .collect();
    assert!(told.is_sorted_by(|a, b| a > b), "{told:?}");
    assert_eq!(told.last().copied(), outcome.certificate.objective);
}

fn a_warm_start_is_what_remains_where_nothing_better_is_found_in_time() {
    let problem = with_budget(fan(), 30);
    let start = Gap::NEW.solve(&problem, &SolveControl::new()).plan.unwrap();
    for solver in solvers() {
        let control = SolveControl::new().time_limit(Duration::ZERO).warm_start(&start);
        assert_eq!(
            solver.solve(&problem, &control).plan.as_ref(),
            Some(&start),
            "{}",
            solver.name()
        );
    }
}

fn a_warm_start_beyond_the_budget_is_not_returned() {
    let problem = with_budget(fan(), 30);
    let structure = Structure::of(&problem);
    let ops: Vec<OpId> = structure.scheduled().collect();
    let start = lower_sequence(&problem, &structure, ops).unwrap();
    for solver in solvers() {
        let control = SolveControl::new().time_limit(Duration::ZERO).warm_start(&start);
        assert!(solver.solve(&problem, &control).plan.is_none(), "{}", solver.name());
    }
}
