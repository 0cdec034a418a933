//! `remat-bench dtr`: the overhead of dynamic rematerialization over memory, as Figure 2 of the DTR paper draws it.

mod chart;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use remat::dtr::{Heuristic, SimulateOptions, SimulateStatus, Trace, base_peak, read_log, simulate};

use crate::document::replace_in;
use crate::table::{Form, Table};

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
    /// Regenerate the table in this document and the drawing `dtr.svg` beside it.
    #[arg(long, value_name = "DOCUMENT")]
    write: Option<PathBuf>,
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

/// One log.
struct Panel {
    name: String,
    /// Shares of the base peak that constants take, and constants with the largest op.
    constants: f64,
    floor: f64,
    curves: Vec<Curve>,
}

/// One heuristic on one log, up to its first failure.
struct Curve {
    heuristic: Heuristic,
    /// Ratio of memory and overhead.
    points: Vec<(f64, f64)>,
    failure: Option<(f64, SimulateStatus)>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let heuristics = heuristics(&args.heuristics)?;
    let paths = logs(&args.logs)?;
    ensure!(
        !paths.is_empty(),
        "`{}` has no file that ends in .log or .log.gz",
        args.logs.display()
    );
    let mut panels = Vec::new();
    for path in &paths {
        panels.push(panel(path, &heuristics, args.trials)?);
    }
    let table = Table {
        text_columns: 2,
        header: &HEADER,
        rows: panels.iter().flat_map(rows).collect(),
    };
    if let Some(document) = &args.write {
        replace_in(document, "dtr", &table.render(Form::Markdown))?;
        let drawing = document.with_file_name("dtr.svg");
        remat_files::write(&drawing, chart::svg(&panels)?)
            .with_context(|| format!("cannot write `{}`", drawing.display()))?;
    }
    table.print(args.format);
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

/// The logs of a folder, by name.
fn logs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot read `{}`", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".log") || name.ends_with(".log.gz") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn panel(path: &Path, heuristics: &[Heuristic], trials: u64) -> anyhow::Result<Panel> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let trace = read_log(&bytes).with_context(|| path.display().to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let peak = base_peak(&trace);
    let share = |bytes: u64| bytes as f64 / peak.max(1) as f64;
    let curves = heuristics
        .iter()
        .map(|&heuristic| curve(&trace, peak, heuristic, trials));
    Ok(Panel {
        name: name.split('.').next().unwrap_or_default().to_owned(),
        constants: share(trace.constant_bytes()),
        floor: share(trace.constant_bytes() + trace.bottleneck()),
        curves: curves.collect(),
    })
}

fn curve(trace: &Trace, peak: u64, heuristic: Heuristic, trials: u64) -> Curve {
    let trials = if heuristic == Heuristic::Random {
        trials.max(1)
    } else {
        1
    };
    let mut curve = Curve {
        heuristic,
        points: Vec::new(),
        failure: None,
    };
    for tenths in TENTHS {
        let ratio = f64::from(tenths) / 10.0;
        let replays = (0..trials).map(|seed| {
            let options = SimulateOptions {
                heuristic,
                budget: Some((ratio * peak as f64) as u64),
                seed,
                ..SimulateOptions::default()
            };
            simulate(trace, &options)
        });
        let replays: Vec<_> = replays.collect();
        let failed = replays.iter().find(|replay| replay.status != SimulateStatus::Ok);
        if let Some(failed) = failed {
            curve.failure = Some((ratio, failed.status));
            break;
        }
        let sum: f64 = replays.iter().map(|replay| replay.overhead).sum();
        curve.points.push((ratio, sum / trials as f64));
    }
    curve
}

/// Rows of the table: overheads, and how the curve ends: `O` out of memory, `T` thrashing.
fn rows(panel: &Panel) -> impl Iterator<Item = Vec<String>> + '_ {
    panel.curves.iter().map(|curve| {
        let mut row = vec![panel.name.clone(), curve.heuristic.to_string()];
        row.extend(curve.points.iter().map(|(_, overhead)| format!("{overhead:.5}")));
        let letter = |(_, status)| if status == SimulateStatus::Oom { "O" } else { "T" };
        row.extend(curve.failure.map(letter).map(str::to_owned));
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels() -> Vec<Panel> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/dtr-logs");
        let heuristics = [Heuristic::DTR_EQ, Heuristic::Random];
        let paths = logs(&folder).unwrap();
        paths.iter().map(|path| panel(path, &heuristics, 2).unwrap()).collect()
    }

    #[test]
    fn a_curve_ends_with_its_first_failure() {
        let panels = panels();
        let row = rows(&panels[0]).next().unwrap();
        assert_eq!(row[..2], ["training_step", "dtr-eq"]);
        assert!(row.len() < HEADER.len() && ["O", "T"].contains(&row.last().unwrap().as_str()));
        assert_eq!(panels[0].curves[0].points.len(), row.len() - 3);
    }

    #[test]
    fn every_log_and_heuristic_is_drawn() {
        let drawing = chart::svg(&panels()).unwrap();
        for text in ["training_step", "dtr-eq", "random"] {
            assert!(drawing.contains(text), "{text}");
        }
    }
}
