//! `remat-bench`: the measured tables of README and docs.
//!
//! Every plan behind a figure has passed the checker: it comes from [`remat::solve`], or is replayed here.

mod compare;
mod console;
mod dtr;
mod files;
mod layered;
mod measure;
mod ort;
mod paper;
mod place;
mod poet;
mod scaling;
mod table;
mod training;
mod truth;
mod zoo;

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
    /// The tables of the Moccasin paper, for any folder of graphs.
    Paper(paper::Args),
    /// All solvers side by side: ratios to the best known plans as in the Checkmate paper.
    Compare(compare::Args),
    /// Time and memory on generated graphs of growing size.
    Scaling(scaling::Args),
    /// Overhead of dynamic rematerialization over memory, on logs of the DTR paper.
    Dtr(dtr::Args),
    /// Buffers in one block: height, proof and time over several seeds, beside MiniMalloc.
    Place(place::Args),
    /// Energy, memory and time with a second memory, on the networks and devices of the POET paper.
    Poet(poet::Args),
    /// Models before and after in ONNX Runtime: what was promised beside what was measured.
    Ort(ort::Args),
    /// Models in ONNX Runtime whole and in tiles.
    Fission(ort::fission::Args),
    /// Every solver on tiny problems of all magnitudes, each answer held against the best there is.
    Truth(truth::Args),
    /// Order, recomputes and offsets on a set of training graphs, beside the best known plans.
    Training(training::Args),
    /// Every model of some folders in ONNX Runtime, one row each, whatever becomes of it.
    Zoo(zoo::Args),
    /// Opens or deploys a model for `zoo`, which started this process.
    #[command(name = zoo::CHILD, hide = true)]
    ZooChild,
    /// Runs a model for `ort`, which started this process to measure it.
    #[command(name = ort::CHILD, hide = true)]
    OrtChild,
}

fn main() -> anyhow::Result<()> {
    remat::ortools::look_in(&ort::surroundings(&["REMAT_ORTOOLS_LIBRARY"]));
    match Cli::parse().command {
        Command::Paper(args) => paper::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Scaling(args) => scaling::run(&args),
        Command::Dtr(args) => dtr::run(&args),
        Command::Place(args) => place::run(&args),
        Command::Poet(args) => poet::run(&args),
        Command::Ort(args) => ort::run(&args),
        Command::Fission(args) => ort::fission::run(&args),
        Command::Truth(args) => truth::run(&args),
        Command::Training(args) => training::run(&args),
        Command::Zoo(args) => zoo::run(&args),
        Command::ZooChild => zoo::child(),
        Command::OrtChild => ort::child(),
    }
}
