//! Tests of the program of the Checkmate paper.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    remat_testing::run(remat_testing::within([("program", program::trials())]))
}
