//! Tests of the classic strategies.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod artifact;
mod list;
mod points;
mod strategies;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_testing::run(remat_testing::within([
        ("artifact", artifact::trials()),
        ("list", list::trials()),
        ("strategies", strategies::trials()),
    ]))
}
