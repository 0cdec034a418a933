//! The simulator, the format's corners, and the plans of the staged solvers against the checker.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod import;
mod linear;
mod logs;
mod options;
mod paper_logs;
mod staged;
mod support;

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_testing::run(remat_testing::within([
        ("import", import::trials()),
        ("linear", linear::trials()),
        ("logs", logs::trials()),
        ("options", options::trials()),
        ("paper_logs", paper_logs::trials()),
        ("staged", staged::trials()),
    ]))
}
