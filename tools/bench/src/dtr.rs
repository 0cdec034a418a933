//! `remat-bench dtr`: the overhead of dynamic rematerialization under shrinking budgets, as in Figure 2 of the DTR paper.

use std::path::{Path, PathBuf};

use anyhow::Context;
use remat::dtr::{Heuristic, SimulateOptions, SimulateStatus, Trace, base_peak, read_log, simulate};

use crate::files::files;
use crate::table::{Output, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of logs (`.log`, `.log.gz`).
    #[arg(value_name = "DIR")]
    logs: PathBuf,
    /// Heuristics.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "dtr,dtr-eq,dtr-local,msps,lru,size,random"
    )]
    heuristics: Vec<Heuristic>,
    /// Replays with different seeds for `random`; figures are means.
    #[arg(long, value_name = "N", default_value_t = 10)]
    trials: u64,
    #[command(flatten)]
    output: Output,
}

/// How names of logs end.
const LOGS: [&str; 2] = [".log", ".log.gz"];

const HEADER: [&str; 12] = [
    "log",
    "heuristic",
    "1.0",
    "0.9",
    "0.8",
    "0.7",
    "0.6",
    "0.5",
    "0.4",
    "0.3",
    "0.2",
    "0.1",
];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for path in files(&args.logs, &LOGS)? {
        all.extend(rows(&path, &args.heuristics, args.trials)?);
    }
    args.output.give("dtr", "", &Table::new(2, &HEADER, all))
}

/// The rows of a log: one for each heuristic.
fn rows(path: &Path, heuristics: &[Heuristic], trials: u64) -> anyhow::Result<Vec<Vec<String>>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let trace = read_log(&bytes).with_context(|| path.display().to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default();
    let peak = base_peak(&trace);
    let row = |&heuristic: &Heuristic| -> Vec<String> {
        let head = [name.to_owned(), heuristic.to_string()];
        head.into_iter().chain(curve(&trace, peak, heuristic, trials)).collect()
    };
    Ok(heuristics.iter().map(row).collect())
}

/// Time as a multiple of that without a budget, from the largest budget down to the first failure, which is told last: `O` out of memory, `T`
/// thrashing.
fn curve(trace: &Trace, peak: u64, heuristic: Heuristic, trials: u64) -> Vec<String> {
    let trials = if heuristic == Heuristic::Random {
        trials.max(1)
    } else {
        1
    };
    let mut cells = Vec::new();
    for tenths in (1..=10u32).rev() {
        let replays = (0..trials).map(|seed| {
            let options = SimulateOptions {
                heuristic,
                budget: Some((f64::from(tenths) / 10.0 * peak as f64) as u64),
                seed,
                ..SimulateOptions::default()
            };
            simulate(trace, &options)
        });
        let replays: Vec<_> = replays.collect();
        if let Some(failed) = replays.iter().find(|replay| replay.status != SimulateStatus::Ok) {
            let letter = if failed.status == SimulateStatus::Oom { "O" } else { "T" };
            cells.push(letter.to_owned());
            break;
        }
        let sum: f64 = replays.iter().map(|replay| replay.overhead).sum();
        cells.push(format!("{:.5}", sum / trials as f64));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_with_its_first_failure() {
        let folder = remat_testing::workspace().join("test/dtr-logs");
        let paths = files(&folder, &LOGS).unwrap();
        let rows = rows(&paths[0], &[Heuristic::DtrEq, Heuristic::Random], 2).unwrap();
        assert_eq!(rows[0][..2], ["training_step", "dtr-eq"]);
        assert!(rows[0].len() < HEADER.len() && ["O", "T"].contains(&rows[0].last().unwrap().as_str()));
    }
}
