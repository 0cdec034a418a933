//! The bound that is read off the problem, against all plans of small problems.

use proptest::prelude::*;
use remat_plan::{Infeasible, OpId, OrderMode, Problem, Structure, lower_sequence};
use remat_testing::random::{Features, in_either_order, problems};
use remat_verify::replay;

use remat_testing::net::{Net, Place, example, kept, op, transient};

fn bottleneck(problem: &Problem) -> u64 {
    problem
        .bottleneck(&Structure::of(problem))
        .map_or(0, |worst| worst.bytes)
}

/// The lowest peak over all valid plans that run scheduled ops in any order that the problem allows, with up to `again`
/// recomputes, views on demand.
fn lowest_peak(problem: &Problem, again: usize) -> u64 {
    let structure = Structure::of(problem);
    let scheduled: Vec<OpId> = structure.scheduled().collect();
    let mut lowest = u64::MAX;
    extend(problem, &structure, &scheduled, &mut Vec::new(), again, &mut lowest);
    lowest
}

/// Tries every op that may stand next.
fn extend(
    problem: &Problem,
    structure: &Structure,
    scheduled: &[OpId],
    sequence: &mut Vec<OpId>,
    again: usize,
    lowest: &mut u64,
) {
    let Ok(plan) = lower_sequence(problem, structure, sequence.iter().copied()) else {
        return;
    };
    if scheduled.iter().all(|op| sequence.contains(op))
        && let Ok(replay) = replay(problem, &plan)
    {
        *lowest = (*lowest).min(replay.peak);
    }
    for &op in scheduled {
        let ran = sequence.contains(&op);
        if ran && (again == 0 || !problem.ops[op].recomputable) {
            continue;
        }
        sequence.push(op);
        extend(
            problem,
            structure,
            scheduled,
            sequence,
            again - usize::from(ran),
            lowest,
        );
        sequence.pop();
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn no_plan_has_a_peak_below_the_bottleneck(problem in in_either_order(problems(1..6, Features::RULES))) {
        prop_assert!(bottleneck(&problem) <= lowest_peak(&problem, 1));
    }
}

#[test]
fn the_bottleneck_is_reached_by_recomputing() {
    let problem = example().done();
    assert_eq!((bottleneck(&problem), lowest_peak(&problem, 0)), (300, 400));
    assert_eq!(lowest_peak(&problem, 1), 300);
    let worst = problem.bottleneck(&Structure::of(&problem)).unwrap();
    assert_eq!(worst.op, op(&problem, "gemm"));
}

#[test]
fn graph_outputs_of_earlier_ops_count_in_fixed_order_only() {
    let of = |order| {
        Net::new()
            .input("x")
            .op("early", 1, &["x"], &[("y", kept(100))])
            .op("big", 1, &["x"], &[("t", transient(50))])
            .op("last", 1, &["t"], &[("z", kept(1))])
            .with(|problem| problem.order = order)
            .done()
    };
    assert_eq!(bottleneck(&of(OrderMode::Fixed)), 151);
    assert_eq!(lowest_peak(&of(OrderMode::Fixed), 0), 151);
    assert_eq!(bottleneck(&of(OrderMode::Free)), 100);
    assert_eq!(lowest_peak(&of(OrderMode::Free), 0), 101);
}

#[test]
fn what_a_view_reads_besides_its_base_is_not_needed_by_the_readers_of_the_view() {
    let problem = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(10))])
        .op("shape", 1, &["x"], &[("s", transient(8))])
        .op("reshape", 0, &["ta", "s"], &[("v", Place::View("ta"))])
        .op("use", 1, &["v"], &[("y", kept(10))])
        .done();
    assert_eq!((bottleneck(&problem), lowest_peak(&problem, 0)), (20, 20));
}

#[test]
fn ops_that_create_nothing_leave_the_fixed_order() {
    let problem = Net::new()
        .input("x")
        .op("shape", 1, &["x"], &[("s", transient(10))])
        .op("early", 1, &["x"], &[("y", kept(100))])
        .op("reshape", 0, &["x", "s"], &[("v", Place::View("x"))])
        .with(|problem| problem.order = OrderMode::Fixed)
        .done();
    assert_eq!((bottleneck(&problem), lowest_peak(&problem, 0)), (100, 100));
}

#[test]
fn a_budget_below_the_bottleneck_is_infeasible_and_names_the_op() {
    let with = |budget| {
        let problem = example().with(|problem| problem.budget = budget).done();
        problem.check(&Structure::of(&problem))
    };
    assert_eq!(with(None), Ok(()));
    assert_eq!(with(Some(300)), Ok(()));
    let error = Infeasible {
        op: "gemm".into(),
        need: 300,
        outputs_before: 0,
        budget: 299,
    };
    insta::assert_snapshot!(error, @"no plan can meet the budget: op `gemm` needs 300 bytes, the budget is 299 bytes");
    let beside = Infeasible {
        outputs_before: 200,
        ..error.clone()
    };
    insta::assert_snapshot!(beside, @"no plan can meet the budget: op `gemm` needs 300 bytes, of which 200 bytes are graph outputs computed before it, the budget is 299 bytes");
    assert_eq!(with(Some(299)), Err(error));
    assert_eq!(Net::new().done().bottleneck(&Structure::of(&Net::new().done())), None);
}
