//! Where the library is missing. A process looks for it once, so these are tests of a process of their own.

use std::process::Command;

use remat_ortools::Exact;
use remat_plan::{Status, StopReason};
use remat_solve::{SolveControl, Solver};
use remat_testing::net::{fan, with_budget};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(without_the_library_solvers_say_so_and_refuse),
        trial!(without_the_library_what_is_plain_is_answered),
    ]
}

/// Whether this is the process that has no library; else one is started that runs the test of this name alone, and must succeed.
fn is_without(test: &str) -> bool {
    const VARIABLE: &str = "REMAT_ORTOOLS_LIBRARY";
    if std::env::var(VARIABLE).is_ok_and(|library| library == "none") {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("without::{test}"), "--exact"])
        .env(VARIABLE, "none");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

fn without_the_library_solvers_say_so_and_refuse() {
    if !is_without("without_the_library_solvers_say_so_and_refuse") {
        return;
    }
    let problem = with_budget(fan(), 60);
    for solver in crate::on_or_tools() {
        assert_eq!(
            solver.missing().as_deref(),
            Some("OR-Tools is not installed"),
            "{}",
            solver.name()
        );
        let outcome = solver.solve(&problem, &SolveControl::new());
        let certificate = &outcome.certificate;
        assert_eq!(
            (outcome.plan.is_some(), certificate.stop),
            (false, StopReason::Refused),
            "{}",
            solver.name()
        );
        assert_eq!(
            (certificate.status, certificate.bound),
            (Status::Unknown, problem.total_duration())
        );
    }
}

fn without_the_library_what_is_plain_is_answered() {
    if !is_without("without_the_library_what_is_plain_is_answered") {
        return;
    }
    let mut problem = with_budget(fan(), 100);
    let certificate = Exact.solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.status, Status::Optimal);
    problem.budget = Some(1);
    let certificate = Exact.solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.status, Status::Infeasible);
}
