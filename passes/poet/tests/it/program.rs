//! The program of POET: its plans pass the checker, and its optimum is where it should be.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use remat_checkmate::CheckmateIlp;
use remat_cost::Device;
use remat_plan::{Objective, OpId, Paging, PagingMode, Problem, Status, StopReason, Transfer};
use remat_poet::{PagingSearch, Poet};
use remat_solve::{SolveControl, Solver};
use remat_testing::TrainingNet;
use remat_verify::{Replay, replay};

use remat_testing::net::{at_most_twice, paper};
use remat_testing::random::{Features, budgeted};
use remat_testing::{Need, Trial, trial};
use remat_truth::paging::least_energy;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(
            the_optimum_lies_between_that_of_all_plans_and_that_without_transfers,
            Need::OrTools
        ),
        trial!(
            without_a_second_memory_and_with_time_as_the_objective_it_is_checkmate,
            Need::OrTools
        ),
        trial!(
            what_is_expensive_to_make_is_moved_and_the_deadline_counts_transfers,
            Need::OrTools
        ),
        trial!(a_plan_that_exceeds_the_capacity_is_not_taken, Need::OrTools),
        trial!(
            the_linear_network_is_proved_at_half_its_peak_and_ours_needs_no_more,
            Need::OrTools
        ),
        trial!(where_a_search_finds_a_plan_there_is_one, Need::OrTools),
    ]
}

/// A second memory that costs so many picojoules for each byte and way, and a nanosecond for each byte.
fn second_memory(out_pj: u64, in_pj: u64) -> Paging {
    let way = |energy_pj_per_byte| Transfer {
        latency_ns: 0,
        bytes_per_s: 1_000_000_000,
        energy_pj: 0,
        energy_pj_per_byte,
    };
    Paging {
        mode: PagingMode::Sync,
        capacity: None,
        page_out: way(out_pj),
        page_in: way(in_pj),
    }
}

/// Chains with skips, energies, a budget and a second memory.
fn paged() -> impl Strategy<Value = Problem> {
    (
        budgeted(
            4..7,
            Features {
                anti_dependences: true,
                ..Features::PAPER
            },
        ),
        (0u64..4, 0u64..4),
    )
        .prop_map(|(problem, (out, back))| Problem {
            objective: Objective::Energy,
            paging: Some(second_memory(out, back)),
            ..problem
        })
}

fn checked(solver: &dyn Solver, problem: &Problem) -> Option<Replay> {
    let outcome = solver.solve(problem, &SolveControl::new());
    let found = replay(problem, &outcome.plan?).unwrap();
    assert_eq!(outcome.certificate.objective, Some(found.objective(problem.objective)));
    assert!(outcome.certificate.bound <= found.objective(problem.objective));
    // Where the program has no solution, the plan is that of the search, and nothing is proved of it.
    let settled = [StopReason::Proved, StopReason::Converged];
    assert!(settled.contains(&outcome.certificate.stop), "{:?}", outcome.certificate);
    Some(found)
}

fn the_optimum_lies_between_that_of_all_plans_and_that_without_transfers() {
    let mut runner = TestRunner::deterministic();
    let (mut possible, mut equal) = (0, 0);
    for _ in 0..40 {
        let problem = paged().new_tree(&mut runner).unwrap().current();
        let least = least_energy(&problem, problem.budget.unwrap());
        let found = checked(&Poet, &problem).map(|found| found.energy);
        let mut alone = problem.clone();
        alone.paging = None;
        let without = checked(&Poet, &alone).map(|found| found.energy);
        assert!(least.unwrap_or(u64::MAX) <= found.unwrap_or(u64::MAX), "{problem:?}");
        assert!(found.unwrap_or(u64::MAX) <= without.unwrap_or(u64::MAX), "{problem:?}");
        possible += u32::from(least.is_some());
        equal += u32::from(least.is_some() && least == found);
        let ours = PagingSearch::NEW.solve(&problem, &SolveControl::new().step_limit(20_000));
        let ours = ours.certificate.objective.unwrap_or(u64::MAX);
        assert!(ours <= found.unwrap_or(u64::MAX), "{problem:?}");
    }
    assert!(possible > 25 && equal * 2 > possible, "{equal} of {possible}");
}

