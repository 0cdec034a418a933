//! Proofs, by the library that the program finds.

use std::process::Command;

use crate::{assert_contains_all, remat_opt, stdout_of};

const CHAIN: &str = "cli/training_chain.json";

/// The command line, which looks for OR-Tools where it does without being told.
fn with_ortools(line: &str) -> Command {
    let mut command = remat_opt(line);
    match std::env::var_os("REMAT_ORTOOLS_LIBRARY") {
        Some(library) => command.env("REMAT_ORTOOLS_LIBRARY", library),
        None => command.env_remove("REMAT_ORTOOLS_LIBRARY"),
    };
    command
}

pub(crate) fn a_plan_is_proved_where_or_tools_is_found() {
    let line = format!("{CHAIN} --order fixed -b 70% --time-limit 60s -q");
    let proved = stdout_of(&mut with_ortools(&line));
    assert_contains_all(&proved, &["optimal: no plan"]);
    let searched = stdout_of(&mut remat_opt(&line.replace("60s", "2s")));
    assert!(!searched.contains("optimal: no plan"), "{searched}");
}

pub(crate) fn every_solver_takes_part_in_a_comparison() {
    let line = format!("compare {CHAIN} --budgets 70% --time-limit 5s -q");
    let text = stdout_of(&mut with_ortools(&line));
    for solver in remat::ortools::solvers().filter(|solver| !solver.name().starts_with("poet")) {
        assert_contains_all(&text, &[solver.name()]);
    }
}
