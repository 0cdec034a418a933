//! The models agree with each other and with trying everything.

use proptest::prelude::*;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Gap};
use remat_plan::{BoundCovers, OpId, OrderMode, Plan, Problem, Status, Step};
use remat_solve::{SolveControl, Solver};

use remat_testing::net::{Net, Place, at_most_twice, fan, kept, transient, with_budget};

use remat_testing::{Need, Trial, trial};
use remat_truth::answers::{models, paper, solve};
use remat_truth::sequences as brute;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(both_models_find_the_optimum_of_graphs_as_in_the_papers, Need::OrTools),
        trial!(every_solution_of_the_intervals_is_a_plan, Need::OrTools),
        trial!(growing_sets_end_at_the_optimum, Need::OrTools),
        trial!(
            ops_of_all_kinds_are_planned_as_well_as_trying_everything_does,
            Need::OrTools
        ),
        trial!(
            without_a_limit_on_repetitions_each_node_may_run_in_every_stage,
            Need::OrTools
        ),
        trial!(a_limit_of_three_is_kept_and_used, Need::OrTools),
        trial!(smaller_sets_never_beat_larger_ones, Need::OrTools),
        trial!(in_free_order_intervals_find_the_optimum_over_all_orders, Need::OrTools),
        trial!(in_free_order_ops_of_all_kinds_are_ordered_rightly, Need::OrTools),
        trial!(every_recompute_of_an_optimal_plan_is_needed, Need::OrTools),
        trial!(a_fan_is_solved_alike_by_both, Need::OrTools),
        trial!(workspace_counts_when_an_op_runs_again, Need::OrTools),
        trial!(
            the_duplicate_of_a_graph_output_counts_when_an_op_runs_again,
            Need::OrTools
        ),
    ]
}

const GAP: Gap = Gap::only(Candidates::AllStages);

/// Whether the plan is better than any in stage form: the search, from whose plan the gap model starts, may find such a one.
fn is_outside_stage_form(solver: &dyn Solver, duration: Option<u64>, optimum: Option<u64>) -> bool {
    let is_shorter = |duration| optimum.is_none_or(|optimum| duration < optimum);
    solver.name().starts_with("gap") && duration.is_some_and(is_shorter)
}

/// What a proof over stage forms must look like next to the optimum that trying everything found.
fn assert_proved(solver: &dyn Solver, problem: &Problem, optimum: Option<u64>) {
    let (outcome, duration) = solve(solver, problem);
    let certificate = &outcome.certificate;
    if is_outside_stage_form(solver, duration, optimum) {
        return;
    }
    assert_eq!(duration, optimum, "{certificate:?}\n{problem:?}");
    match optimum {
        Some(optimum) => assert_eq!((certificate.status, certificate.bound), (Status::Optimal, optimum)),
        None => assert_eq!(certificate.status, Status::Infeasible),
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    fn both_models_find_the_optimum_of_graphs_as_in_the_papers(problem in paper(6), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let optimum = brute::stage_form(&problem);
        assert_proved(&GAP, &problem, optimum);
        assert_proved(&Moccasin::NEW, &problem, optimum);
    }

    fn every_solution_of_the_intervals_is_a_plan(problem in models(7), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        // The solver asserts it of each.
        Moccasin::NEW.solve(&problem, &SolveControl::new());
    }

    fn growing_sets_end_at_the_optimum(problem in paper(6), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        assert_proved(&Gap::NEW, &problem, brute::stage_form(&problem));
    }

    fn ops_of_all_kinds_are_planned_as_well_as_trying_everything_does(problem in models(6), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let optimum = brute::stage_form(&problem);
        for solver in [&GAP as &dyn Solver, &Moccasin::NEW] {
            let (outcome, duration) = solve(solver, &problem);
            if !is_outside_stage_form(solver, duration, optimum) {
                prop_assert_eq!(duration, optimum, "{}: {:?}\n{:?}", solver.name(), outcome.certificate, problem);
            }
        }
    }

    fn without_a_limit_on_repetitions_each_node_may_run_in_every_stage(problem in paper(5), budget in 0u64..60) {
        let mut problem = with_budget(problem, budget);
        problem.max_computes = None;
        assert_proved(&GAP, &problem, brute::stage_form(&problem));
    }

    fn a_limit_of_three_is_kept_and_used(problem in paper(6), budget in 0u64..40) {
        let mut problem = with_budget(problem, budget);
        problem.max_computes = Some(3);
        let optimum = brute::stage_form(&problem);
        assert_proved(&GAP, &problem, optimum);
        assert_proved(&Moccasin::NEW, &problem, optimum);
    }

    fn smaller_sets_never_beat_larger_ones(problem in models(8), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let of = |candidates| solve(&Gap::only(candidates), &problem).1.unwrap_or(u64::MAX);
        let all = of(Candidates::AllStages);
        prop_assert!(of(Candidates::Excess(2)) >= of(Candidates::Uses(2)));
        prop_assert!(of(Candidates::Uses(1)) >= all);
        prop_assert!(of(Candidates::Uses(2)) >= all);
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(24))]

    fn in_free_order_intervals_find_the_optimum_over_all_orders(problem in paper(4), budget in 0u64..60) {
        let mut problem = with_budget(problem, budget);
        problem.order = OrderMode::Free;
        let (outcome, duration) = solve(&Moccasin::NEW, &problem);
        prop_assert_eq!(duration, brute::any_order(&problem), "{:?}\n{:?}", outcome.certificate, problem);
        prop_assert_eq!(outcome.certificate.bound_covers, BoundCovers::AllPlans);
    }

    fn in_free_order_ops_of_all_kinds_are_ordered_rightly(problem in models(4), budget in 0u64..60) {
        let mut problem = with_budget(problem, budget);
        problem.order = OrderMode::Free;
        let (outcome, duration) = solve(&Moccasin::NEW, &problem);
        prop_assert_eq!(duration, brute::any_order(&problem), "{:?}\n{:?}", outcome.certificate, problem);
    }

    /// A model that allowed too much would drop runs that are needed; one that asked too much would keep runs that are not.
    fn every_recompute_of_an_optimal_plan_is_needed(mut problem in paper(7), budget in 0u64..60) {
        for op in &mut problem.ops {
            op.duration += 1;
        }
        let problem = with_budget(problem, budget);
        let Some(plan) = solve(&GAP, &problem).0.plan else { return Ok(()) };
        for (position, step) in plan.steps.iter().enumerate() {
            if matches!(step, Step::Recompute(_)) {
                let mut steps = plan.steps.clone();
                steps.remove(position);
                let without = Plan { steps };
                prop_assert!(remat_verify::replay(&problem, &without).is_err());
            }
        }
    }
}

