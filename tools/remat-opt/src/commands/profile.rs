//! `remat-opt profile`: what each op of a model takes in ONNX Runtime.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use remat::onnx::{OnnxModel, TensorFile};
use remat::profile::{OpRecord, ProfileFile};
use remat::solver::{Activity, Doing, Observer};
use remat_files::{line, shown};
use remat_onnxruntime_deploy::{DeployError, ProfileRequest, measured_profile};
use remat_onnxruntime_run::{InputTensor, OptimizationLevel, ProfileInputs, ProfileOptions, SessionSettings};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{
    Arguments, INPUT, Inputs, OUTPUT, OpenSizes, OutputPath, REPORT, RUNTIME, ReportArgs, RuntimeArgs, Talk, named,
    parse_intra_threads, provider,
};
use crate::document::Body;
use crate::files::{self, Files};
use crate::progress::Line;
use crate::{console, machine, runtime, units};

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Model (`.onnx`); `-` for stdin.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// Where to write the profile, as JSON for `--profile`.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Warm runs, whose medians are taken.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = RUNTIME)]
    runs: u32,
    /// Seed of the inputs.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "inputs", help_heading = INPUT)]
    seed: u64,
    /// Folder with the inputs, in the form of the `onnx` package's test data.
    ///
    /// `input_N.pb` holds the N-th input. Inputs without a file are made from seed 0.
    #[arg(long, value_name = "DIR", help_heading = INPUT)]
    inputs: Option<PathBuf>,
    #[command(flatten)]
    open: OpenSizes,
    /// What executes the nodes: `cpu`, `cuda` or `cuda:N`.
    #[arg(long, value_name = "NAME", default_value = "cpu", help_heading = RUNTIME)]
    device: String,
    /// Time limit of the process that runs the model.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = remat::plan::parse_duration, help_heading = RUNTIME)]
    time_limit: Duration,
    /// Threads within one node; 0 for as many as the runtime wants.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_intra_threads, help_heading = RUNTIME)]
    intra_threads: usize,
    /// How many ops to list.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = REPORT)]
    top: usize,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// What each op takes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    model: String,
    /// The input.
    input: PathBuf,
    /// Where the profile was written.
    output: Option<PathBuf>,
    /// What the ops ran on.
    device: String,
    /// How they were measured.
    method: String,
    /// Sum of the times of all ops.
    ops_ns: u64,
    /// Time of a whole run.
    run_ns: Option<u64>,
    /// The ops, in the order of the model.
    ops: Vec<OpTime>,
    /// How many of the slowest the text lists.
    #[serde(skip)]
    top: usize,
}

/// What one op takes.
#[derive(Serialize, JsonSchema)]
struct OpTime {
    /// Name of the node.
    node: String,
    /// The operator.
    op_type: String,
    /// Median time.
    duration_ns: u64,
    /// Bytes of its results, where all are known.
    result_bytes: Option<u64>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-profile-report/1";

    fn text(&self) -> String {
        let mut slowest: Vec<_> = self.ops.iter().collect();
        slowest.sort_by_key(|op| std::cmp::Reverse(op.duration_ns));
        let mut table = console::table(["time", "share", "op", "type", "bytes of results"], [0, 1, 4]);
        for op in slowest.into_iter().take(self.top) {
            table.add_row([
                units::nanoseconds(op.duration_ns),
                format!("{:.1} %", units::percent(op.duration_ns, self.ops_ns)),
                line(&op.node),
                line(&op.op_type),
                op.result_bytes.map_or_else(String::new, units::bytes),
            ]);
        }
        let mut text = format!(
            "{}: {} take {}, a whole run {}\n{}, on {}\n\n{}\n",
            shown(&self.model),
            units::count(self.ops.len(), "op"),
            units::nanoseconds(self.ops_ns),
            units::nanoseconds(self.run_ns.unwrap_or(0)),
            shown(&self.method),
            shown(&self.device),
            table.trim_fmt(),
        );
        if let Some(path) = &self.output {
            text += &format!("\nwritten   {}\n", path.display());
        }
        text
    }
}

