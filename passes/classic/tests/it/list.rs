//! List scheduling: the orders that it finds, and what it does not find.

use proptest::prelude::*;
use remat_classic::ListScheduler;
use remat_plan::{Problem, Status, StopReason};
use remat_solve::{Outcome, SolveControl, Solver};
use remat_testing::net::{baseline_peak, in_free_order, paper};
use remat_testing::random::{Features, budgeted};
use remat_testing::{Trial, trial};
use remat_verify::replay;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(each_large_result_is_freed_before_the_next_one_is_made),
        trial!(below_the_best_order_and_in_fixed_order_there_is_no_plan_and_the_lowest_peak_is_named),
        trial!(without_a_step_there_is_the_reference_order_only),
        trial!(the_lowest_peak_is_never_above_that_of_the_reference_order),
    ]
}

/// Six large results, each of which becomes a small one, and an op that reads the small ones. In reference order the large ones come first.
fn funnels(budget: u64) -> Problem {
    let large = (0..6).map(|_| (1, 10, Vec::new()));
    let small = (0..6).map(|node| (1, 1, vec![node]));
    let ops: Vec<(u64, u64, Vec<usize>)> = large.chain(small).chain([(1, 1, (6..12).collect())]).collect();
    Problem {
        budget: Some(budget),
        ..paper(&ops)
    }
}

fn solve(problem: &Problem) -> Outcome {
    ListScheduler.solve(problem, &SolveControl::new())
}

fn each_large_result_is_freed_before_the_next_one_is_made() {
    let problem = in_free_order(funnels(16));
    let outcome = solve(&problem);
    assert_eq!(outcome.certificate.status, Status::Optimal);
    // Five small results, and one large one beside the sixth.
    assert_eq!(replay(&problem, &outcome.plan.unwrap()).unwrap().peak, 5 + 10 + 1);
}

fn below_the_best_order_and_in_fixed_order_there_is_no_plan_and_the_lowest_peak_is_named() {
    let outcome = solve(&in_free_order(funnels(15)));
    assert_eq!((outcome.plan, outcome.lowest_peak), (None, Some(16)));
    assert_eq!(outcome.certificate.status, Status::Unknown);
    let outcome = solve(&funnels(16));
    assert_eq!((outcome.plan, outcome.lowest_peak), (None, Some(61)));
}

fn without_a_step_there_is_the_reference_order_only() {
    let problem = in_free_order(funnels(16));
    let outcome = ListScheduler.solve(&problem, &SolveControl::new().step_limit(0));
    assert_eq!((outcome.plan, outcome.lowest_peak), (None, Some(61)));
    assert_eq!(outcome.certificate.stop, StopReason::StepLimit);
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    fn the_lowest_peak_is_never_above_that_of_the_reference_order(problem in budgeted(1..25, Features::ALL)) {
        let problem = in_free_order(problem);
        let reference = baseline_peak(&problem);
        let outcome = solve(&problem);
        if outcome.plan.is_none() && outcome.certificate.status == Status::Unknown {
            prop_assert!(outcome.lowest_peak.unwrap() <= reference);
        }
    }
}
