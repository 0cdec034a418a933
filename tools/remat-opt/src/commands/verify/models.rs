//! `remat-opt verify BASE.onnx REWRITTEN.onnx`: runs both and compares bits, memory and time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use comfy_table::Table;
use remat::ir::Dim;
use remat::onnx::{ImportOptions, OnnxModel};
use remat::solver::{Activity, Doing, Observer};
use remat_files::{line, shown};
use remat_onnxruntime_deploy::DeployError;
use remat_onnxruntime_run::{
    CloseFault, CloseOptions, Closeness, MeasureOptions, Measurement, ModelComparison, OutputCloseness,
    OutputDifference, SeededOutputs, SessionSettings, SizeOutcome, SizesCompared, compare_close, compare_models,
    dims_text,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::VerifyArgs;
use crate::commands::warn_of_lost_marks;
use crate::document::{self, Body};
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
    /// How far outputs lie apart that may round otherwise, on inputs of several kinds; absent where that was not asked for, or all bits agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    closeness: Option<Closeness>,
    /// What came of runs at other sizes of dimensions that the first model leaves open and the second one does not fix.
    sizes: SizesCompared,
    /// Dimensions that the first model leaves open and whose number the inputs of the second one declare: it takes no other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fixed_dims: BTreeMap<String, u64>,
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
    /// By how much the process grew at most in the first run, where the system tells.
    resident_first_bytes: Option<u64>,
    /// By how much it grew in later runs, what it kept after the first one included.
    resident_later_bytes: Option<u64>,
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
    const FORMAT: &'static str = "remat-verify-models/2";

    fn text(&self) -> String {
        let mut lines = vec![self.table().trim_fmt()];
        if self.settings.arena || self.settings.memory_pattern {
            lines.push(
                "with the runtime's memory arena or pattern on, as they are by default; `--arena off --pattern off` shows the peaks of plans"
                    .to_owned(),
            );
        }
        if let Some(why) = &self.base.peaks_unknown_because {
            lines.push(format!("peaks are not known: {}", shown(why)));
        }
        let outputs = &self.base.outputs;
        let count = outputs.first().map_or(0, |seeded| seeded.outputs.len());
        if self.identical {
            lines.push(format!(
                "{} for each of {}: bit-identical",
                units::count(count, "output"),
                units::count(outputs.len(), "seed")
            ));
        }
        for one in &self.sizes.compared {
            let outcome = match &one.outcome {
                SizeOutcome::Same => "bit-identical".to_owned(),
                differs => format!("the second model {differs}"),
            };
            lines.push(format!("with {}: {outcome}", dims_text(&one.dims)));
        }
        if !self.fixed_dims.is_empty() {
            lines.push(format!(
                "{} fixed: the inputs of the second model declare it, and it takes no other size",
                dims_text(&self.fixed_dims)
            ));
        }
        for difference in &self.differences {
            let form = difference.form.as_ref();
            lines.push(format!(
                "output `{}` differs in {} of {} elements{}",
                shown(&difference.name),
                difference.differing,
                difference.elements,
                form.map_or_else(String::new, |form| format!(", {}", shown(form)))
            ));
        }
        if let Some(closeness) = &self.closeness {
            lines.push(units::closeness(closeness));
        }
        if !self.base.finite {
            lines.push("outputs are not finite: on these inputs they say little".to_owned());
        }
        lines.join("\n") + "\n"
    }
}

pub(super) fn run(args: &VerifyArgs, mut job: Job<'_>, quiet: bool) -> anyhow::Result<()> {
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let mut opened = Vec::new();
    for path in [&args.input, &args.plan] {
        // What is wrong with a model is for the runtime to say.
        let Ok(model) = OnnxModel::open(path, &looked_at) else {
            continue;
        };
        job.files
            .reads("a data file of a model", model.files().iter().map(AsRef::as_ref))?;
        warn_of_lost_marks(&model);
        opened.push(model);
    }
    let mut dims = args.load.open.dims();
    let fixed = match &opened[..] {
        [base, rewritten] => fixed_in(rewritten, base),
        _ => BTreeMap::new(),
    };
    for (name, &size) in &fixed {
        dims.entry(name.clone()).or_insert(size);
    }
    let settings = args.session.settings(args.load.device.as_deref(), dims)?;
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
    let found = compare_models(
        &runner,
        pair,
        &settings,
        &fixed.keys().cloned().collect(),
        &options,
        &begins,
    )
    .map_err(DeployError::from)?;
    let differs = found.differing_seed.is_some() && !found.differences.is_empty();
    let closeness = args.close.filter(|_| differs).map(|limit| {
        let options = CloseOptions {
            seeds: options.seeds.clone(),
            limit,
            time: None,
        };
        compare_close(&runner, pair, &settings, &options).map_err(DeployError::from)
    });
    let closeness = closeness.transpose()?;
    line.finish();
    let outcome = outcome(pair, &found, closeness.as_ref());
    let report = Report {
        closeness,
        ..Report::new(pair, &host.version, &settings, &found, &fixed)
    };
    document::save(args.output.as_deref(), &report, &outcome)?;
    console::report(&args.report, &report, outcome)
}

