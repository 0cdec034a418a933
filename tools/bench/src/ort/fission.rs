//! `remat-bench fission`: models in ONNX Runtime whole and in tiles.

use std::path::Path;

use remat::fission::Exactness;
use remat::plan::BudgetSpec;
use remat::{FissionRequest, SolveRequest};
use remat_onnxruntime_deploy::DeployRequest;
use remat_onnxruntime_run::Host;

use super::Trials;
use super::row::{added_time, megabytes, refusal};
use crate::files::{models, stem};
use crate::table::{Output, Table};

/// The columns. Peaks are measured with the memory arena off, as in the table of `ort`; time beyond the original model, in per cent, where
/// nothing is set.
const HEADER: &[&str] = &[
    "model",
    "before MB",
    "whole MB",
    "%",
    "in tiles MB",
    "%",
    "tiled fused chains",
    "4 threads MB",
    "%",
    "lowest MB",
    "%",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trials: Trials,
    /// Most overhead of all but the lowest peak, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
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

/// Threads of a small machine.
const FEW_THREADS: u32 = 4;

/// The four files of a model: within the overhead whole, in tiles that keep their bits with as many threads as by default and with few, and
/// as low as possible.
fn row(path: &Path, host: &Host, args: &Args) -> anyhow::Result<Vec<String>> {
    let mut row = vec![stem(path)];
    let limit = Some(args.max_overhead * 10_000);
    let few_threads = FissionRequest {
        exactness: Exactness::Exact {
            threads: FEW_THREADS,
            blocks: false,
        },
        ..FissionRequest::EXACT
    };
    let trials = [
        (BudgetSpec::Auto, limit, None),
        (BudgetSpec::Auto, limit, Some(&FissionRequest::EXACT)),
        (BudgetSpec::Auto, limit, Some(&few_threads)),
        (BudgetSpec::Min, None, Some(&FissionRequest::EXACT)),
    ];
    for (place, (budget, max_overhead, fission)) in trials.into_iter().enumerate() {
        let solve = SolveRequest {
            budget,
            max_overhead,
            solver: "auto".to_owned(),
        };
        let load = args.trials.load(path)?;
        let request = DeployRequest {
            fission,
            ..DeployRequest::new(path, None, &load, &solve)
        };
        match args.trials.deploy(&request, host) {
            Ok(found) => {
                let exact = |after: bool| {
                    let check = found.check.as_ref()?;
                    if after {
                        check.after.arena_off
                    } else {
                        check.before.arena_off
                    }
                };
                if place == 0 {
                    row.push(megabytes(exact(false)));
                }
                row.extend([megabytes(exact(true)), added_time(&found)]);
                if place == 1 {
                    let chains = found.model.tiling().map_or(0, |tiling| tiling.fused_chains.len());
                    row.push(chains.to_string());
                }
            }
            Err(error) => row.extend(refusal(error)?),
        }
    }
    Ok(row)
}
