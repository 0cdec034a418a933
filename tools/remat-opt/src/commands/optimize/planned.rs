//! The plan of memory that is written beside a model.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use remat::solver::SolveControl;
use remat::{ErrorKind, LoadOptions, Model};
use remat_files::shown;
use remat_onnxruntime_deploy::{
    ArenaPlanRequest, ArenaPlanned, DeployError, InferredSizes, arena_plan_path, plan_arena,
};
use remat_onnxruntime_run::{ChildLimits, Host};

use super::OptimizeArgs;
use crate::args::Shapes;
use crate::job::{LEAST, PATIENCE};
use crate::runtime::limits;

/// Runs of a process that records a plan of memory, or replays it, loading apart: many of them are of small shapes.
const ARENA_RUNS: u32 = 24;

/// How often more than once a file is loaded and measured in which the runtime may make copies in another order each time.
const OTHER_LOADS: usize = 2;

/// Limits of each process that runs the model for its plan of memory, or to try settings.
pub(super) fn memory_limits(expected: Duration) -> ChildLimits<'static> {
    limits(Some((LEAST + expected.saturating_mul(ARENA_RUNS * PATIENCE)) * 2))
}

/// A file whose memory is planned, and the model that it was made of.
#[derive(Clone, Copy)]
pub(super) struct ArenaJob<'a> {
    pub(super) written: &'a Path,
    pub(super) original: &'a Path,
    /// Whether it must have the bits of that model.
    pub(super) keeps_bits: bool,
    /// Whether nothing in it fixes the order in which the runtime makes copies of what it lays out in blocks of channels.
    pub(super) is_as_it_came: bool,
    pub(super) load: &'a LoadOptions,
    pub(super) shapes: &'a Shapes,
}

/// What is asked for; a run of the model is expected to take `expected`.
pub(super) fn arena_request<'a>(
    args: &'a OptimizeArgs,
    job: ArenaJob<'a>,
    inferred: &'a InferredSizes,
    expected: Duration,
) -> ArenaPlanRequest<'a> {
    ArenaPlanRequest {
        model: job.written,
        original: job.original,
        keeps_bits: job.keeps_bits,
        library: args.target.arena_library.as_deref(),
        level: args.target.level,
        original_level: args.target.level,
        mapped_bytes: 0,
        weights: None,
        dims: &job.load.dims,
        ranges: &job.shapes.ranges,
        frequent: &job.shapes.frequent,
        other_loads: if job.is_as_it_came { OTHER_LOADS } else { 0 },
        inferred,
        limits: memory_limits(expected),
    }
}

/// Plans the memory of the file that was written; or why there is no plan.
pub(super) fn plan_memory(
    (args, model): (&OptimizeArgs, &Model),
    job: ArenaJob<'_>,
    host: &Host,
    expected: Duration,
    control: &SolveControl<'_>,
) -> anyhow::Result<Result<ArenaPlanned, String>> {
    let inferred = inferred(model);
    let request = arena_request(args, job, &inferred, expected);
    // Who states shapes asks for a bound that holds in all of them; else a plan is for less memory.
    let is_for_less = !job.shapes.are_stated() && !args.target.force;
    let found = plan_arena(&request, host, control).and_then(|planned| {
        let wrong = planned.exceeded();
        wrong
            .or_else(|| planned.measured.takes_more().filter(|_| is_for_less))
            .map_or(Ok(planned), Err)
    });
    match found {
        Ok(planned) => Ok(Ok(planned)),
        Err(error) if error.kind() == ErrorKind::Internal => Err(DeployError::from(error).into()),
        Err(error) => {
            tracing::warn!("the memory of the file that is written is not planned: {error}");
            Ok(Err(error.to_string()))
        }
    }
}

/// The sizes of the tensors of the model that is written.
pub(super) fn inferred(model: &Model) -> InferredSizes {
    let formulas = model.graph().and_then(|graph| graph.formulas.as_ref());
    InferredSizes {
        variables: formulas.map(|formulas| formulas.variables.clone()).unwrap_or_default(),
        bytes: model.tensor_formulas().collect(),
    }
}

/// Removes a plan of memory that lies beside a file and was made for another one.
pub(super) fn forget_plan(written: &Path) -> anyhow::Result<()> {
    let path = arena_plan_path(written);
    let is_plan = std::fs::read(&path).is_ok_and(|text| text.starts_with(b"remat-arena "));
    if is_plan { remove(&path) } else { Ok(()) }
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove `{}`", shown(path.display())))
}
