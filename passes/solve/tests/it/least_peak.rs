//! The bound on the peak of every plan, held against trying everything.

use proptest::prelude::*;
use remat_plan::{BoundCovers, OpId, OrderMode, Problem, Status, StorageRole, Structure, TensorId};
use remat_solve::{Patience, Search, SolveControl, Solver, least_peak, minimize_peak};
use remat_testing::net::{Net, Place, baseline_peak, in_free_order, paper, step, transient};
use remat_testing::random::{Features, problems};
use remat_truth::{Space, least, problems as tiny};

/// The lowest budget with a plan, by halving.
fn lowest_budget(problem: &Problem) -> u64 {
    let space = match problem.order {
        OrderMode::Fixed => Space::FixedOrder,
        OrderMode::Free => Space::AllPlans,
    };
    let is_enough = |budget| {
        let budget = Some(budget);
        let limited = Problem {
            budget,
            ..problem.clone()
        };
        least(&limited, space).is_some()
    };
    let (mut low, mut high) = (0, baseline_peak(problem));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

fn in_order(problem: Problem, is_free: bool) -> Problem {
    if is_free { in_free_order(problem) } else { problem }
}

#[test]
fn the_input_made_last_meets_the_others() {
    // Two branches of 4 and then 5 bytes meet: the ops need 9, 9 and 11 bytes themselves. But while the second branch is
    // computed from its input, the result of the first is there already.
    let ops: &[(u64, u64, &[usize])] = &[(1, 4, &[]), (1, 5, &[0]), (1, 4, &[]), (1, 5, &[2]), (1, 1, &[1, 3])];
    let problem = paper(ops);
    let structure = Structure::of(&problem);
    assert_eq!(problem.bottleneck(&structure).map(|worst| worst.bytes), Some(11));
    let found = least_peak(&problem, &SolveControl::new());
    assert_eq!(
        (found.bytes, found.covers, found.is_tight),
        (14, BoundCovers::FixedOrder, true)
    );
    assert_eq!(found.op.map(OpId::index), Some(4));
}

#[test]
fn what_is_left_behind_counts_where_it_must_have_been_made() {
    // A live-out result of 10 bytes stands before an op that needs 7: free order may run that op first, fixed order may not.
    let mut net = Net::new();
    net.add(step("output", 1, Vec::new()), [Place::New(StorageRole::LiveOut, 10)]);
    net.add(step("small", 1, Vec::new()), [transient(3)]);
    net.add(step("large", 1, vec![TensorId::new(1)]), [transient(4)]);
    let free = in_free_order(net.done());
    let fixed = Problem {
        order: OrderMode::Fixed,
        ..free.clone()
    };
    let bytes = |problem: &Problem| least_peak(problem, &SolveControl::new()).bytes;
    assert_eq!((bytes(&free), lowest_budget(&free)), (10, 10));
    assert_eq!((bytes(&fixed), lowest_budget(&fixed)), (17, 17));
}

#[test]
fn where_a_view_reads_another_storage_the_search_begins_from_a_sequence_that_runs() {
    // What looks into the first result waits for the second one, too; the last op reads what it sees.
    let mut net = Net::new();
    net.add(step("first", 1, Vec::new()), [transient(0)]);
    net.add(step("second", 1, vec![TensorId::new(0)]), [transient(1)]);
    let both = vec![TensorId::new(0), TensorId::new(1)];
    net.add(step("view", 1, both), [Place::View(TensorId::new(0))]);
    net.add(step("last", 1, vec![TensorId::new(2)]), [transient(0)]);
    let found = minimize_peak(&net.done(), None, &SolveControl::new().step_limit(2_000));
    assert_eq!(found.lowest_peak, Some(1));
}

proptest! {
    #![proptest_config(remat_testing::cases(200))]

    #[test]
    fn no_plan_has_a_lower_peak(problem in problems(1..7, Features::RULES), is_free: bool, most in prop_oneof![Just(None), (1u32..4).prop_map(Some)]) {
        let mut problem = in_order(problem, is_free);
        problem.max_computes = most;
        let lowest = lowest_budget(&problem);
        let found = least_peak(&problem, &SolveControl::new());
        prop_assert!(found.bytes <= lowest, "{} of {lowest}", found.bytes);
    }

    #[test]
    fn no_plan_has_a_lower_peak_whatever_the_magnitude_of_sizes(number: u64) {
        let problem = tiny::plain(number);
        let lowest = lowest_budget(&problem);
        let found = least_peak(&problem, &SolveControl::new());
        prop_assert!(found.bytes <= lowest, "{} of {lowest}", found.bytes);
    }

    #[test]
    fn it_is_the_least_peak_in_the_setting_of_the_papers(problem in problems(1..9, Features::PAPER)) {
        let problem = in_free_order(problem);
        let found = least_peak(&problem, &SolveControl::new());
        prop_assert!(found.is_tight);
        prop_assert_eq!(found.bytes, lowest_budget(&problem));
    }

    #[test]
    fn the_lowest_peak_is_found_in_any_order_where_it_is_known(problem in problems(1..20, Features::PAPER)) {
        let problem = in_free_order(problem);
        let least = least_peak(&problem, &SolveControl::new());
        prop_assume!(least.is_tight);
        let impatient = Patience { min_steps: 100, factor: 0.0 };
        let found = minimize_peak(&problem, None, &SolveControl::new().patience(impatient));
        prop_assert_eq!(found.lowest_peak, Some(least.bytes));
    }

    #[test]
    fn less_effort_gives_no_higher_bound_and_never_less_than_one_op(problem in problems(1..30, Features::ALL), is_free: bool, steps in 0u64..200) {
        let problem = in_order(problem, is_free);
        let structure = Structure::of(&problem);
        let quick = least_peak(&problem, &SolveControl::new().step_limit(steps)).bytes;
        prop_assert!(quick >= problem.bottleneck(&structure).map_or(0, |worst| worst.bytes));
        prop_assert!(quick <= baseline_peak(&problem));
        let found = minimize_peak(&problem, None, &SolveControl::new().step_limit(2_000));
        prop_assert!(found.lowest_peak.is_some_and(|peak| quick <= peak));
    }

    #[test]
    fn a_budget_below_it_is_called_infeasible(problem in problems(3..9, Features::PAPER)) {
        let mut problem = in_free_order(problem);
        let found = least_peak(&problem, &SolveControl::new());
        for (budget, status) in [(found.bytes.saturating_sub(1), Status::Infeasible), (found.bytes, Status::Feasible)] {
            problem.budget = Some(budget);
            let outcome = Search.solve(&problem, &SolveControl::new().step_limit(20_000));
            prop_assert_eq!(outcome.certificate.status == Status::Infeasible, status == Status::Infeasible);
        }
    }
}
