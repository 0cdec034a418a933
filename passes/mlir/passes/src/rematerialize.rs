//! The pass `remat`.

use remat::plan::{Status, Step};
use remat::solver::SolveControl;
use remat::{FissionRequest, Model, SecondMemory, Solution};
use remat_mlir::{ApplyOptions, Function, ImportOptions, Severity};

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
    fn of(function: Function<'_>, baseline_peak: u64, model: &Model, solution: &Solution) -> Self {
        let certificate = solution.certificate.as_ref();
        Self {
            name: function.name(),
            baseline_peak,
            peak: solution.replay.peak,
            baseline_duration: solution.overhead.baseline,
            duration: solution.overhead.duration,
            bound: solution.bound_on_all_plans(solution.problem.order),
            optimal: certificate.is_some_and(|certificate| {
                certificate.status == Status::Optimal && certificate.is_final(solution.problem.order)
            }),
            recomputes: solution.replay.recomputes,
            transfers: solution
                .plan
                .steps
                .iter()
                .filter(|step| matches!(step, Step::PageIn(_)))
                .count(),
            stretches: model.tiling().map_or(0, |tiling| tiling.stretches.len()),
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

/// Share of the time for finding stretches that run tile by tile.
const TILING: f64 = 0.4;

/// The function with those stretches tile by tile that pay.
fn in_tiles<'c>(
    whole: Model,
    fission: &FissionRequest,
    options: &PassOptions,
    control: &SolveControl<'_>,
) -> Result<Model, PassError<'c>> {
    let load = &options.model.load;
    if matches!(load.second_memory, Some(SecondMemory::Used { .. })) {
        return Err(PassError::Schedule(
            "tiles do not move to a second memory: leave out `fission` or `paging`".to_owned(),
        ));
    }
    let tiled = remat::tile(&whole, load, &options.request, fission, &control.share_of_time(TILING))?;
    Ok(tiled.into_iter().next().unwrap_or(whole))
}

/// Finds a schedule for the function within the budget, in tiles where that is asked for and pays, has the checker replay it, and writes it into the
/// function. The peak that it keeps is noted at the function.
///
/// # Errors
/// [`PassError`]; the function is unchanged then, but for mistakes of ours.
pub fn rematerialize<'c>(function: Function<'c>, options: &PassOptions) -> Result<FunctionReport, PassError<'c>> {
    let import = ImportOptions {
        dynamic_extent: options.model.dynamic_extent,
        scheduled: false,
    };
    let imported = function.import(&import)?;
    let whole = Model::from_mlir(imported.graph().clone(), &options.model.load)?;
    let baseline_peak = whole.baseline().peak;
    let mut control = SolveControl::new()
        .time_limit(options.time_limit)
        .threads(options.threads)
        .seed(options.seed);
    control.step_limit = options.step_limit;
    let model = match &options.fission {
        Some(fission) => in_tiles(whole, fission, options, &control)?,
        None => whole,
    };
    let solution = remat::solve_for(&model, &options.request, options.goal, &control)?;
    if let Some(rewritten) = remat::rewrite(&model, &solution)? {
        let apply = ApplyOptions {
            dealloc: options.dealloc,
        };
        imported.apply(&rewritten, &apply)?;
    }
    let report = FunctionReport::of(function, baseline_peak, &model, &solution);
    let budget = solution.problem.budget.unwrap_or(report.peak);
    function.set_integer(BUDGET, i64::try_from(budget).unwrap_or(i64::MAX));
    function.set_integer(PEAK, i64::try_from(report.peak).unwrap_or(i64::MAX));
    if options.remarks {
        function.emit(Severity::Remark, &report.text());
    }
    Ok(report)
}
