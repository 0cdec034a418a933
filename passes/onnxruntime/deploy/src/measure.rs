//! A written file beside the model it came from, both measured in the runtime.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use remat::{BaselineOf, BaselinePeak};
use remat_onnxruntime_run::{
    ChildLimits, Host, MeasureOptions, Measurement, OptimizationLevel, PairOptions, Runner, RuntimeError,
    SIZES_AS_RUNS, SessionSettings, SizesCompared, TimeComparison, compare_sizes, compare_time, measure,
};
use remat_solve::Activity;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Prediction;
use crate::clock::{Clock, LeftOut};
use crate::error::Rejection;
use crate::peaks::{Basis, HigherPeak, Measured, Peak, no_higher};

/// Share of the predicted peak, in thousandths, and bytes that a measured peak may lie above it: what the model of the runtime
/// leaves out.
const TOLERANCE_PERMILLE: u64 = 30;
const TOLERANCE_BYTES: u64 = 500_000;

/// Share of a predicted peak, as a divisor, by which that of a file in a branch may be higher.
const BRANCH_SHARE: u64 = 50;

/// Seeds of the inputs on which bits are compared.
const SEEDS: [u64; 2] = [0, 1];

/// Threads with which bits are compared again where kernels may divide sums otherwise: those of small machines, and an odd share.
const MANY_THREADS: [usize; 2] = [4, 14];

/// How often the two models run in turns at most, for the comparison of their times.
const PAIRS: u32 = 5;

/// How many processes measure, if there is time: each model with the arena off and on, and both in turns, twice.
pub(crate) const MEASUREMENTS: u32 = 6;

/// Share of the limit, as a divisor, for all runs after the first of one process.
const FURTHER_RUNS: u32 = 20;

/// The same with the arena, of the time left.
const FURTHER_RUNS_WITH_ARENA: u32 = 4;

/// What a process has beyond the limit before anything is known of the model: a multiple of what is expected, and this.
const GRACE: Duration = Duration::from_secs(10);
const PATIENCE: u32 = 5;

/// How the outputs of two models compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outputs {
    /// Bit by bit the same.
    Identical,
    /// Not compared, because sums may be rounded in another order.
    MayRoundOtherwise,
}

/// Two models, measured under every optimization and the default order.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// The model as it came.
    pub before: Measured,
    /// What was written.
    pub after: Measured,
    /// Time of the written model over that of the model as it came, where nothing is set: median of runs in turns. Absent where there was
    /// no time for them.
    pub time_ratio: Option<f64>,
    /// The same with arena and pattern off, where every buffer is fresh memory.
    pub exact_time_ratio: Option<f64>,
    /// Median time of the model as it came, in nanoseconds: in turns where nothing is set, or else with arena and pattern off.
    pub before_ns: u64,
    /// The same with arena and pattern off, in turns. Absent where there was no time for them.
    pub exact_before_ns: Option<u64>,
    /// Nanoseconds for each MiB that the system hands out for the first time: mapping, faults and giving it back.
    pub fresh_ns_per_mib: u64,
    /// On how many inputs bits were compared.
    pub seeds: usize,
    /// How the outputs compare.
    pub outputs: Outputs,
    /// What came of runs at other sizes of the dimensions that the file leaves free; absent where there are none.
    pub sizes: Option<SizesCompared>,
    /// Why peaks are missing, where they are.
    pub unmeasured: Option<String>,
}

/// The largest measured peak that does not exceed a prediction.
#[must_use]
pub(crate) fn tolerated(predicted: u64) -> u64 {
    close(predicted).saturating_add(TOLERANCE_BYTES)
}

/// The prediction and a share of it that may be off: up to here nothing is said of the difference.
fn close(predicted: u64) -> u64 {
    let share = u128::from(predicted) * u128::from(TOLERANCE_PERMILLE) / 1_000;
    predicted.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
}

