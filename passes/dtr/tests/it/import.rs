//! Logs as problems.

use remat_dtr::{SimulateOptions, base_peak, problem_of, simulate, solvers};
use remat_plan::{Problem, StorageRole, baseline};
use remat_solve::SolveControl;
use remat_verify::replay;

use crate::support::{PAPER_LOGS, paper_log, training_step};

#[test]
fn a_log_becomes_a_valid_problem() {
    let trace = training_step();
    let problem = problem_of(&trace, "training_step");
    problem.validate().unwrap();
    let roles = |role| problem.storages.iter().filter(|storage| storage.role == role).count();
    // Six weights, the input, and the first sum of gradients come from outside; six updates and the last gradient are held.
    assert_eq!((roles(StorageRole::External), roles(StorageRole::Kept)), (8, 7));
    assert_eq!(problem.total_duration(), trace.base_cost());
    assert!(replay(&problem, &baseline(&problem)).is_ok());
}

#[test]
fn every_staged_solver_plans_a_log() {
    let problem = problem_of(&training_step(), "training_step");
    let peak = replay(&problem, &baseline(&problem)).unwrap().peak;
    let problem = Problem {
        budget: Some(peak * 7 / 10),
        ..problem
    };
    for solver in solvers() {
        let outcome = solver.solve(&problem, &SolveControl::new());
        let plan = outcome
            .plan
            .unwrap_or_else(|| panic!("`{}` finds no plan", solver.name()));
        assert!(replay(&problem, &plan).unwrap().recomputes > 0);
    }
}

/// On the paper's logs, what is staged takes the time that the simulation takes, as long as nothing that is held to the end was
/// evicted.
#[test]
fn staged_plans_of_the_papers_logs_take_the_time_of_the_simulation() {
    for log in &PAPER_LOGS[..1] {
        let Some(trace) = paper_log(log) else { return };
        for tenths in [9, 7, 5, 3] {
            let budget = base_peak(&trace) * tenths / 10;
            let simulated = simulate(
                &trace,
                &SimulateOptions {
                    budget: Some(budget),
                    ..SimulateOptions::default()
                },
            );
            let mut problem = problem_of(&trace, log);
            problem.budget = Some(budget - trace.constant_bytes());
            let dtr_eq = solvers().iter().find(|solver| solver.name() == "dtr:dtr-eq").unwrap();
            let plan = dtr_eq.solve(&problem, &SolveControl::new()).plan.unwrap();
            let replayed = replay(&problem, &plan).unwrap();
            assert_eq!(
                replayed.recompute_duration, simulated.recompute_ns,
                "{log} at {tenths}/10"
            );
        }
    }
}
