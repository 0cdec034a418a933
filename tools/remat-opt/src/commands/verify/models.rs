//! `remat-opt verify BASE.onnx REWRITTEN.onnx`: runs both and compares bits, memory and time.

use std::path::{Path, PathBuf};

use remat::onnx::{ImportOptions, OnnxModel};
use remat::solver::{Activity, Doing, Observer};
use remat_files::{line, shown};
use remat_onnxruntime_deploy::DeployError;
use remat_onnxruntime_run::{
    MeasureOptions, Measurement, ModelComparison, OutputDifference, SeededOutputs, SessionSettings, compare_models,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::VerifyArgs;
use crate::commands::warn_of_lost_marks;
use crate::document::Body;
use crate::job::Job;
use crate::progress::Line;
use crate::runtime::limits;
use crate::{console, units};

/// Two models side by side.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Version of ONNX Runtime.
    runtime: String,
    /// How the models were run.
    settings: SessionSettings,
    /// Whether all outputs agree in every bit.
    identical: bool,
    /// The first seed whose outputs differ.
    differing_seed: Option<u64>,
    /// The outputs that differ for it.
    differences: Vec<OutputDifference>,
    /// Peak of the first run: rewritten over base.
    peak_ratio: Option<f64>,
    /// Time: rewritten over base, the median over pairs of runs.
    time_ratio: f64,
    /// The first model.
    base: ModelRecord,
    /// The second model.
    rewritten: ModelRecord,
}

/// What was measured of one model.
#[derive(Serialize, JsonSchema)]
struct ModelRecord {
    /// Its file.
    path: PathBuf,
    /// Peak of the first run, above what is live before it.
    first_run_peak_bytes: Option<u64>,
    /// Peak of later runs.
    later_runs_peak_bytes: Option<u64>,
    /// Why the peaks are missing.
    peaks_unknown_because: Option<String>,
    /// Most bytes that the memory arena held, where it is on.
    arena_peak_bytes: Option<u64>,
    /// Bytes that are live once the model is loaded.
    loaded_bytes: u64,
    /// Median time of a warm run.
    median_ns: u64,
    /// Least time of a warm run.
    min_ns: u64,
    /// Whether all outputs are finite.
    finite: bool,
    /// Digests of the outputs, for each seed.
    outputs: Vec<SeededOutputs>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-verify-models/1";
}

pub(super) fn run(args: &VerifyArgs, mut job: Job<'_>, quiet: bool) -> anyhow::Result<()> {
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    for path in [&args.input, &args.plan] {
        // What is wrong with a model is for the runtime to say.
        let Ok(model) = OnnxModel::open(path, &looked_at) else {
            continue;
        };
        job.files
            .reads("a data file of a model", model.files().iter().map(AsRef::as_ref))?;
        warn_of_lost_marks(&model);
    }
    let settings = args
        .session
        .settings(args.load.device.as_deref(), &args.load.open.dims)?;
    let options = MeasureOptions {
        runs: args.runs,
        seeds: (0..args.seeds.into())
            .map(|offset| args.seed.wrapping_add(offset))
            .collect(),
        time: None,
    };
    let host = job.find_runtime()?;
    let pair = (args.input.as_path(), args.plan.as_path());
    let line = Line::start(quiet, None);
    let begins = |part| {
        let what = ["the first model", "the second model", "both in turns"][part as usize - 1];
        line.begins(&Doing::new(Activity::Measure, &format!("{part}/3, {what}")));
    };
    let runner = host.runner(limits(Some(args.time_limit)));
    let found = compare_models(&runner, pair, &settings, &options, &begins).map_err(DeployError::from)?;
    line.finish();
    let outcome = outcome(pair, &found);
    let report = || Report::new(pair, &host.version, &settings, &found);
    args.save_report(report(), &outcome)?;
    console::report(&args.report, || text(pair, &found), report, outcome)
}

/// That outputs differ is a finding.
fn outcome(pair: (&Path, &Path), found: &ModelComparison) -> anyhow::Result<()> {
    match found.differing_seed.zip(found.differences.first()) {
        None if found.differing_seed.is_none() => Ok(()),
        Some((seed, first)) => Err(differ(pair, seed, first)),
        None => anyhow::bail!(
            "the outputs differ from run to run: `{}` or `{}` draws random numbers without a seed",
            pair.0.display(),
            pair.1.display()
        ),
    }
}

