//! Tests of the solvers on OR-Tools.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod claims;
mod control;
mod cp_sat;
mod exact;
mod graphs;
mod large;
mod place;
mod sizes;
mod windows;
mod without;

use std::process::ExitCode;

use remat_solve::{Domain, Registry, Solver};

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    let modules = [
        ("claims", claims::trials()),
        ("control", control::trials()),
        ("cp_sat", cp_sat::trials()),
        ("exact", exact::trials()),
        ("graphs", graphs::trials()),
        ("large", large::trials()),
        ("place", place::trials()),
        ("sizes", sizes::trials()),
        ("windows", windows::trials()),
        ("without", without::trials()),
    ];
    remat_testing::run(remat_testing::within(modules))
}

/// Every solver on OR-Tools whose crate knows this one by its models alone.
fn on_or_tools() -> impl Iterator<Item = &'static dyn Solver> {
    Registry::of(&[
        remat_ortools::register,
        remat_moccasin::register,
        remat_checkmate::register,
    ])
    .solvers()
}

fn solvers_for_time() -> impl Iterator<Item = &'static dyn Solver> {
    on_or_tools().filter(|solver| solver.domain() == Domain::Time)
}
