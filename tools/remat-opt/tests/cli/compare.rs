//! `remat-opt compare`.

use crate::{Folder, STEPS, assert_contains_all, remat_opt, stdout_of};

#[test]
fn a_comparison_prints_every_solver_under_every_budget() {
    assert_run!("compare cli/training_chain.json --budgets 90%,70%,1% {STEPS} --solvers search,dtr,no-such-solver");
}

#[test]
fn a_comparison_is_json_on_request() {
    assert_run!("compare cli/training_chain.json --budgets 70%,1% {STEPS} --solvers search --format json");
}

#[test]
fn a_comparison_without_any_solver_lists_what_exists() {
    assert_run!("compare cli/training_chain.json --solvers oracle");
}

#[test]
fn a_comparison_refuses_budgets_without_bytes() {
    assert_run!("compare cli/training_chain.json --budgets min");
}

/// Figures and chart of one run.
#[test]
fn a_comparison_is_written_and_drawn() {
    let folder = Folder::new();
    let line = format!("compare cli/training_chain.json --budgets 80%,60% {STEPS} --solvers auto,search");
    let mut command = remat_opt(&line);
    command.arg("-o").arg(folder.path("figures.json"));
    command.arg("--svg").arg(folder.path("chart.svg"));
    stdout_of(&mut command);
    let figures = folder.read("figures.json");
    assert_eq!(figures.matches("\"finding\": \"plan\"").count(), 4, "{figures}");
    assert_contains_all(
        &folder.read("chart.svg"),
        &[
            "<svg",
            "floor, 57.1 %",
            "auto",
            "search",
            "training_chain: solvers side by side",
        ],
    );
}

#[test]
fn a_solver_that_refuses_is_told_from_one_that_finds_nothing() {
    assert_run!("cli/training_chain.json --budget 80% --solver griewank");
    assert_run!("compare cli/training_chain.json --budgets 80% {STEPS} --solvers griewank,search");
}