impl Prediction {
    /// Puts right what measuring showed to be too low. Bytes that the model of the runtime leaves out may be much of a small model: they are
    /// tolerated, and predicted once they are known.
    pub(crate) fn calibrate(&mut self, measured: &Measured) {
        let simulated = self.peak_bytes;
        let calibrated = |predicted: u64, measured: Option<u64>| {
            measured
                .filter(|&measured| measured > close(predicted))
                .unwrap_or(predicted)
        };
        self.peak_bytes = calibrated(self.peak_bytes, measured.exact);
        self.arena_bytes = calibrated(self.arena_bytes, measured.stock);
        self.arena_steady_bytes = calibrated(self.arena_steady_bytes, measured.stock_steady);
        self.calibration_bytes = self.peak_bytes - simulated;
    }

    /// Predicts what was measured, for a file in which the runtime fuses nodes when it loads it: of that the simulation knows nothing.
    pub(crate) fn replace(&mut self, measured: &Measured) {
        self.peak_bytes = measured.exact.unwrap_or(self.peak_bytes);
        self.arena_bytes = measured.stock.unwrap_or(self.arena_bytes);
        self.arena_steady_bytes = measured.stock_steady.unwrap_or(self.arena_steady_bytes);
    }
}

impl Check {
    /// Takes the peaks out of what was written, which were not measured as it is meant to run.
    pub(crate) fn forget_peaks(&mut self, why: &str) {
        self.after = Measured::default();
        self.unmeasured = Some(why.to_owned());
    }

    /// Time of the written model with arena and pattern off over that of the model as it came where nothing is set.
    #[must_use]
    pub fn arena_off_ratio(&self) -> Option<f64> {
        self.time_ratio?;
        let before = self.exact_before_ns? as f64 / self.before_ns.max(1) as f64;
        Some(self.exact_time_ratio? * before)
    }

    /// Whether the measured time exceeds that of the model as it came by at most so many millionths, where nothing is set.
    pub(crate) fn is_within(&self, most_overhead: u64) -> bool {
        self.time_ratio
            .is_some_and(|ratio| (ratio - 1.0) * 1e6 <= most_overhead as f64)
    }

    /// How far the measured peak lies above the predicted one, where that is more than the model of the runtime leaves out and more than
    /// the calibration `margin`.
    pub(crate) fn beyond(&self, predicted: &Prediction, margin: u64) -> Option<u64> {
        let measured = self.after.exact?;
        let beyond = measured.saturating_sub(predicted.peak_bytes);
        (measured > tolerated(predicted.peak_bytes + margin)).then_some(beyond)
    }

    /// The same where the measured peak exceeds a budget that the predicted one keeps.
    pub(crate) fn beyond_budget(&self, predicted: &Prediction, budget: u64) -> Option<u64> {
        let measured = self.after.exact?;
        (measured > budget && predicted.peak_bytes <= budget).then(|| measured - predicted.peak_bytes)
    }

    /// Whether a branch costs memory with the arena off: the peak is above the one that is predicted of the file outside of it, or above a budget.
    pub(crate) fn costs_in_branch(&self, predicted: &Prediction, budget: Option<u64>) -> bool {
        let outside = predicted.peak_bytes;
        let most = no_higher(outside).saturating_add(outside / BRANCH_SHARE);
        let most = budget.map_or(most, |budget| most.min(budget));
        self.after.exact.is_some_and(|measured| measured > most)
    }
}

/// Where models are measured: the runtime, the model as it came, and the time there is.
pub(crate) struct Bench<'b, 'a> {
    pub(crate) host: &'b Host,
    pub(crate) clock: &'b Clock<'a>,
    /// The model as it came.
    pub(crate) input: &'b Path,
    /// Values of its symbolic dimensions.
    pub(crate) dims: &'b BTreeMap<String, u64>,
    /// Those of them that are fixed in what is written.
    pub(crate) fixed_dims: &'b BTreeSet<String>,
    /// The level at which models are optimized when they are loaded.
    pub(crate) level: OptimizationLevel,
    /// How long loading and running it once is expected to take.
    pub(crate) expected: Duration,
    /// With up to so many threads the bits of tiles are to be those of the whole.
    pub(crate) exact_threads: usize,
}

