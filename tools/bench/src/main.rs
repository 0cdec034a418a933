//! `remat-bench`: the measured tables of README and docs.
//!
//! Every plan behind a figure has passed the checker: it comes from [`remat::solve`].

mod dtr;
mod models;
mod paper;
mod solver;
mod table;

use clap::{Parser, Subcommand};

/// Prints the measured tables.
#[derive(Debug, Parser)]
#[command(name = "remat-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The solver on graphs of the papers, beside the papers' figures.
    Solver(solver::Args),
    /// Overhead of dynamic rematerialization over memory, on logs of the DTR paper.
    Dtr(dtr::Args),
    /// Models before and after, and the time of everything around the solver.
    Models(models::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Solver(args) => solver::run(&args),
        Command::Dtr(args) => dtr::run(&args),
        Command::Models(args) => models::run(&args),
    }
}
