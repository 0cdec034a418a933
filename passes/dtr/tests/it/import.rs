//! Logs as problems.

use remat_dtr::{Staged, problem_of};
use remat_plan::{Problem, StorageRole, baseline};
use remat_solve::{SolveControl, Solver};
use remat_verify::replay;

use crate::support::training_step;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_log_becomes_a_valid_problem),
        trial!(every_staged_solver_plans_a_log),
    ]
}

fn a_log_becomes_a_valid_problem() {
    let trace = training_step();
    let problem = problem_of(&trace, "training_step");
    problem.validate().unwrap();
    let roles = |role| problem.storages.iter().filter(|storage| storage.role == role).count();
    // Six weights, the input, and the first sum of gradients come from outside; six updates and the last gradient are held.
    assert_eq!((roles(StorageRole::External), roles(StorageRole::LiveOut)), (8, 7));
    assert_eq!(problem.total_duration(), trace.base_cost());
    assert!(replay(&problem, &baseline(&problem)).is_ok());
}

fn every_staged_solver_plans_a_log() {
    let problem = problem_of(&training_step(), "training_step");
    let peak = replay(&problem, &baseline(&problem)).unwrap().peak;
    let problem = Problem {
        budget: Some(peak * 7 / 10),
        ..problem
    };
    for solver in Staged::ALL {
        let outcome = solver.solve(&problem, &SolveControl::new());
        let plan = outcome
            .plan
            .unwrap_or_else(|| panic!("`{}` finds no plan", solver.name()));
        assert!(replay(&problem, &plan).unwrap().recomputes > 0);
    }
}
