//! Tests of the constraint program of the Moccasin paper.

mod agreement;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_ortools::look_in(&remat_testing::ortools());
    remat_testing::run(remat_testing::within([("agreement", agreement::trials())]))
}
