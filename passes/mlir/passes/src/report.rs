//! What became of a function, in figures and as a remark.

use remat_mlir::Function;

use crate::planned::Planned;

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
    /// How many fused chains of operations run tile by tile.
    pub fused_chains: usize,
}

impl FunctionReport {
    /// The blocks of a function together: each runs once, as far as times are added up.
    pub(crate) fn of(function: Function<'_>, blocks: &[Planned<'_>]) -> Self {
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
            fused_chains: count(|block| block.fused_chains),
        }
    }

    /// A function that stays as it was, of this peak before; its empty tensors may have become allocations since.
    pub(crate) fn unchanged(name: String, baseline_peak: u64, peak: u64) -> Self {
        Self {
            name,
            baseline_peak,
            peak,
            baseline_duration: 0,
            duration: 0,
            bound: 0,
            optimal: true,
            recomputes: 0,
            transfers: 0,
            fused_chains: 0,
        }
    }

    /// Takes back what is claimed about other plans, where this one adds time.
    pub(crate) fn claim_nothing(&mut self) {
        if self.duration > self.baseline_duration {
            self.bound = 0;
            self.optimal = false;
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
        let fused_chains = match self.fused_chains {
            0 => String::new(),
            1 => ", 1 fused chain in tiles".to_owned(),
            count => format!(", {count} fused chains in tiles"),
        };
        format!(
            "remat: peak {} -> {} bytes ({:.1} %), {} operation{} run again{transfers}{fused_chains}, estimated time +{:.2} %; {quality}",
            self.baseline_peak,
            self.peak,
            percent(self.peak, self.baseline_peak),
            self.recomputes,
            if self.recomputes == 1 { "" } else { "s" },
            percent(self.added_time(), self.baseline_duration),
        )
    }
}