fn differ((base, rewritten): (&Path, &Path), seed: u64, first: &OutputDifference) -> anyhow::Error {
    let error = DeployError::ModelsDiffer {
        base: base.to_owned(),
        rewritten: rewritten.to_owned(),
        output: first.name.clone(),
        differing: first.differing,
        elements: first.elements,
        form: first.form.clone(),
        seed,
    };
    error.into()
}

impl ModelRecord {
    fn new(path: &Path, measured: &Measurement, median_ns: u64, min_ns: u64) -> Self {
        let peaks = measured.peaks.as_ref();
        Self {
            path: path.to_owned(),
            first_run_peak_bytes: peaks.ok().map(|peaks| peaks.first),
            later_runs_peak_bytes: peaks.ok().and_then(|peaks| peaks.steady),
            peaks_unknown_because: peaks.err().cloned(),
            arena_peak_bytes: measured.arena_peak,
            loaded_bytes: measured.loaded_bytes,
            median_ns,
            min_ns,
            finite: measured.finite,
            outputs: measured.outputs.clone(),
        }
    }
}

impl Report {
    fn new(
        (base, rewritten): (&Path, &Path),
        version: &str,
        settings: &SessionSettings,
        found: &ModelComparison,
    ) -> Self {
        let times = &found.times;
        Self {
            runtime: version.to_owned(),
            settings: settings.clone(),
            identical: found.differing_seed.is_none(),
            differing_seed: found.differing_seed,
            differences: found.differences.clone(),
            peak_ratio: peak_ratio(found),
            time_ratio: times.ratio,
            base: ModelRecord::new(base, &found.base, times.base_median_ns, times.base_min_ns),
            rewritten: ModelRecord::new(rewritten, &found.rewritten, times.other_median_ns, times.other_min_ns),
        }
    }
}

fn peak_ratio(found: &ModelComparison) -> Option<f64> {
    let (base, rewritten) = (found.base.peaks.as_ref().ok()?, found.rewritten.peaks.as_ref().ok()?);
    Some(rewritten.first as f64 / base.first as f64)
}

fn text((base, rewritten): (&Path, &Path), found: &ModelComparison) -> String {
    let name = |path: &Path| line(&path.file_name().unwrap_or_default().to_string_lossy());
    let headings = [String::new(), name(base), name(rewritten), "change".to_owned()];
    let mut table = console::table(headings, 1..4);
    let peaks = |which: fn(remat_onnxruntime_run::Peaks) -> Option<u64>| {
        let figure = |measured: &Measurement| measured.peaks.as_ref().ok().and_then(|peaks| which(*peaks));
        figure(&found.base).zip(figure(&found.rewritten))
    };
    for (what, figures) in [
        ("peak, first run", peaks(|peaks| Some(peaks.first))),
        ("peak, later runs", peaks(|peaks| peaks.steady)),
    ] {
        if let Some((before, after)) = figures {
            let ratio = after as f64 / before.max(1) as f64;
            table.add_row([
                what.to_owned(),
                units::bytes(before),
                units::bytes(after),
                change(ratio),
            ]);
        }
    }
    let times = &found.times;
    table.add_row([
        "time, median".to_owned(),
        units::nanoseconds(times.base_median_ns),
        units::nanoseconds(times.other_median_ns),
        change(times.ratio),
    ]);
    let mut lines = vec![table.trim_fmt()];
    if let Err(why) = &found.base.peaks {
        lines.push(format!("peaks are not known: {}", shown(why)));
    }
    let count = found.base.outputs.first().map_or(0, |seeded| seeded.outputs.len());
    let seeds = found.base.outputs.len();
    if found.differing_seed.is_none() {
        lines.push(format!(
            "{count} outputs for each of {seeds} seeds: identical in every bit"
        ));
    }
    for difference in &found.differences {
        let form = difference
            .form
            .as_ref()
            .map_or_else(String::new, |form| format!(", {}", shown(form)));
        lines.push(format!(
            "output `{}` differs in {} of {} elements{form}",
            shown(&difference.name),
            difference.differing,
            difference.elements
        ));
    }
    if !found.base.finite {
        lines.push("outputs are not finite: on these inputs they say little".to_owned());
    }
    lines.join("\n") + "\n"
}

/// A ratio as people read it, `-50.7 %`.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    // No minus before what is shown as zero.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    format!("{percent:+.1} %")
}