fn a_fan_is_solved_alike_by_both() {
    for hundredths in [5, 20, 40, 60, 80] {
        let problem = with_budget(fan(), hundredths);
        let (gap, shortest) = solve(&GAP, &problem);
        let (intervals, same) = solve(&Moccasin::NEW, &problem);
        assert_eq!(shortest, same, "{:?} {:?}", gap.certificate, intervals.certificate);
        assert_eq!(gap.certificate.bound_covers, intervals.certificate.bound_covers);
    }
}

/// One op whose first result is read at the end, past the peak of two others: it has to be made again when `limit` is the budget.
fn made_again(results: &[(&str, Place<&str>)], workspace: u64, limit: u64) -> Problem {
    let net = Net::new()
        .op("first", FIRST, &[], results)
        .with(|problem| problem.ops[OpId::new(0)].workspace = workspace)
        .op("large", 1, &["a"], &[("b", transient(6))])
        .op("larger", 1, &["b"], &[("c", transient(6))])
        .op("last", 1, &["a", "c"], &[("d", transient(1))])
        .with(|problem| problem.budget = Some(limit));
    at_most_twice(net.done())
}

/// What the first op takes.
const FIRST: u64 = 5;

/// With `enough` bytes the first op can run again, with one byte less it cannot.
fn assert_limit(results: &[(&str, Place<&str>)], workspace: u64, enough: u64) {
    for order in [OrderMode::Fixed, OrderMode::Free] {
        let solvers: &[&dyn Solver] = match order {
            OrderMode::Fixed => &[&GAP, &Moccasin::NEW],
            OrderMode::Free => &[&Moccasin::NEW],
        };
        for &solver in solvers {
            let mut problem = made_again(results, workspace, enough);
            problem.order = order;
            let longer = Some(problem.total_duration() + FIRST);
            assert_eq!(solve(solver, &problem).1, longer, "{} {order:?}", solver.name());
            problem.budget = Some(enough - 1);
            let status = solve(solver, &problem).0.certificate.status;
            assert_eq!(status, Status::Infeasible, "{} {order:?}", solver.name());
        }
    }
}

fn workspace_counts_when_an_op_runs_again() {
    assert_limit(&[("a", transient(4))], 3, 6 + 4 + 3);
}

fn the_duplicate_of_a_graph_output_counts_when_an_op_runs_again() {
    assert_limit(&[("a", transient(4)), ("y", kept(3))], 0, 3 + 6 + 4 + 3);
}