impl Arguments for ProfileArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs::one(&mut self.input)
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([(&mut self.output, "json")])
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        let line = Line::start(talk.quiet, None);
        line.begins(&Doing::new(Activity::Import, ""));
        let mut files = Files::default();
        files.reads("the model", [self.input.as_path()])?;
        files.writes("the profile (`-o`)", self.output.as_deref())?;
        self.open.check()?;
        let import = self.open.import();
        let model = OnnxModel::open(&self.input, &import).map_err(remat::Error::from)?;
        files.reads("a data file of the model", model.files().iter().map(AsRef::as_ref))?;
        let inputs = match &self.inputs {
            None => ProfileInputs::Seeded(self.seed),
            Some(folder) => ProfileInputs::Given(given(&model, folder, &mut files)?),
        };
        let request = ProfileRequest {
            settings: SessionSettings {
                threads: self.intra_threads,
                dims: import.dims,
                provider: provider(&self.device)?,
                ..SessionSettings::exact(OptimizationLevel::Off)
            },
            options: ProfileOptions {
                runs: self.runs,
                inputs,
            },
            device: machine::processor(),
            date: machine::today(),
        };
        let host = self.runtime.find()?;
        line.begins(&Doing::new(Activity::Measure, "every op"));
        let limits = runtime::limits(Some(self.time_limit));
        let file = measured_profile(&host, limits, &self.input, &model, &request).map_err(DeployError::from)?;
        line.finish();
        if let Some(path) = &self.output {
            files::write(path, file.to_json())?;
        }
        console::report(&self.report, &Report::new(self, &model, &file), Ok(()))
    }
}

/// The tensors in `input_N.pb`. The N-th input is the N-th of the model's inputs that are no weights.
fn given(model: &OnnxModel, folder: &Path, files: &mut Files) -> anyhow::Result<Vec<InputTensor>> {
    let graph = model.proto().graph.get_or_default();
    let is_weight = |name: &str| graph.initializer.iter().any(|tensor| tensor.name == name);
    let names = graph.input.iter().map(|input| input.name.as_str());
    let mut tensors = Vec::new();
    for (index, name) in names.filter(|name| !is_weight(name)).enumerate() {
        let path = folder.join(format!("input_{index}.pb"));
        if !path.exists() {
            continue;
        }
        files.reads("an input of the model", [path.as_path()])?;
        let file =
            TensorFile::read(&remat::read(&path)?).with_context(|| format!("cannot read `{}`", path.display()))?;
        if !file.name.is_empty() && file.name != name {
            bail!(
                "`{}` holds tensor `{}`, input {index} is `{name}`",
                path.display(),
                file.name
            );
        }
        tensors.push(InputTensor {
            name: name.to_owned(),
            shape: file.shape,
            bytes: file.bytes,
        });
    }
    if tensors.is_empty() {
        bail!("`{}` holds no file `input_0.pb` or the like", folder.display());
    }
    Ok(tensors)
}

/// Sum of the times of all ops.
fn total_ns(file: &ProfileFile) -> u64 {
    file.ops.iter().map(|op| op.duration_ns).fold(0, u64::saturating_add)
}

/// The operator that a node calls.
fn op_type(model: &OnnxModel, name: &str) -> String {
    let node = model.graph().ops.iter().find(|node| node.name == name);
    node.map_or_else(String::new, |node| node.op_type.clone())
}

/// Bytes of the results of a node, where all are known.
fn result_bytes(op: &OpRecord) -> Option<u64> {
    let bytes: Option<u64> = op.outputs.iter().map(|output| output.bytes).sum();
    bytes.filter(|_| !op.outputs.is_empty())
}

impl Report {
    fn new(args: &ProfileArgs, model: &OnnxModel, file: &ProfileFile) -> Self {
        let op = |op: &OpRecord| OpTime {
            node: op.node.clone(),
            op_type: op_type(model, &op.node),
            duration_ns: op.duration_ns,
            result_bytes: result_bytes(op),
        };
        Self {
            model: model.graph().name.clone(),
            input: args.input.clone(),
            output: args.output.clone(),
            device: file.device.clone(),
            method: file.method.clone(),
            ops_ns: total_ns(file),
            run_ns: file.run.as_ref().map(|run| run.run_ns),
            ops: file.ops.iter().map(op).collect(),
            top: args.top,
        }
    }
}
