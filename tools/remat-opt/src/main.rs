//! `remat-opt`: makes neural networks fit into less memory.
//!
//! Talks to people; everything it does is done by the library `remat`. Data goes to stdout, talk to stderr.

mod budgets;
mod chart;
mod cli;
mod commands;
mod failure;
mod files;
mod front_chart;
mod goal;
mod interrupt;
mod machine;
mod progress;
mod runtime;
mod units;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_tracing(&cli);
    let result = match &cli.command {
        Some(Command::Inspect(args)) => commands::inspect::run(args),
        Some(Command::Sweep(args)) => commands::sweep::run(args, cli.quiet),
        Some(Command::Compare(args)) => commands::compare::run(args),
        Some(Command::MaxBatch(args)) => commands::max_batch::run(args),
        Some(Command::Profile(args)) => commands::profile::run(args),
        Some(Command::Verify(args)) => commands::verify::run(args),
        Some(Command::Simulate(args)) => commands::simulate::run(args),
        Some(Command::MeasureChild) => commands::measure_child::run(),
        Some(Command::Explain(args)) => commands::explain::run(args),
        Some(Command::Completions(args)) => commands::completions::run(args),
        None => commands::optimize::run(&cli.optimize, cli.quiet),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Events of the libraries go to stderr; `REMAT_LOG` filters them finer than `-v` does.
fn start_tracing(cli: &Cli) {
    let level = match (cli.quiet, cli.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("REMAT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .init();
}
