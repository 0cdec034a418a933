//! `remat-bench fission`: models in ONNX Runtime whole and in tiles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::fission::Exactness;
use remat::plan::{BudgetSpec, parse_duration};
use remat::solver::SolveControl;
use remat::{FissionRequest, LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::{DeployRequest, Deployment, deploy};
use remat_onnxruntime_run::Host;

use super::row::{added_time, megabytes, refusal};
use super::{dims, host};
use crate::document::replace_in;
use crate::models::models;
use crate::table::{Form, Table};

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
    /// Models, or folders of models.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Most overhead of all but the lowest peak, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    max_overhead: u64,
    /// Value of a symbolic dimension, for the models that have it; may be repeated.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dims::parse)]
    dims: Vec<(String, u64)>,
    /// Time to search and measure, for each file.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time: Duration,
    /// Threads to search with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Shared library of ONNX Runtime [default: as for `ort`].
    #[arg(long, value_name = "PATH")]
    ort_library: Option<PathBuf>,
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Also write the table into this document, between its marks; may be repeated.
    #[arg(long, value_name = "DOCUMENT")]
    write: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let host = host(args.ort_library.clone())?;
    let paths = models(&args.models)?;
    let rows = paths.iter().map(|path| row(path, &host, args));
    let table = Table {
        text_columns: 1,
        header: HEADER,
        rows: rows.collect::<anyhow::Result<_>>()?,
    };
    table.print(args.format);
    let mut documents = args.write.iter();
    documents.try_for_each(|document| replace_in(document, "fission", &table.render(Form::Markdown)))
}

/// Threads of a small machine.
const FEW_THREADS: u32 = 4;

/// The four files of a model: within the overhead whole, in tiles that keep their bits with as many threads as by default and with few, and
/// as low as possible.
fn row(path: &Path, host: &Host, args: &Args) -> anyhow::Result<Vec<String>> {
    let mut row = vec![path.file_stem().unwrap_or_default().to_string_lossy().into_owned()];
    let limit = Some(args.max_overhead * 10_000);
    let few_threads = FissionRequest {
        exactness: Exactness::Exact { threads: FEW_THREADS },
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
        match trial(path, host, args, &solve, fission)? {
            Ok(found) => {
                let exact = |after: bool| {
                    let check = found.check.as_ref()?;
                    if after { check.after.exact } else { check.before.exact }
                };
                if place == 0 {
                    row.push(megabytes(exact(false)));
                }
                row.extend([megabytes(exact(true)), added_time(&found)]);
                if place == 1 {
                    row.push(
                        found
                            .model
                            .tiling()
                            .map_or(0, |tiling| tiling.fused_chains.len())
                            .to_string(),
                    );
                }
            }
            Err(why) => row.extend(why),
        }
    }
    Ok(row)
}

/// One file, or the cells that say why there is none.
fn trial(
    path: &Path,
    host: &Host,
    args: &Args,
    solve: &SolveRequest,
    fission: Option<&FissionRequest>,
) -> anyhow::Result<Result<Deployment, Vec<String>>> {
    let load = LoadOptions {
        dims: dims::of(path, &args.dims)?,
        ..LoadOptions::default()
    };
    let request = DeployRequest {
        fission,
        expected: Duration::from_secs(10),
        ..DeployRequest::new(path, None, &load, solve)
    };
    let control = SolveControl::new().time_limit(args.time).threads(args.threads);
    Ok(match deploy(&request, Some(host), &control) {
        Ok(found) => Ok(found),
        Err(error) => Err(refusal(error)?),
    })
}
