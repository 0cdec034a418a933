//! A written file beside the model it came from, both measured in the runtime.

use std::path::Path;

use remat_ort::{
    Host, MeasureOptions, Measurement, OptimizationLevel, RuntimeError, SessionSettings, compare_time, measure,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::promise::Promise;

/// Share of the promised peak, in thousandths, and bytes that a measured peak may lie above it: what the model of the runtime
/// leaves out.
const TOLERANCE_PERMILLE: u64 = 30;
const TOLERANCE_BYTES: u64 = 500_000;

/// Seeds of the inputs on which bits are compared.
const SEEDS: [u64; 2] = [0, 1];

/// How often the two models run in turns for the comparison of their times.
const PAIRS: u32 = 5;

/// Peaks of a model, in bytes above what is live before a run; absent where they cannot be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// Memory arena and memory pattern off.
    pub exact: Option<u64>,
    /// Arena and pattern on, as they are where nothing is set: the first run.
    pub stock: Option<u64>,
    /// The same: later runs.
    pub stock_steady: Option<u64>,
}

/// Two models, measured under every optimization and the default order.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// The model as it came.
    pub before: Measured,
    /// What was written.
    pub after: Measured,
    /// Time of the written model over that of the model as it came, where nothing is set: median of runs in turns.
    pub time_ratio: f64,
    /// The same with arena and pattern off, where every buffer is fresh memory.
    pub exact_time_ratio: f64,
    /// Median time of the model as it came where nothing is set, in nanoseconds.
    pub before_ns: u64,
    /// Why peaks are missing, where they are.
    pub unmeasured: Option<String>,
}

/// The largest measured peak that keeps a promise.
#[must_use]
pub(crate) fn tolerated(promised: u64) -> u64 {
    let share = u128::from(promised) * u128::from(TOLERANCE_PERMILLE) / 1_000;
    promised
        .saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        .saturating_add(TOLERANCE_BYTES)
}

impl Check {
    /// Takes the peaks out of what was written, which were not measured as it is meant to run.
    pub(crate) fn forget_peaks(&mut self, why: &str) {
        self.after = Measured {
            exact: None,
            stock: None,
            stock_steady: None,
        };
        self.unmeasured = Some(why.to_owned());
    }

    /// How far the measured peak lies above the simulated one, where that is more than the model of the runtime leaves out and more than is
    /// `known`.
    pub(crate) fn lesson(&self, simulated: &Promise, known: u64) -> Option<u64> {
        let measured = self.after.exact?;
        let beyond = measured.saturating_sub(simulated.peak_bytes);
        (measured > tolerated(simulated.peak_bytes + known)).then_some(beyond)
    }
}

/// The model as it came, measured once for all variants.
pub(crate) struct Baseline {
    exact: Measurement,
    stock: Measurement,
}

/// Why a file is not good.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It does not load or run.
    Runtime(RuntimeError),
    /// An output has other bits.
    Bits { output: String, seed: u64 },
    /// It takes more memory.
    Higher { before: u64, after: u64 },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Runtime(error) => error.fmt(f),
            Self::Bits { output, seed } => write!(f, "output `{output}` has other bits on inputs of seed {seed}"),
            Self::Higher { before, after } => write!(f, "it takes {after} bytes, the model as it came {before}"),
        }
    }
}

fn settings(dims: &std::collections::BTreeMap<String, u64>) -> [SessionSettings; 2] {
    [SessionSettings::exact(OptimizationLevel::All), SessionSettings::stock()].map(|settings| SessionSettings {
        dims: dims.clone(),
        ..settings
    })
}

/// Measures a model under both settings.
fn both(host: &Host, model: &Path, dims: &std::collections::BTreeMap<String, u64>) -> Result<Baseline, RuntimeError> {
    let options = MeasureOptions {
        runs: 1,
        seeds: SEEDS.to_vec(),
    };
    let [exact, stock] = settings(dims).map(|settings| measure(&host.child, &host.library, model, &settings, &options));
    Ok(Baseline {
        exact: exact?,
        stock: stock?,
    })
}

impl Baseline {
    /// Measures the model as it came.
    ///
    /// # Errors
    /// [`RuntimeError`] if it does not run here.
    pub(crate) fn new(
        host: &Host,
        model: &Path,
        dims: &std::collections::BTreeMap<String, u64>,
    ) -> Result<Self, RuntimeError> {
        both(host, model, dims)
    }

    /// Measures what was written, against the model as it came, which lies at `model`. `must_be_lower`: more memory is a fault.
    pub(crate) fn check(
        &self,
        host: &Host,
        model: &Path,
        written: &Path,
        dims: &std::collections::BTreeMap<String, u64>,
        must_be_lower: bool,
    ) -> Result<Check, Fault> {
        let after = both(host, written, dims).map_err(Fault::Runtime)?;
        for (before, after) in [(&self.exact, &after.exact), (&self.stock, &after.stock)] {
            if let Some((seed, output)) = before.first_difference(after) {
                return Err(Fault::Bits {
                    output: output.to_owned(),
                    seed,
                });
            }
        }
        if let Some((before, after)) = self.measured().exact.zip(after.measured().exact)
            && must_be_lower
            && after > tolerated(before)
        {
            return Err(Fault::Higher { before, after });
        }
        let [exact, stock] = settings(dims)
            .map(|settings| compare_time(&host.child, &host.library, (model, written), &settings, PAIRS, SEEDS[0]));
        let (exact, stock) = (exact.map_err(Fault::Runtime)?, stock.map_err(Fault::Runtime)?);
        Ok(Check {
            before: self.measured(),
            after: after.measured(),
            time_ratio: stock.ratio,
            exact_time_ratio: exact.ratio,
            before_ns: stock.base_median_ns,
            unmeasured: after.exact.peaks.err(),
        })
    }

    fn measured(&self) -> Measured {
        let stock = self.stock.peaks.as_ref().ok();
        Measured {
            exact: self.exact.peaks.as_ref().ok().map(|peaks| peaks.first),
            stock: stock.map(|peaks| peaks.first),
            stock_steady: stock.map(|peaks| peaks.steady),
        }
    }
}
