//! `remat-bench dtr`: the overhead of dynamic rematerialization under shrinking budgets, as in Figure 2 of the DTR paper.

mod replay;

use std::path::PathBuf;

use remat::dtr::{Heuristic, SimulateStatus};

use self::replay::{Replays, replays};
use crate::files::files;
use crate::table::{Output, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of logs (`.log`, `.log.gz`).
    #[arg(value_name = "DIR")]
    logs: PathBuf,
    /// Heuristics; `ablation` for the grid of the paper's ablation study.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "dtr,dtr-eq,dtr-local,msps,lru,size,random"
    )]
    heuristics: Vec<String>,
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
    let heuristics = heuristics(&args.heuristics)?;
    let mut all = Vec::new();
    for path in files(&args.logs, &LOGS)? {
        all.extend(rows(&replays(&path, &heuristics, args.trials)?));
    }
    args.output.give("dtr", "", &Table::new(2, &HEADER, all))
}

fn heuristics(names: &[String]) -> anyhow::Result<Vec<Heuristic>> {
    let mut heuristics = Vec::new();
    for name in names {
        if name == "ablation" {
            heuristics.extend(Heuristic::ablation());
        } else {
            heuristics.push(name.parse()?);
        }
    }
    Ok(heuristics)
}

/// Rows of the table: overheads, and how the curve ends: `O` out of memory, `T` thrashing.
fn rows(log: &Replays) -> impl Iterator<Item = Vec<String>> + '_ {
    log.curves.iter().map(|curve| {
        let mut row = vec![log.name.clone(), curve.heuristic.to_string()];
        row.extend(curve.overheads.iter().map(|overhead| format!("{overhead:.5}")));
        let letter = |status| if status == SimulateStatus::Oom { "O" } else { "T" };
        row.extend(curve.failure.map(letter).map(str::to_owned));
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_with_its_first_failure() {
        let folder = remat_testing::workspace().join("test/dtr-logs");
        let paths = files(&folder, &LOGS).unwrap();
        let log = replays(&paths[0], &[Heuristic::DTR_EQ, Heuristic::Random], 2).unwrap();
        let row = rows(&log).next().unwrap();
        assert_eq!(row[..2], ["training_step", "dtr-eq"]);
        assert!(row.len() < HEADER.len() && ["O", "T"].contains(&row.last().unwrap().as_str()));
        assert_eq!(log.curves[0].overheads.len(), row.len() - 3);
    }
}