/// The model as it came, measured once for all strategies.
pub(crate) struct Baseline {
    /// Arena and pattern off.
    exact: Measurement,
    /// Arena and pattern on, once that was measured.
    stock: OnceCell<Measurement>,
    /// With [`MANY_THREADS`], once that was measured.
    threaded: [OnceCell<Measurement>; MANY_THREADS.len()],
    /// What the process took that measured it.
    took: Duration,
}

impl Bench<'_, '_> {
    /// Settings with arena and pattern off, and as they are where nothing is set.
    fn settings(&self) -> [SessionSettings; 2] {
        [SessionSettings::exact(self.level), SessionSettings::stock()].map(|settings| SessionSettings {
            level: self.level,
            dims: self.dims.clone(),
            ..settings
        })
    }

    /// What runs models of which nothing is known yet.
    pub(crate) fn first_runner(&self) -> Runner<'_> {
        let (host, limits) = self.first_runtime();
        host.runner(limits)
    }

    /// The same, as runtime and limits.
    pub(crate) fn first_runtime(&self) -> (&Host, ChildLimits<'_>) {
        let grace = self.expected.saturating_mul(PATIENCE).saturating_add(GRACE);
        let time = self.clock.limit().map(|limit| limit.saturating_add(grace));
        (self.host, self.clock.child(time))
    }

    /// What runs models when the original is known.
    fn runner(&self, expected: Duration) -> Runner<'_> {
        self.host.runner(self.clock.child(None)).expecting(expected)
    }

    fn measure(
        &self,
        runner: &Runner<'_>,
        model: &Path,
        settings: &SessionSettings,
        further_runs: Option<Duration>,
    ) -> Result<Measurement, RuntimeError> {
        let options = MeasureOptions {
            runs: 1,
            seeds: SEEDS.to_vec(),
            time: further_runs,
        };
        measure(runner, model, settings, &options)
    }

    /// Time for all runs of a process after its first one.
    fn further_runs(&self) -> Option<Duration> {
        self.clock.is_timed().then_some(())?;
        self.clock.limit().map(|limit| limit / FURTHER_RUNS)
    }

    /// The same with the arena, where later runs take more than the first one: they must not be left out where there is time.
    fn further_runs_with_arena(&self) -> Option<Duration> {
        Some(self.further_runs()?.max(self.clock.left()? / FURTHER_RUNS_WITH_ARENA))
    }

    /// Measures the model as it came.
    ///
    /// # Errors
    /// [`RuntimeError`] if it does not run here.
    pub(crate) fn baseline(&self) -> Result<Baseline, RuntimeError> {
        let started = Instant::now();
        let [exact, _] = self.settings();
        let work = || self.measure(&self.first_runner(), self.input, &exact, self.further_runs());
        let exact = self.clock.apart(
            Activity::Measure,
            &format!("1/{MEASUREMENTS}, the original model"),
            work,
        )?;
        Ok(Baseline {
            exact,
            stock: OnceCell::new(),
            threaded: Default::default(),
            took: started.elapsed(),
        })
    }
}

impl Baseline {
    /// What a process takes that measures the model as it came, or one made of it.
    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    /// What the model as it came takes, where memory can be measured.
    pub(crate) fn peak(&self) -> Option<BaselinePeak> {
        let peaks = self.exact.peaks.as_ref().ok()?;
        Some(BaselinePeak {
            bytes: peaks.first,
            of: BaselineOf::Measured,
        })
    }

    /// What completing a check is expected to take.
    pub(crate) fn completing(&self) -> Duration {
        let runs = Duration::from_nanos(self.exact.median_ns) * 4 * PAIRS;
        self.took.saturating_mul(6).saturating_add(runs)
    }

