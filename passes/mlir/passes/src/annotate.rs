//! The pass `remat-annotate`.

use remat::plan::Step;
use remat_mlir::{Function, ImportOptions};

use crate::bodies::{Block, Lives, Placed, Reading};
use crate::rematerialize::PEAK;
use crate::{ModelOptions, PassError};

/// Writes what is known about each operation as attributes: `remat.bytes`, the memory of its results; `remat.cost`, its estimated time
/// in nanoseconds; `remat.live`, the memory in use while it runs, in the order of the function, what other blocks hold and what is held around
/// its region included. The function gets `remat.peak`.
///
/// # Errors
/// [`PassError`] if the function cannot be read.
pub fn annotate<'c>(function: Function<'c>, options: &ModelOptions) -> Result<(), PassError<'c>> {
    let reading = Reading {
        import: ImportOptions {
            dynamic_extent: options.dynamic_extent,
            scheduled: true,
        },
        load: options.load.clone(),
        lives: Lives::LastReader,
    };
    let mut peak = 0;
    for placed in Placed::of(function, &reading)? {
        annotate_block(&placed.block, placed.outside);
        peak = peak.max(placed.peak(placed.block.replay.peak));
    }
    function.set_integer(PEAK, integer(peak));
    Ok(())
}

fn annotate_block(block: &Block<'_>, outside: u64) {
    let problem = block.model.problem();
    for (step, trace) in block.plan.steps.iter().zip(&block.replay.trace) {
        let Step::Compute(op) = *step else { continue };
        let entry = &problem.ops[op];
        let created = entry.defines.iter().filter_map(|&tensor| {
            let storage = &problem.storages[problem.tensors[tensor].storage];
            (storage.root == tensor).then_some(storage.bytes)
        });
        block.imported.set_integer(op, "remat.bytes", integer(created.sum()));
        block.imported.set_integer(op, "remat.cost", integer(entry.duration));
        let live = outside.saturating_add(trace.during);
        block.imported.set_integer(op, "remat.live", integer(live));
    }
    for nested in &block.regions {
        let workspace = nested.workspace(nested.peak(|block| block.replay.peak));
        let around = nested.outside(problem, &block.plan, &block.replay, workspace);
        for inside in &nested.blocks {
            annotate_block(inside, outside.saturating_add(around));
        }
    }
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
