//! `remat-bench dtr`: the overhead of dynamic rematerialization under shrinking budgets, as in Figure 2 of the DTR paper.

mod replay;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use remat::dtr::{Heuristic, SimulateStatus};

use self::replay::{Replays, replays};
use crate::document::replace_in;
use crate::table::{Form, Table};

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
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Regenerate the table in this document, between its marks.
    #[arg(long, value_name = "DOCUMENT")]
    write: Option<PathBuf>,
}

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
    let paths = logs(&args.logs)?;
    ensure!(
        !paths.is_empty(),
        "`{}` has no file that ends in .log or .log.gz",
        args.logs.display()
    );
    let mut logs_replayed = Vec::new();
    for path in &paths {
        logs_replayed.push(replays(path, &args.heuristics, args.trials)?);
    }
    let table = Table {
        text_columns: 2,
        header: &HEADER,
        rows: logs_replayed.iter().flat_map(rows).collect(),
    };
    if let Some(document) = &args.write {
        replace_in(document, "dtr", &table.render(Form::Markdown))?;
    }
    table.print(args.format);
    Ok(())
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

    fn replayed() -> Vec<Replays> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/dtr-logs");
        let heuristics = [Heuristic::DtrEq, Heuristic::Random];
        let paths = logs(&folder).unwrap();
        paths
            .iter()
            .map(|path| replays(path, &heuristics, 2).unwrap())
            .collect()
    }

    #[test]
    fn a_curve_ends_with_its_first_failure() {
        let logs = replayed();
        let row = rows(&logs[0]).next().unwrap();
        assert_eq!(row[..2], ["training_step", "dtr-eq"]);
        assert!(row.len() < HEADER.len() && ["O", "T"].contains(&row.last().unwrap().as_str()));
        assert_eq!(logs[0].curves[0].overheads.len(), row.len() - 3);
    }
}
