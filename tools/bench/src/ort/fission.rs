//! `remat-bench fission`: models in ONNX Runtime whole, in tiles that keep every bit, and in tiles that may round otherwise.

use std::path::Path;

use remat::fission::Exactness;
use remat::plan::BudgetSpec;
use remat::{FissionRequest, LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::{DeployRequest, Deployment, SettingBytes};
use remat_onnxruntime_run::{Closeness, Host};

use super::Trials;
use super::memory::{as_it_came, planned};
use super::row::{added_time, megabytes, refusal};
use crate::files::{models, stem};
use crate::table::{Output, Table};

/// The columns. Peaks of the heap are measured with the memory arena off, as in the table of `ort`; growth of the process where nothing is set, and with
/// planned memory; time beyond the original model, in per cent, as estimated and as measured where nothing is set.
const HEADER: &[&str] = &[
    "model",
    "before MB",
    "whole MB",
    "exact MB",
    "est. %",
    "%",
    "close MB",
    "est. %",
    "%",
    "difference",
    "process MB",
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

fn row(path: &Path, host: &Host, args: &Args) -> anyhow::Result<Vec<String>> {
    let load = args.trials.load(path)?;
    let stock = SettingBytes::of(&as_it_came(path, &load, host)?);
    let trial = |fission: Option<&FissionRequest>| trial((path, &load), fission, host, args);
    let whole = trial(None)?;
    let exact = trial(Some(&FissionRequest::EXACT))?;
    let close = FissionRequest {
        exactness: Exactness::Close,
        ..FissionRequest::EXACT
    };
    let close = trial(Some(&close))?;
    let before = stock.resident_first_bytes.max(stock.resident_later_bytes);
    let grown = [before, exact.grown, close.grown].map(megabytes);
    let process = format!("{} -> {}, {}", grown[0], grown[1], grown[2]);
    let figures = [
        vec![stem(path), whole.before, whole.peak, exact.peak],
        exact.time.to_vec(),
        vec![close.peak],
        close.time.to_vec(),
        vec![close.difference, process],
    ];
    Ok(figures.concat())
}

/// What a file takes, ready to be printed.
#[derive(Default)]
struct Trial {
    /// Peak of the heap of the original.
    before: String,
    /// Peak of the heap of the file.
    peak: String,
    /// Added time, estimated and measured.
    time: [String; 2],
    /// How far the outputs lie apart.
    difference: String,
    /// By how much a process grows with planned memory.
    grown: Option<u64>,
}

/// Writes and measures a model, in tiles where they are asked for.
fn trial(
    (path, load): (&Path, &LoadOptions),
    fission: Option<&FissionRequest>,
    host: &Host,
    args: &Args,
) -> anyhow::Result<Trial> {
    let solve = SolveRequest {
        budget: BudgetSpec::Auto,
        max_overhead: Some(args.max_overhead * 10_000),
        solver: "auto".to_owned(),
    };
    let scratch = tempfile::tempdir()?;
    let output = scratch.path().join("tiles.onnx");
    let request = DeployRequest {
        fission,
        plans_memory: true,
        ..DeployRequest::new(path, Some(&output), load, &solve)
    };
    let found = match args.trials.deploy(&request, host) {
        Ok(found) => found,
        Err(error) => {
            return Ok(Trial {
                peak: refusal(error)?.concat(),
                ..Trial::default()
            });
        }
    };
    let check = found.check.as_ref();
    let written = if found.is_written { &output } else { path };
    let keeps_bits = check.is_none_or(|check| check.closeness.is_none());
    let grown = match fission.map(|_| planned((path, written), load, keeps_bits, host)) {
        Some(Ok(planned)) => {
            let measured = &planned.measured;
            measured.resident_first_bytes.max(measured.resident_later_bytes)
        }
        // No plan can be followed where the runtime orders nodes differently each time.
        Some(Err(error)) => refusal(error).map(|_| None)?,
        None => None,
    };
    Ok(Trial {
        before: megabytes(check.and_then(|check| check.before.arena_off)),
        peak: megabytes(check.and_then(|check| check.after.arena_off)),
        time: [format!("{:+.1}", found.solution.overhead.percent()), added_time(&found)],
        difference: difference(&found),
        grown,
    })
}

/// How far the outputs lie apart on ordinary inputs, as a share of the largest number of an output.
fn difference(found: &Deployment) -> String {
    let closeness = found.check.as_ref().and_then(|check| check.closeness.as_ref());
    let largest = closeness.map(Closeness::relative_difference);
    let apart = largest.filter(|&largest| largest > 0.0);
    apart.map_or_else(|| "none".to_owned(), |largest| format!("{largest:.0e}"))
}