    /// Measures what was written with arena and pattern off, against the model as it came: its `outputs`, where they must be identical, and
    /// its peak. `must_be_lower`: more memory is a reason to reject it.
    pub(crate) fn verify(
        &self,
        bench: &Bench<'_, '_>,
        written: &Path,
        must_be_lower: bool,
        outputs: Outputs,
    ) -> Result<Check, Rejection> {
        let [settings, _] = bench.settings();
        let after = bench.measure(&bench.runner(self.took), written, &settings, bench.further_runs());
        let after = after.map_err(Rejection::DoesNotRun)?;
        same_bits(outputs, &self.exact, &after)?;
        let first = |measured: &Measurement| measured.peaks.as_ref().ok().map(|peaks| peaks.first);
        let (before_peak, after_peak) = (first(&self.exact), first(&after));
        if let Some((before, after)) = before_peak.zip(after_peak)
            && must_be_lower
            && after > no_higher(before)
        {
            let higher = HigherPeak {
                which: Peak::ArenaOff,
                basis: Basis::Measured,
                before,
                after,
            };
            return Err(higher.into());
        }
        Ok(Check {
            before: Measured::of_exact(&self.exact),
            after: Measured::of_exact(&after),
            time_ratio: None,
            exact_time_ratio: None,
            before_ns: self.exact.median_ns,
            exact_before_ns: None,
            fresh_ns_per_mib: self.exact.fresh_ns_per_mib.min(after.fresh_ns_per_mib),
            seeds: after.outputs.len().min(self.exact.outputs.len()),
            outputs,
            sizes: None,
            unmeasured: after.peaks.err(),
        })
    }

    /// Whether a model has the bits of the model as it came, with one thread.
    pub(crate) fn has_bits(&self, bench: &Bench<'_, '_>, model: &Path) -> bool {
        let [settings, _] = bench.settings();
        let measured = bench.measure(&bench.runner(self.took), model, &settings, Some(Duration::ZERO));
        measured.is_ok_and(|measured| same_bits(Outputs::Identical, &self.exact, &measured).is_ok())
    }

    /// Adds memory to a check where nothing is set, if there is time for it.
    pub(crate) fn with_arena(&self, bench: &Bench<'_, '_>, written: &Path, check: &mut Check) -> Result<(), Rejection> {
        let clock = bench.clock;
        let [_, stock] = bench.settings();
        if check.seeds < SEEDS.len() {
            clock.leave_out(LeftOut::FurtherSeeds);
        }
        if clock.has(self.took * 2) {
            let runner = bench.runner(self.took);
            let measure = |place: u32, model| {
                let detail = format!("{place}/{MEASUREMENTS}, with the memory arena");
                clock.begins(Activity::Measure, &detail);
                bench
                    .measure(&runner, model, &stock, bench.further_runs_with_arena())
                    .map_err(Rejection::DoesNotRun)
            };
            let before = match self.stock.get() {
                Some(known) => known,
                None => {
                    let measured = measure(3, bench.input)?;
                    self.stock.get_or_init(|| measured)
                }
            };
            let after = measure(4, written)?;
            same_bits(check.outputs, before, &after)?;
            check.before.take_arena(before);
            check.after.take_arena(&after);
        } else {
            clock.leave_out(LeftOut::ArenaPeaks);
        }
        Ok(())
    }

