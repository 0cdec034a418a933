//! Devices: what they reach at best, and the share of it that each class of kernels gets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use remat_ir::ElementType;
use remat_plan::Paging;
use serde::{Deserialize, Serialize};

use crate::KernelClass;

#[path = "device_table.rs"]
mod table;

pub use table::DeviceTableError;
use table::{KnownDevices, from_figures, to_figures};

/// The device table: figures of vendors and fitted efficiencies, each with its source.
const TABLE: &str = include_str!("devices.toml");

const NS_PER_SECOND: u128 = 1_000_000_000;
const PERMILLE: u128 = 1_000;

static DEVICES: LazyLock<Vec<Device>> =
    LazyLock::new(|| table::parse(TABLE, &KnownDevices::default()).expect("the device table is part of the program"));

/// Peak arithmetic rates in operations per second, a multiply-add counted as two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// 64-bit elements.
    pub bits64: u64,
    /// 32-bit elements.
    pub bits32: u64,
    /// 16-bit elements.
    pub bits16: u64,
    /// Elements of 8 bits and less.
    pub bits8: u64,
}

impl Peak {
    /// The rate for arithmetic on elements of this type.
    #[must_use]
    pub fn of(&self, element: ElementType) -> u64 {
        match element.bits() {
            0..=8 => self.bits8,
            9..=16 => self.bits16,
            17..=32 => self.bits32,
            _ => self.bits64,
        }
    }
}

/// The share of its device's peaks that a class of kernels reaches, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Efficiency {
    /// Share of the arithmetic peak.
    pub compute_permille: u64,
    /// Share of the memory bandwidth.
    pub memory_permille: u64,
    /// Time to start an inner loop, in picoseconds; counts for CPU kernels.
    #[serde(default)]
    pub run_ps: u64,
}

/// What arithmetic and memory accesses take, in femtojoules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Each operation.
    pub fj_per_operation: u64,
    /// Each byte that is read or written.
    #[serde(default)]
    pub fj_per_byte: u64,
}

/// A device that ops run on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    /// Peak arithmetic rates.
    pub peak: Peak,
    /// Peak memory bandwidth in bytes per second.
    pub memory_bytes_per_s: u64,
    /// Width of a vector register in bytes: rows of matrix products are padded to it.
    pub vector_bytes: u64,
    /// Time to start a kernel, in nanoseconds.
    pub launch_ns: u64,
    /// Time of a view, in nanoseconds.
    pub view_ns: u64,
    /// Allocations are rounded up to a multiple of this many bytes.
    pub alignment: u64,
    /// Bytes of its memory; absent where there is as much as one installs.
    pub memory_bytes: Option<u64>,
    /// Bytes of the read-only memory that weights lie in; absent where they lie in memory.
    pub flash_bytes: Option<u64>,
    /// What runs take; absent where it is not known.
    pub energy: Option<Energy>,
    /// Where storages may be moved to, if anywhere.
    pub second_memory: Option<Paging>,
    /// Whether kernels are like ONNX Runtime's CPU kernels: they unfold and pack operands in loops of their own, and take
    /// workspace for it. Otherwise neither is counted.
    pub cpu_kernels: bool,
    /// Name of the family whose efficiencies it has.
    pub family: String,
    /// Efficiencies of the classes that have their own; half of the peaks for all others.
    pub efficiencies: BTreeMap<KernelClass, Efficiency>,
}

impl Device {
    /// Name of the default preset.
    pub const DEFAULT: &'static str = "cpu";

    /// The preset of this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        DEVICES.iter().find(|device| device.name == name).cloned()
    }

    /// All presets, in the order of the table.
    #[must_use]
    pub fn presets() -> &'static [Self] {
        &DEVICES
    }

    /// The devices of a user's table, in the form of the built-in one (`passes/cost/src/devices.toml`); it may use the families of
    /// efficiencies of that.
    ///
    /// # Errors
    /// [`DeviceTableError`], naming line and key.
    pub fn from_table(text: &str) -> Result<Vec<Self>, DeviceTableError> {
        let family = |device: &Self| (device.family.clone(), device.efficiencies.clone());
        let known = KnownDevices {
            names: DEVICES.iter().map(|device| device.name.as_str()).collect(),
            families: DEVICES.iter().map(family).collect(),
        };
        table::parse(text, &known)
    }

    /// Its figures as JSON: the keys of a device table, and its efficiencies.
    #[must_use]
    pub fn figures(&self) -> serde_json::Value {
        to_figures(self)
    }

    /// The device of such figures.
    ///
    /// # Errors
    /// [`DeviceTableError`], naming the key.
    pub fn from_figures(figures: &serde_json::Value) -> Result<Self, DeviceTableError> {
        from_figures(figures)
    }

    /// Energy of a run in picojoules, rounded to the nearest; 0 where the device states none. Saturates.
    #[must_use]
    pub fn energy_pj(&self, operations: u64, bytes: u64) -> u64 {
        const FJ_PER_PJ: u128 = 1_000;
        let energy = self.energy.unwrap_or(Energy {
            fj_per_operation: 0,
            fj_per_byte: 0,
        });
        let arithmetic = u128::from(operations) * u128::from(energy.fj_per_operation);
        let memory = u128::from(bytes) * u128::from(energy.fj_per_byte);
        u64::try_from((arithmetic.saturating_add(memory) + FJ_PER_PJ / 2) / FJ_PER_PJ).unwrap_or(u64::MAX)
    }

    /// Time of that many operations on elements of a type alone, at the share of the peak that kernels of `class` reach: nanoseconds, rounded
    /// up. Saturates.
    #[must_use]
    pub fn arithmetic_ns(&self, operations: u64, element: ElementType, class: KernelClass) -> u64 {
        let time = rate_time(
            operations.into(),
            self.peak.of(element),
            self.efficiency(class).compute_permille,
        );
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// The share of the peaks that kernels of `class` reach.
    #[must_use]
    pub fn efficiency(&self, class: KernelClass) -> Efficiency {
        let general = Efficiency {
            compute_permille: 500,
            memory_permille: 500,
            run_ps: 0,
        };
        self.efficiencies.get(&class).copied().unwrap_or(general)
    }
}

impl Default for Device {
    /// One core of a server CPU.
    fn default() -> Self {
        Self::preset(Self::DEFAULT).expect("the device table has the default preset")
    }
}

/// Time for `amount` at a share of `per_second` in nanoseconds, rounded up.
pub(crate) fn rate_time(amount: u128, per_second: u64, permille: u64) -> u128 {
    let rate = u128::from(per_second).saturating_mul(u128::from(permille)).max(1);
    amount.saturating_mul(NS_PER_SECOND * PERMILLE).div_ceil(rate)
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
