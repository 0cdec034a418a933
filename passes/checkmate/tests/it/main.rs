//! Tests of the program of the Checkmate paper.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    remat_testing::run(remat_testing::within([("program", program::trials())]))
}
