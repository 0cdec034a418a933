//! The pass `remat-verify`.

use remat::LoadOptions;
use remat::plan::{OrderMode, Step};
use remat_mlir::{Function, ImportOptions};

use crate::bodies::{Lives, Placed, Reading};
use crate::rematerialize::BUDGET;
use crate::{PassError, VerifyOptions, blocks};

/// Replays the schedule that stands in the function: every operation in its order, a tensor released at its `remat.dealloc` or, where there
/// is none, after its last reader, and away from its `remat.page_out` to its `remat.page_in`. Returns the peak: of several blocks the highest, with
/// what is live across each.
///
/// A function whose buffers were put into a block has no tensors any more. There the views of the block are judged, and what is returned is
/// the size of the block.
///
/// # Errors
/// [`PassError::Schedule`] if something is read after it was released, or the peak exceeds the budget; [`PassError::Block`] if views of a
/// block break a rule.
pub fn verify<'c>(function: Function<'c>, options: &VerifyOptions) -> Result<u64, PassError<'c>> {
    let noted = || function.integer(BUDGET).and_then(|budget| u64::try_from(budget).ok());
    let budget = options.budget.or_else(noted);
    if let Some(bytes) = blocks::verify(function)? {
        return match budget {
            Some(budget) if bytes > budget => Err(PassError::Schedule(format!(
                "the block has {bytes} bytes, the budget is {budget} bytes"
            ))),
            _ => Ok(bytes),
        };
    }
    let reading = Reading {
        import: ImportOptions {
            dynamic_extent: options.dynamic_extent,
            scheduled: true,
        },
        load: LoadOptions {
            order: Some(OrderMode::Fixed),
            ..LoadOptions::default()
        },
        lives: Lives::Markers,
    };
    let blocks = Placed::of(function, &reading)?;
    if let Some(peak) = function.lowered_peak() {
        return match budget.filter(|&budget| peak > budget) {
            Some(budget) => Err(PassError::Schedule(format!(
                "lowered, the function takes {peak} bytes, the budget is {budget} bytes"
            ))),
            None => Ok(peak),
        };
    }
    let mut highest = 0;
    for placed in &blocks {
        let peak = placed.peak(placed.block.replay.peak);
        if let Some(budget) = budget.filter(|&budget| peak > budget) {
            return Err(PassError::Schedule(format!(
                "the schedule needs {peak} bytes{}, the budget is {budget} bytes",
                place(placed, blocks.len() > 1)
            )));
        }
        highest = highest.max(peak);
    }
    Ok(highest)
}

/// Where the peak of a block is.
fn place(placed: &Placed<'_>, named: bool) -> String {
    let block = &placed.block;
    let of_several = if named {
        format!(" in `{}`", block.imported.body().name())
    } else {
        String::new()
    };
    if placed.end > block.replay.peak {
        return format!(" at the end of `{}`", block.imported.body().name());
    }
    match block.plan.steps.get(block.replay.peak_step) {
        Some(&Step::Compute(op)) => format!(" at `{}`{of_several}", block.model.problem().ops[op].name),
        _ => of_several,
    }
}