/// Dimensions of inputs that `base` leaves open and `rewritten` states: it takes no other sizes.
fn fixed_in(rewritten: &OnnxModel, base: &OnnxModel) -> BTreeMap<String, u64> {
    let inputs = |model: &'_ OnnxModel| -> BTreeMap<String, Vec<Dim>> {
        let graph = model.graph();
        let inputs = graph.inputs.iter().map(|&input| &graph.tensors[input]);
        inputs
            .map(|tensor| (tensor.name.clone(), tensor.ty.dims().to_vec()))
            .collect()
    };
    let (open, stated) = (inputs(base), inputs(rewritten));
    let mut found = BTreeMap::new();
    for (input, dims) in &open {
        for (axis, (dim, stated)) in dims.iter().zip(stated.get(input).into_iter().flatten()).enumerate() {
            match (dim, stated) {
                (Dim::Symbol(name), Dim::Known(size)) => found.insert(name.clone(), *size),
                (Dim::Unknown, Dim::Known(size)) => found.insert(format!("{input}[{axis}]"), *size),
                _ => None,
            };
        }
    }
    found
}

/// That outputs differ is a finding; where they may round otherwise, that they differ by more than that.
fn outcome(pair: (&Path, &Path), found: &ModelComparison, closeness: Option<&Closeness>) -> anyhow::Result<()> {
    if let Some(other) = found.sizes.first_difference(closeness.is_some()) {
        let (base, rewritten) = (pair.0.to_owned(), pair.1.to_owned());
        let (dims, outcome) = (other.dims.clone(), other.outcome.clone());
        return Err(DeployError::OtherAtSize {
            base,
            rewritten,
            dims,
            outcome,
        }
        .into());
    }
    if let (Some(closeness), Some(seed)) = (closeness, found.differing_seed) {
        return closeness
            .fault()
            .map_or(Ok(()), |(output, fault)| Err(apart(pair, seed, output, fault)));
    }
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

/// That an output differs by more than rounding explains.
fn apart(pair: (&Path, &Path), seed: u64, output: &OutputCloseness, fault: CloseFault) -> anyhow::Error {
    let inputs = output.inputs;
    let form = match fault {
        CloseFault::Form => "type or shape".to_owned(),
        CloseFault::NotFinite => format!("NaN or infinite on {inputs} where that of the first is not"),
        CloseFault::Apart => format!(
            "by {:.0e} of its largest magnitude on {inputs}",
            output.relative_difference
        ),
    };
    let difference = OutputDifference {
        name: output.name.clone(),
        differing: output.differing,
        elements: output.elements,
        form: Some(form),
    };
    differ(pair, seed, &difference)
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
            resident_first_bytes: measured.resident.map(|resident| resident.first),
            resident_later_bytes: measured.resident.and_then(|resident| resident.later),
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
    /// Memory and time of the two. What the process takes comes first: that is what its user has.
    fn table(&self) -> Table {
        let name = |path: &Path| line(&path.file_name().unwrap_or_default().to_string_lossy());
        let (base, rewritten) = (&self.base, &self.rewritten);
        let headings = [
            String::new(),
            name(&base.path),
            name(&rewritten.path),
            "change".to_owned(),
        ];
        let mut table = console::table(headings, 1..4);
        let of_both = |which: fn(&ModelRecord) -> Option<u64>| which(base).zip(which(rewritten));
        for (what, figures) in [
            ("growth, first run", of_both(|model| model.resident_first_bytes)),
            ("growth, later runs", of_both(|model| model.resident_later_bytes)),
            ("peak, first run", of_both(|model| model.first_run_peak_bytes)),
            ("peak, later runs", of_both(|model| model.later_runs_peak_bytes)),
        ] {
            if let Some((before, after)) = figures {
                // Of nothing there is no share.
                let ratio = (before > 0).then(|| after as f64 / before as f64);
                table.add_row([
                    what.to_owned(),
                    units::bytes(before),
                    units::bytes(after),
                    ratio.map_or("-".to_owned(), change),
                ]);
            }
        }
        table.add_row([
            "time, median".to_owned(),
            units::nanoseconds(base.median_ns),
            units::nanoseconds(rewritten.median_ns),
            change(self.time_ratio),
        ]);
        table
    }

    fn new(
        (base, rewritten): (&Path, &Path),
        version: &str,
        settings: &SessionSettings,
        found: &ModelComparison,
        fixed: &BTreeMap<String, u64>,
    ) -> Self {
        let times = &found.times;
        Self {
            runtime: version.to_owned(),
            settings: settings.clone(),
            identical: found.differing_seed.is_none(),
            differing_seed: found.differing_seed,
            differences: found.differences.clone(),
            closeness: None,
            sizes: found.sizes.clone(),
            fixed_dims: fixed.clone(),
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

/// A ratio as people read it, `-50.7 %`.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    // No minus before what is shown as zero.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    format!("{percent:+.1} %")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use remat_onnxruntime_run::{OutputDigest, Peaks, Resident, TimeComparison};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn measured(peak: u64, resident: Option<Resident>) -> Measurement {
        let output = OutputDigest {
            name: "y".to_owned(),
            element: "f32".to_owned(),
            shape: vec![2],
            digest: "00".to_owned(),
        };
        Measurement {
            peaks: Ok(Peaks {
                first: peak,
                steady: Some(peak),
            }),
            planned: None,
            arena_peak: None,
            arena_kept: None,
            resident,
            fresh_ns_per_mib: 0,
            loaded_bytes: MIB,
            load_ns: 5_000_000,
            first_ns: 3_000_000,
            warm_runs: 1,
            median_ns: 3_000_000,
            min_ns: 3_000_000,
            outputs: vec![SeededOutputs {
                seed: 0,
                outputs: vec![output],
            }],
            finite: true,
        }
    }

    fn found(base: Measurement, rewritten: Measurement) -> ModelComparison {
        let times = TimeComparison {
            base_median_ns: 3_000_000,
            base_min_ns: 3_000_000,
            other_median_ns: 6_000_000,
            other_min_ns: 6_000_000,
            ratio: 2.0,
        };
        ModelComparison {
            base,
            rewritten,
            times,
            differences: Vec::new(),
            differing_seed: None,
            sizes: SizesCompared::default(),
        }
    }

    fn exact() -> SessionSettings {
        SessionSettings::exact(remat_onnxruntime_run::OptimizationLevel::All)
    }

    const GROWN: Resident = Resident {
        first: 12 * MIB,
        later: Some(10 * MIB),
        files: MIB,
    };

    #[test]
    fn the_growth_of_the_processes_stands_beside_the_heap() {
        let less = Resident {
            first: 9 * MIB,
            later: Some(5 * MIB),
            files: MIB,
        };
        let found = found(measured(8 * MIB, Some(GROWN)), measured(4 * MIB, Some(less)));
        let pair = (Path::new("a.onnx"), Path::new("b.onnx"));
        let report = Report::new(pair, "1.0.0", &exact(), &found, &BTreeMap::new());
        assert_snapshot!(report.text(), @r"
                               a.onnx   b.onnx    change
         growth, first run   12.0 MiB  9.0 MiB   -25.0 %
         growth, later runs  10.0 MiB  5.0 MiB   -50.0 %
         peak, first run      8.0 MiB  4.0 MiB   -50.0 %
         peak, later runs     8.0 MiB  4.0 MiB   -50.0 %
         time, median         3.00 ms  6.00 ms  +100.0 %
        1 output for each of 1 seed: bit-identical
        ");
        let base = serde_json::to_value(report.base).unwrap();
        assert_eq!(base["resident_first_bytes"], 12 * MIB);
        assert_eq!(base["resident_later_bytes"], 10 * MIB);
    }

    #[test]
    fn growth_that_one_process_does_not_know_is_not_compared() {
        let found = found(measured(8 * MIB, Some(GROWN)), measured(4 * MIB, None));
        let pair = (Path::new("a.onnx"), Path::new("b.onnx"));
        let shown = Report::new(pair, "1.0.0", &exact(), &found, &BTreeMap::new()).text();
        assert!(
            !shown.contains("growth") && shown.contains("peak, later runs"),
            "{shown}"
        );
    }
}
