//! `remat-bench fission`: models in ONNX Runtime whole and in tiles.

use std::path::Path;

use remat::fission::Exactness;
use remat::plan::BudgetSpec;
use remat::{FissionRequest, SolveRequest};
use remat_onnxruntime_deploy::{DeployRequest, Deployment};
use remat_onnxruntime_run::{Closeness, Host};

use super::Trials;
use super::row::{added_time, megabytes, refusal};
use crate::files::{models, stem};
use crate::table::{Output, Table};

/// The columns. Peaks are measured with the memory arena off, as in the table of `ort`; time beyond the original model, in per cent, as it was estimated
/// and as it was measured where nothing is set.
const HEADER: &[&str] = &[
    "model",
    "before MB",
    "whole MB",
    "exact MB",
    "est. %",
    "%",
    "fused chains",
    "close MB",
    "est. %",
    "%",
    "difference",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trials: Trials,
    /// Most overhead, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 25)]
    max_overhead: u64,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let host = args.trials.host()?;
    let paths = models(&args.trials.models)?;
    let rows = paths.iter().map(|path| row(path, &host, args));
    let rows = rows.collect::<anyhow::Result<_>>()?;
    args.output.give("fission", "", &Table::new(1, HEADER, rows))
}

/// The three files of a model: whole, in tiles that keep every bit, and in tiles that may round otherwise.
fn row(path: &Path, host: &Host, args: &Args) -> anyhow::Result<Vec<String>> {
    let mut row = vec![stem(path)];
    let close = FissionRequest {
        exactness: Exactness::Close,
        ..FissionRequest::EXACT
    };
    for fission in [None, Some(&FissionRequest::EXACT), Some(&close)] {
        let solve = SolveRequest {
            budget: BudgetSpec::Auto,
            max_overhead: Some(args.max_overhead * 10_000),
            solver: "auto".to_owned(),
        };
        let load = args.trials.load(path)?;
        let request = DeployRequest {
            fission,
            ..DeployRequest::new(path, None, &load, &solve)
        };
        let found = match args.trials.deploy(&request, host) {
            Ok(found) => found,
            Err(error) => {
                row.extend(refusal(error)?);
                row.extend(
                    fission
                        .map_or(&[][..], |_| &["", ""])
                        .iter()
                        .map(|&blank| blank.to_owned()),
                );
                continue;
            }
        };
        let check = found.check.as_ref();
        let peak = megabytes(check.and_then(|check| check.after.arena_off));
        let Some(fission) = fission else {
            row.extend([megabytes(check.and_then(|check| check.before.arena_off)), peak]);
            continue;
        };
        let estimated = format!("{:+.1}", found.solution.overhead.percent());
        row.extend([peak, estimated, added_time(&found)]);
        row.push(match fission.exactness {
            Exactness::Close => difference(&found),
            _ => {
                let chains = found.model.tiling().map_or(0, |tiling| tiling.fused_chains.len());
                chains.to_string()
            }
        });
    }
    Ok(row)
}

/// How far the outputs lie apart on ordinary inputs, as a share of the largest number of an output.
fn difference(found: &Deployment) -> String {
    let closeness = found.check.as_ref().and_then(|check| check.closeness.as_ref());
    let largest = closeness.map(Closeness::relative_difference);
    let apart = largest.filter(|&largest| largest > 0.0);
    apart.map_or_else(|| "none".to_owned(), |largest| format!("{largest:.0e}"))
}