fn without_a_second_memory_and_with_time_as_the_objective_it_is_checkmate() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..20 {
        let mut problem = paged().new_tree(&mut runner).unwrap().current();
        problem.paging = None;
        problem.objective = Objective::Time;
        let poet = Poet.solve(&problem, &SolveControl::new());
        let checkmate = CheckmateIlp::NEW.solve(&problem, &SolveControl::new());
        let figures = |outcome: &remat_solve::Outcome| (outcome.certificate.objective, outcome.certificate.bound);
        assert_eq!(figures(&poet), figures(&checkmate));
    }
}

/// A value that is expensive to make is needed again behind one that fills the budget. There is a stage between the two, since the program
/// moves out only what is in memory throughout a stage.
fn expensive() -> Problem {
    let ops: &[(u64, u64, &[usize])] = &[(100, 4, &[]), (1, 1, &[]), (1, 9, &[]), (1, 1, &[2]), (1, 1, &[0, 3])];
    let mut problem = at_most_twice(paper(ops));
    problem.budget = Some(11);
    problem.objective = Objective::Energy;
    problem.paging = Some(second_memory(1, 1));
    problem.ops[OpId::new(0)].energy_pj = 50;
    problem
}

fn what_is_expensive_to_make_is_moved_and_the_deadline_counts_transfers() {
    let mut problem = expensive();
    let found = checked(&Poet, &problem).unwrap();
    // Four bytes out and back.
    assert_eq!((found.energy, found.duration), (50 + 8, 104 + 8));
    problem.deadline = Some(104 + 8);
    assert_eq!(checked(&Poet, &problem).unwrap().energy, 58);
    problem.deadline = Some(104 + 7);
    assert_eq!(
        Poet.solve(&problem, &SolveControl::new()).certificate.status,
        Status::Infeasible
    );
}

fn a_plan_that_exceeds_the_capacity_is_not_taken() {
    let mut problem = expensive();
    problem.paging.as_mut().unwrap().capacity = Some(4);
    assert!(checked(&Poet, &problem).is_some());
    problem.deadline = Some(104 + 8);
    problem.paging.as_mut().unwrap().capacity = Some(3);
    assert_eq!(Poet.solve(&problem, &SolveControl::new()).plan, None);
}

fn the_linear_network_is_proved_at_half_its_peak_and_ours_needs_no_more() {
    let mut problem = TrainingNet::Linear.problem(&Device::preset("mkr1000").unwrap());
    problem.objective = Objective::Energy;
    problem.budget = Some(3_708);
    let outcome = Poet.solve(&problem, &SolveControl::new());
    // Up to what prices are rounded by.
    assert_eq!(outcome.certificate.stop, StopReason::Converged);
    assert!(outcome.certificate.gap.unwrap() < 1e-6, "{:?}", outcome.certificate);
    let found = replay(&problem, &outcome.plan.unwrap()).unwrap();
    let ours = PagingSearch::NEW.solve(&problem, &SolveControl::new().step_limit(60_000));
    assert!(ours.certificate.objective.unwrap() <= found.energy);
}

/// The program is far too large to be solved in that time.
fn where_a_search_finds_a_plan_there_is_one() {
    let mut problem = TrainingNet::Resnet18Cifar.problem(&Device::preset("raspberry-pi-4").unwrap());
    problem.objective = Objective::Energy;
    problem.budget = Some(1_400_000);
    // Nor does it fit this memory, in the second round.
    for memory in [None, Some(1 << 20)] {
        let mut control = SolveControl::new().time_limit(Duration::from_secs(4));
        control.memory_limit = memory;
        let outcome = Poet.solve(&problem, &control);
        let found = replay(&problem, &outcome.plan.unwrap()).unwrap();
        assert_eq!(outcome.certificate.objective, Some(found.energy));
        assert!(found.energy < problem.total_energy() * 1_002 / 1_000);
        assert!(outcome.certificate.bound >= problem.total_energy());
    }
}
