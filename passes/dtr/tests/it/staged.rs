//! What every answer of every staged solver keeps to.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use remat_dtr::Staged;
use remat_plan::{Problem, Status, StopReason};
use remat_solve::{SolveControl, Solver};
use remat_testing::net::{baseline_peak, least_budget, paper};
use remat_testing::random::{Features, budgeted, problems};
use remat_testing::{Trial, trial};
use remat_truth::judge::checked;
use remat_verify::replay;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(every_plan_passes_the_checker),
        trial!(the_number_of_computes_is_respected),
        trial!(plans_of_the_papers_graphs_pass_the_checker),
        trial!(the_baselines_peak_is_met_without_recomputation),
        trial!(what_a_failure_says_would_do_does),
        trial!(a_budget_below_one_op_is_infeasible_at_once),
        trial!(the_same_call_gives_the_same_answer),
        trial!(a_training_chain_fits_into_the_square_root_of_its_memory),
        trial!(a_cancelled_solver_says_so),
    ]
}

proptest! {
    #![proptest_config(remat_testing::cases(300))]

    fn every_plan_passes_the_checker(problem in budgeted(1..25, Features::ALL), seed in any::<u64>()) {
        for solver in Staged::ALL {
            let outcome = solver.solve(&problem, &SolveControl::new().seed(seed));
            checked(&problem, &outcome);
        }
    }

    fn the_number_of_computes_is_respected(mut problem in budgeted(5..25, Features::ALL), most in 1u32..4) {
        problem.max_computes = Some(most);
        for solver in Staged::ALL {
            checked(&problem, &solver.solve(&problem, &SolveControl::new()));
        }
    }

    fn plans_of_the_papers_graphs_pass_the_checker(problem in budgeted(5..40, Features::PAPER)) {
        for solver in Staged::ALL {
            checked(&problem, &solver.solve(&problem, &SolveControl::new()));
        }
    }

    fn the_baselines_peak_is_met_without_recomputation(mut problem in problems(1..25, Features::ALL)) {
        problem.budget = Some(baseline_peak(&problem));
        for solver in Staged::ALL {
            let outcome = solver.solve(&problem, &SolveControl::new());
            checked(&problem, &outcome);
            prop_assert_eq!(outcome.certificate.status, Status::Optimal, "{}", solver.name());
            prop_assert_eq!(outcome.certificate.stop, StopReason::Proved);
        }
    }

    fn what_a_failure_says_would_do_does(problem in budgeted(5..25, Features::ALL)) {
        for solver in Staged::ALL {
            let outcome = solver.solve(&problem, &SolveControl::new());
            let (None, Some(enough)) = (&outcome.plan, outcome.lowest_peak) else { continue };
            prop_assert!(problem.budget.is_some_and(|budget| budget < enough));
            let peak = baseline_peak(&problem);
            prop_assert!(enough <= peak);
        }
    }

    fn a_budget_below_one_op_is_infeasible_at_once(mut problem in problems(2..15, Features::ALL)) {
        let need = least_budget(&problem);
        prop_assume!(need > 0);
        problem.budget = Some(need - 1);
        for solver in Staged::ALL {
            let outcome = solver.solve(&problem, &SolveControl::new());
            prop_assert_eq!(outcome.certificate.status, Status::Infeasible);
            prop_assert!(outcome.plan.is_none());
        }
    }

    fn the_same_call_gives_the_same_answer(problem in budgeted(10..30, Features::ALL), seed in any::<u64>()) {
        for solver in Staged::ALL {
            let solve = || {
                let mut outcome = solver.solve(&problem, &SolveControl::new().seed(seed));
                outcome.certificate.elapsed_ms = 0;
                outcome
            };
            let (first, second) = (solve(), solve());
            prop_assert_eq!(first.plan, second.plan);
            prop_assert_eq!(first.certificate, second.certificate);
        }
    }
}

/// A chain whose results are all read again in reverse, as in a training step: `n` ops forward, `n` back.
fn training_chain(n: usize) -> Problem {
    let mut ops: Vec<(u64, u64, Vec<usize>)> = vec![(1, 1, Vec::new())];
    ops.extend((1..n).map(|op| (1, 1, vec![op - 1])));
    ops.extend((0..n).map(|back| (1, 1, vec![n + back - 1, n - 1 - back])));
    paper(&ops)
}

fn a_training_chain_fits_into_the_square_root_of_its_memory() {
    let mut problem = training_chain(64);
    problem.budget = Some(16);
    for solver in Staged::ALL
        .iter()
        .filter(|solver| matches!(solver.name(), "dtr" | "dtr:eq"))
    {
        let outcome = solver.solve(&problem, &SolveControl::new());
        let replayed = replay(&problem, outcome.plan.as_ref().expect("a plan")).expect("a valid plan");
        assert!(
            replayed.peak <= 16 && replayed.duration < 2 * 128,
            "{}: {}",
            solver.name(),
            replayed.duration
        );
    }
}

fn a_cancelled_solver_says_so() {
    let mut problem = training_chain(256);
    problem.budget = Some(12);
    let flag = AtomicBool::new(true);
    let outcome = Staged::ALL[0].solve(&problem, &SolveControl::new().cancel(&flag));
    assert_eq!(outcome.certificate.stop, StopReason::Cancelled);
    assert!(outcome.plan.is_none());
}
