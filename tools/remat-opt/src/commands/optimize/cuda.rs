//! `--device cuda -o MODEL.onnx.arena`: a plan of memory for the CUDA provider of ONNX Runtime.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use remat::Format;
use remat::plan::BudgetSpec;
use remat_files::shown;
use remat_onnxruntime_deploy::{
    CudaPlanRequest, CudaPlanned, DeployError, arena_library_path, has_arena_library, plan_cuda, write_arena_library,
};
use remat_onnxruntime_run::Provider;
use schemars::JsonSchema;
use serde::Serialize;

use super::OptimizeArgs;
use crate::args::{Shapes, Talk, provider};
use crate::document::Body;
use crate::job::Job;
use crate::progress::Line;
use crate::{console, units};

/// The extension of plans of memory.
const EXTENSION: &str = "arena";

/// A plan of memory for the CUDA provider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    #[serde(flatten)]
    planned: CudaPlanned,
    /// The library that follows it.
    library: Option<PathBuf>,
    /// Time that it took.
    seconds: f64,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-cuda/1";

    fn text(&self) -> String {
        let planned = &self.planned;
        let (source, level) = (
            if planned.is_recorded { "recorded" } else { "predicted" },
            &planned.level,
        );
        let place = match planned.weights_in_block {
            true => "in the same block",
            false => "each by itself",
        };
        let mut lines = vec![
            format!(
                "Requests {source}, ONNX Runtime {}, optimization level {level}",
                planned.runtime
            ),
            format!(
                "Runs     {} buffers in {}, {} at one time",
                planned.buffers,
                units::bytes(planned.run_block_bytes),
                units::bytes(planned.run_load_bytes)
            ),
            format!("Weights  {}, {place}", units::bytes(planned.weight_bytes)),
        ];
        let dims = planned
            .dims
            .iter()
            .map(|(name, (least, most))| format!("{name}={least}..{most}"));
        let dims: Vec<String> = dims.collect();
        if !dims.is_empty() {
            lines.push(format!("Shapes   {}", dims.join(" ")));
        }
        lines.extend(planned.not_measured.iter().map(|what| format!("Not measured: {what}")));
        if !planned.is_recorded {
            lines.push(
                "Exact    with requests that the device was seen to get: `remat_opt.record_requests`, `--requests`"
                    .to_owned(),
            );
        }
        lines.push(format!(
            "Written  {} [{:.0} s]",
            shown(planned.file.display()),
            self.seconds
        ));
        lines.join("\n") + "\n"
    }
}

/// The library that follows the plan: beside it, where this program has it.
pub(super) fn library(args: &OptimizeArgs) -> Option<PathBuf> {
    let output = args.output.as_deref()?;
    let is_plan = remat::extension(output) == EXTENSION;
    (is_plan && has_arena_library()).then(|| arena_library_path(output))
}

/// Whether such a plan is asked for.
pub(super) fn is_asked(args: &OptimizeArgs, format: Format) -> anyhow::Result<bool> {
    let is_plan = args
        .output
        .as_deref()
        .is_some_and(|output| remat::extension(output) == EXTENSION);
    let device = args.load.device.as_deref().unwrap_or("cpu");
    let is_cuda = matches!(provider(device), Ok(Provider::Cuda(_)));
    match (is_plan, is_cuda) {
        (false, _) if args.target.requests.is_none() && device != "cuda" => return Ok(false),
        (true, true) => {}
        (_, false) => bail!(
            "`.arena` files and `--requests` are about the memory of a CUDA device: add `--device cuda`. For the processor the plan is \
             written beside the model: `-o OUT.onnx`"
        ),
        (false, true) => bail!(
            "`--device cuda` and `--requests` plan the memory of a model as it is: `-o MODEL.onnx.arena`. To rematerialize it, name the GPU \
             (`--device h100`) or none, and plan what is written"
        ),
    }
    if format != Format::Onnx {
        bail!(
            "the CUDA provider runs ONNX models, and the input is {}",
            format.describe()
        );
    }
    if !matches!(args.budget, BudgetSpec::Auto | BudgetSpec::None) || args.plan.is_some() || args.is_about_memory() {
        bail!(
            "with `-o MODEL.onnx.arena` the model stays as it is: leave out budget, `--plan` and what is about the processor's memory"
        );
    }
    Ok(true)
}

/// Writes the plan.
pub(super) fn run(
    args: &OptimizeArgs,
    job: &Job<'_>,
    shapes: &Shapes,
    started: Instant,
    talk: Talk,
) -> anyhow::Result<()> {
    let Some(output) = &args.output else {
        bail!("no output is given");
    };
    let line = Line::start_at(started, talk.quiet, Some(args.time_limit));
    let mut import = args.load.open.import();
    import.dims.clone_from(&job.load.dims);
    let request = CudaPlanRequest {
        model: job.input,
        recorded: args.target.requests.as_deref(),
        import: &import,
        level: args.target.level,
        ranges: &shapes.ranges,
        output,
    };
    let planned = plan_cuda(&request, &args.control(&line)).map_err(DeployError::from)?;
    let library = library(args);
    if let Some(library) = &library {
        write_arena_library(library).map_err(DeployError::from)?;
    }
    line.finish();
    let report = Report {
        planned,
        library,
        seconds: started.elapsed().as_secs_f64(),
    };
    console::report(&args.report, &report, Ok(()))
}
