//! The program `remat-opt`; what it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    remat_opt::run(std::env::args_os()).into()
}
