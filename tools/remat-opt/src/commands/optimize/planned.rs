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

/// Limits of each process that runs the model for its plan of memory, or to try settings.
pub(super) fn memory_limits(expected: Duration) -> ChildLimits<'static> {
    limits(Some((LEAST + expected.saturating_mul(ARENA_RUNS * PATIENCE)) * 2))
}

/// Plans the memory of the file that was written; or why there is no plan.
pub(super) fn plan_memory(
    (args, model): (&OptimizeArgs, &Model),
    (load, shapes): (&LoadOptions, &Shapes),
    (written, original, keeps_bits): (&Path, &Path, bool),
    host: &Host,
    expected: Duration,
    control: &SolveControl<'_>,
) -> anyhow::Result<Result<ArenaPlanned, String>> {
    let request = ArenaPlanRequest {
        model: written,
        original,
        keeps_bits,
        library: args.target.arena_library.as_deref(),
        level: args.target.level,
        dims: &load.dims,
        ranges: &shapes.ranges,
        frequent: &shapes.frequent,
        inferred: &inferred(model),
        limits: memory_limits(expected),
    };
    let found = plan_arena(&request, host, control).and_then(|planned| planned.exceeded().map_or(Ok(planned), Err));
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
fn inferred(model: &Model) -> InferredSizes {
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
    if is_plan {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", shown(path.display())))?;
    }
    Ok(())
}
