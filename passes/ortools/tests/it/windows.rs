//! Windows of the gap model make a plan better, up to the best in stage form.

use proptest::prelude::*;
use remat_ortools::Windows;
use remat_plan::{Plan, Problem, Step};
use remat_solve::{Search, SolveControl, Solver};
use remat_testing::net::with_budget;
use remat_testing::{Need, Trial, trial};
use remat_truth::sequences as brute;

use remat_truth::answers::{models, paper};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_poor_plan_becomes_the_best_in_stage_form, Need::OrTools),
        trial!(a_better_plan_is_a_plan, Need::OrTools),
    ]
}

/// The first plan that a search finds.
fn poor(problem: &Problem) -> Option<Plan> {
    Search.solve(problem, &SolveControl::new().step_limit(1)).plan
}

/// Whether the reruns of each stage follow the reference order.
fn is_in_stage_form(plan: &Plan) -> bool {
    let mut last = None;
    plan.steps.iter().all(|step| match step {
        Step::Compute(_) => {
            last = None;
            true
        }
        Step::Recompute(op) => last.replace(*op).is_none_or(|last| last < *op),
        _ => true,
    })
}

/// The duration before, and of the plan that windows make of it, replayed.
fn improved(problem: &Problem, start: &Plan) -> (u64, u64) {
    let mut control = SolveControl::new();
    control.warm_start = Some(start);
    let outcome = Windows.solve(problem, &control);
    let before = remat_verify::replay(problem, start)
        .expect("a plan of the search")
        .duration;
    let plan = outcome.plan.expect("no plan is lost");
    let after = remat_verify::replay(problem, &plan).unwrap_or_else(|rejection| panic!("{rejection}\n{problem:?}"));
    assert_eq!(outcome.certificate.objective, Some(after.duration));
    assert!(outcome.certificate.bound <= after.duration);
    (before, after.duration)
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    fn a_poor_plan_becomes_the_best_in_stage_form(problem in paper(6), budget in 0u64..60) {
        let problem = with_budget(problem, budget);
        let start = poor(&problem);
        prop_assume!(start.as_ref().is_some_and(is_in_stage_form));
        let (_, after) = improved(&problem, &start.expect("assumed"));
        prop_assert!(brute::stage_form(&problem).is_some_and(|optimum| after <= optimum), "{after}\n{problem:?}");
    }

    fn a_better_plan_is_a_plan(problem in models(8), budget in 0u64..60) {
        let problem = with_budget(problem, budget);
        if let Some(start) = poor(&problem) {
            let (before, after) = improved(&problem, &start);
            prop_assert!(after <= before);
        }
    }
}
