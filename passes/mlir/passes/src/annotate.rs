//! The pass `remat-annotate`.

use remat::Model;
use remat::plan::Step;
use remat_mlir::{Function, ImportOptions};

use crate::rematerialize::PEAK;
use crate::{ModelOptions, PassError};

/// Writes what is known about each operation as attributes: `remat.bytes`, the memory of its results; `remat.cost`, its estimated time
/// in nanoseconds; `remat.live`, the memory in use while it runs, in the order of the function. The function gets `remat.peak`.
///
/// # Errors
/// [`PassError`] if the function cannot be read.
pub fn annotate<'c>(function: Function<'c>, options: &ModelOptions) -> Result<(), PassError<'c>> {
    let import = ImportOptions {
        dynamic_extent: options.dynamic_extent,
        scheduled: true,
    };
    let mut imported = function.import(&import)?;
    imported.drop_memory_ops();
    let model = Model::from_mlir(imported.graph().clone(), &options.load)?;
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    for (step, trace) in model.baseline_plan().steps.iter().zip(&model.baseline().trace) {
        let Step::Compute(op) = *step else { continue };
        let entry = &model.problem().ops[op];
        let created = entry.defines.iter().filter_map(|&tensor| {
            let storage = &model.problem().storages[model.problem().tensors[tensor].storage];
            (storage.root == tensor).then_some(storage.bytes)
        });
        imported.set_integer(op, "remat.bytes", integer(created.sum()));
        imported.set_integer(op, "remat.cost", integer(entry.duration));
        imported.set_integer(op, "remat.live", integer(trace.during));
    }
    function.set_integer(PEAK, integer(model.baseline().peak));
    Ok(())
}
