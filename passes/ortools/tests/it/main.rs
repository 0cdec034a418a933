//! Tests of the solvers on OR-Tools.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod agreement;
mod answers;
mod checkmate;
mod claims;
mod control;
mod exact;
mod large;
mod place;
mod poet;
mod sizes;
mod windows;
mod without;

use std::process::ExitCode;

use remat_solve::{Domain, Solver};

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    let modules = [
        ("agreement", agreement::trials()),
        ("checkmate", checkmate::trials()),
        ("claims", claims::trials()),
        ("control", control::trials()),
        ("exact", exact::trials()),
        ("large", large::trials()),
        ("place", place::trials()),
        ("poet", poet::trials()),
        ("sizes", sizes::trials()),
        ("windows", windows::trials()),
        ("without", without::trials()),
    ];
    remat_testing::run(remat_testing::within(modules))
}

fn solvers_for_time() -> impl Iterator<Item = &'static dyn Solver> {
    remat_ortools::solvers().filter(|solver| solver.domain() == Domain::Time)
}