    /// Compares bits where nothing is set but [`MANY_THREADS`], as far as they are asked for: with the first of them always, with others where
    /// there is time.
    pub(crate) fn with_threads(&self, bench: &Bench<'_, '_>, written: &Path, _: &mut Check) -> Result<(), Rejection> {
        for (known, threads) in self.threaded.iter().zip(MANY_THREADS) {
            let is_first = threads == MANY_THREADS[0];
            if !is_first && (threads > bench.exact_threads || !bench.clock.has(self.took * 2)) {
                break;
            }
            let threads = threads.min(bench.exact_threads);
            let [_, stock] = bench.settings();
            let settings = SessionSettings { threads, ..stock };
            let runner = bench.runner(self.took);
            let detail = format!("bits with {threads} threads");
            bench.clock.begins(Activity::Measure, &detail);
            let measure = |model| {
                bench
                    .measure(&runner, model, &settings, Some(Duration::ZERO))
                    .map_err(Rejection::DoesNotRun)
            };
            let before = match known.get() {
                Some(known) => known,
                None => {
                    let measured = measure(bench.input)?;
                    known.get_or_init(|| measured)
                }
            };
            same_bits(Outputs::Identical, before, &measure(written)?)?;
        }
        Ok(())
    }

    /// Runs what was written beside the model as it came at other sizes of free dimensions. That counts, and is never left out: it is part of
    /// the run of each model that is granted whatever the limit.
    pub(crate) fn with_sizes(&self, bench: &Bench<'_, '_>, written: &Path, check: &mut Check) -> Result<(), Rejection> {
        let [settings, _] = bench.settings();
        let runner = bench.runner(self.took * SIZES_AS_RUNS);
        let pair = (bench.input, written);
        let work = || compare_sizes(&runner, pair, &settings, bench.fixed_dims, SEEDS[0]);
        let found = bench
            .clock
            .during(Activity::Measure, "other sizes of free dimensions", work);
        let found = found.map_err(Rejection::DoesNotRun)?;
        if let Some(other) = found.first_difference(check.outputs == Outputs::MayRoundOtherwise) {
            return Err(Rejection::OtherAtSize {
                dims: other.dims.clone(),
                outcome: other.outcome.clone(),
            });
        }
        check.sizes = Some(found);
        Ok(())
    }

    /// Adds times to a check, as far as there is time for them.
    pub(crate) fn with_times(&self, bench: &Bench<'_, '_>, written: &Path, check: &mut Check) -> Result<(), Rejection> {
        let clock = bench.clock;
        let [exact, stock] = bench.settings();
        match self.in_turns(bench, written, &stock, 5)? {
            Some(times) => {
                (check.time_ratio, check.before_ns) = (Some(times.ratio), times.base_median_ns);
            }
            None => clock.leave_out(LeftOut::Times),
        }
        match self.in_turns(bench, written, &exact, 6)? {
            Some(times) => {
                (check.exact_time_ratio, check.exact_before_ns) = (Some(times.ratio), Some(times.base_median_ns));
            }
            None => clock.leave_out(LeftOut::ExactTimes),
        }
        Ok(())
    }

    /// Times of the two models in turns, if there is time for it.
    fn in_turns(
        &self,
        bench: &Bench<'_, '_>,
        written: &Path,
        settings: &SessionSettings,
        place: u32,
    ) -> Result<Option<TimeComparison>, Rejection> {
        let pair = Duration::from_nanos(self.exact.median_ns) * 2;
        let least = self.took * 2 + pair;
        if !bench.clock.has(least) {
            return Ok(None);
        }
        let detail = format!("{place}/{MEASUREMENTS}, both models in turns");
        bench.clock.begins(Activity::Measure, &detail);
        let options = PairOptions {
            pairs: PAIRS,
            seed: SEEDS[0],
            time: bench.clock.left().map(|left| left.saturating_sub(least)),
        };
        let runner = bench.runner(self.took * 2 + pair * PAIRS);
        let times = compare_time(&runner, (bench.input, written), settings, options);
        times.map(Some).map_err(Rejection::DoesNotRun)
    }
}

fn same_bits(outputs: Outputs, before: &Measurement, after: &Measurement) -> Result<(), Rejection> {
    match before.first_difference(after).filter(|_| outputs == Outputs::Identical) {
        None => Ok(()),
        Some((seed, output)) => Err(Rejection::OutputDiffers {
            output: output.to_owned(),
            seed,
        }),
    }
}
