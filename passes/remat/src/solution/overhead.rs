//! Time beyond that of the baseline.

/// Time a plan takes beyond computing every op once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overhead {
    /// Duration of the plan.
    pub duration: u64,
    /// Duration of the baseline.
    pub baseline: u64,
}

impl Overhead {
    /// `duration / baseline - 1`, in per cent; 0 where both are 0.
    #[must_use]
    pub fn percent(self) -> f64 {
        if self.baseline == 0 {
            0.0
        } else {
            100.0 * (self.duration as f64 / self.baseline as f64 - 1.0)
        }
    }
}

/// The baseline duration plus `max_overhead` millionths of it.
pub(crate) fn longest(baseline: u64, max_overhead: u64) -> u64 {
    let extra = u128::from(baseline) * u128::from(max_overhead) / 1_000_000;
    baseline.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX))
}
