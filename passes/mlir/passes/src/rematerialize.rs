//! The pass `remat`.

use remat_mlir::{ApplyOptions, Function, ImportOptions, Severity};

use crate::bodies::{Lives, Placed, Reading};
use crate::planner::Planner;
use crate::report::FunctionReport;
use crate::{PassError, PassOptions, lowered};

/// Attribute of a function: the budget that the schedule was made for, in bytes.
pub(crate) const BUDGET: &str = "remat.budget";

/// Attribute of a function: its peak as it stands, in bytes.
pub(crate) const PEAK: &str = "remat.peak";

/// Finds a schedule for each block of the function and for the regions of `scf` operations in it, so that the function keeps within the budget;
/// in tiles where that is asked for and pays. The checker replays each, and they are written into the function. The peak that it keeps is noted
/// at the function: that of its lowering where the documented passes take it as it stands, else that of the model.
///
/// # Errors
/// [`PassError`]; the function is unchanged then, but for mistakes of ours.
pub fn rematerialize<'c>(function: Function<'c>, options: &PassOptions) -> Result<FunctionReport, PassError<'c>> {
    let (report, budget) = lowered::best(function, options, planned)?;
    let budget = budget.unwrap_or(report.peak);
    function.set_integer(BUDGET, i64::try_from(budget).unwrap_or(i64::MAX));
    function.set_integer(PEAK, i64::try_from(report.peak).unwrap_or(i64::MAX));
    if options.remarks {
        function.emit(Severity::Remark, &report.text());
    }
    Ok(report)
}

/// Plans a function by the model of what its operations take, and writes the plan into it. Returns what became of it, and the budget in bytes.
///
/// # Errors
/// [`PassError`]; the function is unchanged then, but for mistakes of ours.
fn planned<'c>(function: Function<'c>, options: &PassOptions) -> Result<(FunctionReport, Option<u64>), PassError<'c>> {
    let mut blocks = Placed::of(function, &reading(options))?;
    let takes_nothing = blocks.iter().all(|placed| placed.peak(placed.block.replay.peak) == 0);
    if takes_nothing && function.is_bufferized() {
        return Err(PassError::Bufferized);
    }
    let planner = Planner::new(options, &blocks);
    let (planned, budget) = match blocks.pop() {
        Some(only) if blocks.is_empty() => {
            let planned = planner.only(only.block)?;
            let budget = planned.budget;
            (vec![planned], budget)
        }
        last => {
            blocks.extend(last);
            planner.several(blocks)?
        }
    };
    let report = FunctionReport::of(function, &planned);
    let mut apply = ApplyOptions {
        dealloc: options.dealloc,
        ..ApplyOptions::default()
    };
    for block in planned {
        apply.numbered = block.apply(apply)?;
    }
    Ok((report, budget))
}

/// How functions are read.
fn reading(options: &PassOptions) -> Reading {
    Reading {
        import: ImportOptions {
            dynamic_extent: options.model.dynamic_extent,
            scheduled: false,
        },
        load: options.model.load.clone(),
        lives: Lives::LastReader,
    }
}

/// Bytes that a function takes as it stands: lowered, else by the model.
///
/// # Errors
/// [`PassError`] if the function cannot be read.
pub(crate) fn standing_peak<'c>(function: Function<'c>, options: &PassOptions) -> Result<u64, PassError<'c>> {
    if let Some(peak) = function.lowered_peak() {
        return Ok(peak);
    }
    let blocks = Placed::of(function, &reading(options))?;
    let peaks = blocks.iter().map(|placed| placed.peak(placed.block.replay.peak));
    Ok(peaks.max().unwrap_or(0))
}
