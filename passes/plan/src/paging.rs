//! The second memory: what it holds, and what moving a storage there and back costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
const NS_PER_S: u128 = 1_000_000_000;

/// What a plan is to be good at, within budget and deadline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Least duration.
    #[default]
    Time,
    /// Least energy of runs and transfers together.
    Energy,
    /// Lowest peak.
    Peak,
}

impl Objective {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who moves storages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PagingMode {
    /// The processor: it computes nothing meanwhile.
    Sync,
    /// A transfer unit (DMA) beside it: transfers and runs overlap.
    Dma,
}

/// One direction of the bus to the second memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Time of a transfer before its first byte, in nanoseconds.
    #[serde(default)]
    pub latency_ns: u64,
    /// Bandwidth, at least 1.
    pub bytes_per_s: u64,
    /// Energy of a transfer of nothing, in picojoules.
    #[serde(default)]
    pub energy_pj: u64,
    /// Energy of each byte, in picojoules.
    #[serde(default)]
    pub energy_pj_per_byte: u64,
}

impl Transfer {
    /// Time to move so many bytes, in nanoseconds, rounded up; saturates.
    #[must_use]
    pub fn duration(&self, bytes: u64) -> u64 {
        let moving = (u128::from(bytes) * NS_PER_S).div_ceil(u128::from(self.bytes_per_s.max(1)));
        saturate(moving + u128::from(self.latency_ns))
    }

    /// Energy to move so many bytes, in picojoules; saturates.
    #[must_use]
    pub fn energy(&self, bytes: u64) -> u64 {
        saturate(u128::from(bytes) * u128::from(self.energy_pj_per_byte) + u128::from(self.energy_pj))
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A second memory behind one bus. [The crate's documentation](crate#the-second-memory) says what plans may do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// Who moves storages.
    pub mode: PagingMode,
    /// Bytes it holds; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The way out of memory.
    pub page_out: Transfer,
    /// The way back.
    pub page_in: Transfer,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Transfer = Transfer {
        latency_ns: 7,
        bytes_per_s: 3,
        energy_pj: 5,
        energy_pj_per_byte: 2,
    };

    #[test]
    fn transfers_take_latency_and_time_rounded_up() {
        assert_eq!(SLOW.duration(0), 7);
        assert_eq!(SLOW.duration(1), 7 + 333_333_334);
        assert_eq!(SLOW.duration(3), 7 + 1_000_000_000);
        assert_eq!(SLOW.energy(10), 25);
    }

    #[test]
    fn what_does_not_fit_saturates() {
        assert_eq!(SLOW.duration(u64::MAX), u64::MAX);
        assert_eq!(SLOW.energy(u64::MAX), u64::MAX);
    }
}
