//! The pass `remat`.

use remat_mlir::{ApplyOptions, Function, ImportOptions, Severity};

use crate::bodies::{Lives, Placed, Reading};
use crate::planned::Planned;
use crate::planner::Planner;
use crate::{PassError, PassOptions};

/// Attribute of a function: the budget that the schedule was made for, in bytes.
pub(crate) const BUDGET: &str = "remat.budget";

/// Attribute of a function: its peak as it stands, in bytes.
pub(crate) const PEAK: &str = "remat.peak";

/// What became of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionReport {
    /// Its name.
    pub name: String,
    /// Peak of the function as it was, in bytes.
    pub baseline_peak: u64,
    /// Peak of the schedule, in bytes.
    pub peak: u64,
    /// Estimated time of the function as it was, in nanoseconds.
    pub baseline_duration: u64,
    /// Estimated time of the schedule, in nanoseconds.
    pub duration: u64,
    /// Lower bound on the time of any schedule within the budget; 0 where none is known.
    pub bound: u64,
    /// Whether no schedule within the budget is shorter.
    pub optimal: bool,
    /// How many operations run again.
    pub recomputes: usize,
    /// How many tensors move to the second memory and back, each time counted.
    pub transfers: usize,
    /// How many stretches of operations run tile by tile.
    pub stretches: usize,
}

impl FunctionReport {
    /// The blocks of a function together: each runs once, as far as times are added up.
    fn of(function: Function<'_>, blocks: &[Planned<'_>]) -> Self {
        let most = |figure: fn(&Planned<'_>) -> u64| blocks.iter().map(figure).max().unwrap_or(0);
        let sum = |figure: fn(&Planned<'_>) -> u64| blocks.iter().map(figure).fold(0, u64::saturating_add);
        let count = |figure: fn(&Planned<'_>) -> usize| blocks.iter().map(figure).sum();
        Self {
            name: function.name(),
            baseline_peak: most(|block| block.baseline_peak),
            peak: most(|block| block.peak),
            baseline_duration: sum(|block| block.baseline_duration),
            duration: sum(|block| block.duration),
            bound: sum(|block| block.bound),
            optimal: blocks.iter().all(|block| block.optimal),
            recomputes: count(|block| block.recomputes),
            transfers: count(|block| block.transfers),
            stretches: count(|block| block.stretches),
        }
    }

    /// Time that recomputing adds, in nanoseconds.
    #[must_use]
    pub fn added_time(&self) -> u64 {
        self.duration.saturating_sub(self.baseline_duration)
    }

    /// Time that any schedule within the budget adds, in nanoseconds, as far as is proved.
    #[must_use]
    pub fn bound_on_added_time(&self) -> u64 {
        self.bound.saturating_sub(self.baseline_duration)
    }

    /// The remark.
    #[must_use]
    pub fn text(&self) -> String {
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let quality = if self.optimal {
            "no schedule within the budget adds less".to_owned()
        } else {
            format!(
                "any within the budget adds at least {:.2} %",
                percent(self.bound_on_added_time(), self.baseline_duration)
            )
        };
        let transfers = match self.transfers {
            0 => String::new(),
            1 => ", 1 tensor brought back from the second memory".to_owned(),
            count => format!(", {count} tensors brought back from the second memory"),
        };
        let stretches = match self.stretches {
            0 => String::new(),
            1 => ", 1 stretch in tiles".to_owned(),
            count => format!(", {count} stretches in tiles"),
        };
        format!(
            "remat: peak {} -> {} bytes ({:.1} %), {} operation{} run again{transfers}{stretches}, estimated time +{:.2} %; {quality}",
            self.baseline_peak,
            self.peak,
            percent(self.peak, self.baseline_peak),
            self.recomputes,
            if self.recomputes == 1 { "" } else { "s" },
            percent(self.added_time(), self.baseline_duration),
        )
    }
}

/// Finds a schedule for each block of the function and for the regions of `scf` operations in it, so that the function keeps within the budget;
/// in tiles where that is asked for and pays. The checker replays each, and they are written into the function. The peak that it keeps is noted
/// at the function.
///
/// # Errors
/// [`PassError`]; the function is unchanged then, but for mistakes of ours.
pub fn rematerialize<'c>(function: Function<'c>, options: &PassOptions) -> Result<FunctionReport, PassError<'c>> {
    let reading = Reading {
        import: ImportOptions {
            dynamic_extent: options.model.dynamic_extent,
            scheduled: false,
        },
        load: options.model.load.clone(),
        lives: Lives::LastReader,
    };
    let mut blocks = Placed::of(function, &reading)?;
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
    let budget = budget.unwrap_or(report.peak);
    function.set_integer(BUDGET, i64::try_from(budget).unwrap_or(i64::MAX));
    function.set_integer(PEAK, i64::try_from(report.peak).unwrap_or(i64::MAX));
    if options.remarks {
        function.emit(Severity::Remark, &report.text());
    }
    Ok(report)
}
