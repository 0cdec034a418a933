//! `remat-bench dtr`: the overhead of dynamic rematerialization over memory, as Figure 2 of the DTR paper draws it.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use remat::dtr::{Heuristic, SimulateOptions, SimulateStatus, Trace, base_peak, read_log, simulate};

use crate::table::{self, Form};

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
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
}

/// Ratios of the base peak, in tenths.
const TENTHS: [u32; 10] = [10, 9, 8, 7, 6, 5, 4, 3, 2, 1];

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
    let logs = logs(args)?;
    ensure!(
        !logs.is_empty(),
        "`{}` has no file that ends in .log or .log.gz",
        args.logs.display()
    );
    let mut rows = Vec::new();
    for path in &logs {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let trace = read_log(&bytes).with_context(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for &heuristic in &heuristics {
            let mut row = vec![
                name.split('.').next().unwrap_or_default().to_owned(),
                heuristic.to_string(),
            ];
            row.extend(curve(&trace, heuristic, args.trials));
            row.resize(HEADER.len(), String::new());
            rows.push(row);
        }
    }
    table::print(&HEADER, &rows, args.format);
    Ok(())
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

/// The logs of the folder, by name.
fn logs(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot read `{}`", args.logs.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&args.logs).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".log") || name.ends_with(".log.gz") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The overhead at each ratio up to the first failure: `O` out of memory, `T` thrashing.
fn curve(trace: &Trace, heuristic: Heuristic, trials: u64) -> Vec<String> {
    let peak = base_peak(trace);
    let trials = if heuristic == Heuristic::Random {
        trials.max(1)
    } else {
        1
    };
    let mut cells = Vec::new();
    for tenths in TENTHS {
        let budget = Some((f64::from(tenths) / 10.0 * peak as f64) as u64);
        let replays = (0..trials).map(|seed| {
            let options = SimulateOptions {
                heuristic,
                budget,
                seed,
                ..SimulateOptions::default()
            };
            simulate(trace, &options)
        });
        let replays: Vec<_> = replays.collect();
        match replays
            .iter()
            .map(|replay| replay.status)
            .find(|&status| status != SimulateStatus::Ok)
        {
            Some(status) => {
                cells.push(if status == SimulateStatus::Oom { "O" } else { "T" }.to_owned());
                break;
            }
            None => {
                let sum: f64 = replays.iter().map(|replay| replay.overhead).sum();
                cells.push(format!("{:.5}", sum / trials as f64));
            }
        }
    }
    cells
}
