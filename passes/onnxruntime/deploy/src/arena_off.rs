//! What turning the memory arena off changes for a file, and whether to recommend it.
//!
//! The heap holds less then. But what the C library gave back to the system it takes anew, with a fault for each page, and what it did not give
//! back lies in gaps. So the setting is recommended only where the process was seen not to grow by more, and where the added time stays
//! within the limit, that is: beside the model as it came, where nothing is set.

use crate::Deployment;

/// Nanoseconds for each MiB that the system hands out for the first time, where that was not measured: 1 us for a page of 4 KiB.
const FRESH_NS_PER_MIB: u64 = 256_000;

/// Share of a growth, as a divisor, and bytes by which another one is no larger.
const GROWTH_SHARE: u64 = 50;
const GROWTH_BYTES: u64 = 1 << 20;

/// The largest growth of a process that counts as no larger than another one: what measurements of one thing differ by.
pub(crate) fn no_larger_growth(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / GROWTH_SHARE + GROWTH_BYTES)
}

/// A file with memory arena and memory pattern off, beside the same file where nothing is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArenaOff {
    /// How much lower the heap peak of the first run is, in bytes.
    pub saved_bytes: u64,
    /// Time beyond the model as it came where nothing is set, in per cent.
    pub overhead_percent: f64,
    /// Whether that was measured; else it is predicted.
    pub is_measured: bool,
    /// The most that it may be, in per cent, where there is a limit.
    pub most_percent: Option<f64>,
    /// By how many bytes the process grows with the file where nothing is set, and with the arena off, where that was measured.
    pub growth: Option<(u64, u64)>,
}

impl ArenaOff {
    /// Whether the process grows by more than where nothing is set; `None` where that is not known.
    #[must_use]
    pub fn grows(&self) -> Option<bool> {
        let (stock, off) = self.growth?;
        Some(off > no_larger_growth(stock))
    }

    /// Whether the added time is beyond the limit.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.most_percent.is_some_and(|most| self.overhead_percent > most)
    }

    /// Whether the setting is to be recommended.
    #[must_use]
    pub fn is_recommended(&self) -> bool {
        self.grows() == Some(false) && !self.is_slow()
    }
}

impl Deployment {
    /// Predicted time beyond the model as it came where nothing is set, in per cent, of the file with arena and pattern off: that of its
    /// plan, and the faults of pages that each run then takes anew.
    #[must_use]
    pub fn arena_off_overhead_percent(&self) -> f64 {
        let measured = self.check.as_ref();
        let price = measured.map_or(FRESH_NS_PER_MIB, |check| check.fresh_ns_per_mib);
        let run = measured.map_or(self.model.baseline().duration, |check| check.before_ns);
        self.solution.overhead.percent() + faults_percent(self.prediction.fresh_bytes, price, run)
    }

    /// What turning the arena off changes; `None` where it was not measured that the heap holds less then.
    #[must_use]
    pub fn arena_off(&self) -> Option<ArenaOff> {
        let check = self.check.as_ref()?;
        let (exact, stock) = check.after.exact.zip(check.after.stock)?;
        let measured = check.arena_off_ratio().map(|ratio| 100.0 * (ratio - 1.0));
        let [off, on] = check.after.growth();
        (stock > exact).then(|| ArenaOff {
            saved_bytes: stock - exact,
            overhead_percent: measured.unwrap_or_else(|| self.arena_off_overhead_percent()),
            is_measured: measured.is_some(),
            most_percent: self.most_overhead.map(|millionths| millionths as f64 / 10_000.0),
            growth: on.zip(off),
        })
    }
}

/// Time for the faults of so many bytes, in per cent of a run of so many nanoseconds.
fn faults_percent(fresh_bytes: u64, ns_per_mib: u64, run_ns: u64) -> f64 {
    let nanoseconds = (u128::from(fresh_bytes) * u128::from(ns_per_mib)) >> 20;
    100.0 * nanoseconds as f64 / run_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const GOOD: ArenaOff = ArenaOff {
        saved_bytes: 25 * MIB,
        overhead_percent: 4.0,
        is_measured: true,
        most_percent: Some(5.0),
        growth: Some((60 * MIB, 41 * MIB)),
    };

    #[test]
    fn a_setting_in_which_the_process_grows_is_not_recommended() {
        assert!(GOOD.is_recommended());
        let larger = ArenaOff {
            growth: Some((60 * MIB, 156 * MIB)),
            ..GOOD
        };
        assert_eq!((larger.grows(), larger.is_recommended()), (Some(true), false));
        let unknown = ArenaOff { growth: None, ..GOOD };
        assert!(!unknown.is_recommended());
        let alike = ArenaOff {
            growth: Some((60 * MIB, 62 * MIB)),
            ..GOOD
        };
        assert!(alike.is_recommended());
    }

    #[test]
    fn a_setting_that_costs_more_time_than_allowed_is_not_recommended() {
        let slow = ArenaOff {
            overhead_percent: 5.1,
            ..GOOD
        };
        assert!(slow.is_slow() && !slow.is_recommended());
        let unlimited = ArenaOff {
            most_percent: None,
            ..slow
        };
        assert!(unlimited.is_recommended());
    }

    #[test]
    fn faults_cost_what_the_system_takes_for_fresh_memory() {
        // 100 MiB at 0.25 us per KiB are 25.6 ms.
        let percent = faults_percent(100 * MIB, FRESH_NS_PER_MIB, 100_000_000);
        assert!((percent - 25.6).abs() < 1e-9, "{percent}");
        assert!(faults_percent(0, FRESH_NS_PER_MIB, 1).abs() < 1e-9);
    }
}
