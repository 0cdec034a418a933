//! Tests of the solvers for problems with a second memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod paging;
mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    remat_testing::run(remat_testing::within([
        ("paging", paging::trials()),
        ("program", program::trials()),
    ]))
}
