//! A written file beside the original model, both measured in the runtime.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use remat::{BaselineOf, BaselinePeak};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::{
    ChildLimits, CloseOptions, Closeness, CompareSizes, Host, MeasureOptions, Measurement, PairOptions, Runner,
    RuntimeError, SIZES_AS_RUNS, SessionSettings, TimeComparison, compare_close, compare_sizes, compare_time, measure,
};
use remat_solve::Activity;

use crate::check::{Check, Outputs};
use crate::clock::{Clock, LeftOut, Work};
use crate::error::Rejection;
use crate::peaks::{Growth, Measured};
use crate::request::DeployRequest;

/// Seeds of the inputs on which bits are compared.
const SEEDS: [u64; 2] = [0, 1];

/// Threads with which bits are compared again where kernels may divide sums otherwise: those of small machines, and an odd share.
const MANY_THREADS: [usize; 2] = [4, 14];

/// How often the process that compares outputs on inputs of several kinds takes what one takes that measures a model, about.
const CLOSE_AS_RUNS: u32 = 4;

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

/// Where models run: the runtime, and the time there is.
pub(crate) struct Bench<'b, 'a> {
    pub(crate) host: &'b Host,
    pub(crate) clock: &'b Clock<'a>,
    pub(crate) request: &'b DeployRequest<'b>,
}

impl Bench<'_, '_> {
    /// Settings with arena and pattern off.
    fn exact(&self) -> SessionSettings {
        self.settings(SessionSettings::exact(self.request.level))
    }

    /// Settings as they are where nothing is set.
    fn stock(&self) -> SessionSettings {
        self.settings(SessionSettings::stock())
    }

    fn settings(&self, settings: SessionSettings) -> SessionSettings {
        SessionSettings {
            level: self.request.level,
            dims: self.request.load.dims.clone(),
            ..settings
        }
    }

    /// What runs models of which nothing is known yet.
    pub(crate) fn first_runner(&self) -> Runner<'_> {
        let (host, limits) = self.first_runtime();
        host.runner(limits)
    }

    /// The same, as runtime and limits.
    pub(crate) fn first_runtime(&self) -> (&Host, ChildLimits<'_>) {
        let grace = self.request.expected.saturating_mul(PATIENCE).saturating_add(GRACE);
        let time = self.clock.limit().map(|limit| limit.saturating_add(grace));
        (self.host, self.clock.child(time))
    }

    /// What runs models when the original is known.
    fn runner(&self, expected: Duration) -> Runner<'_> {
        self.host.runner(self.clock.child(None)).expecting(expected)
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
}

/// By how much the process of a model grows in a session where nothing is set but dimensions: measured as the original model is beside a file.
///
/// # Errors
/// [`RuntimeError`] if it does not run.
pub fn default_growth(runner: &Runner<'_>, model: &Path, dims: &BTreeMap<String, u64>) -> Result<Growth, RuntimeError> {
    let settings = SessionSettings {
        dims: dims.clone(),
        ..SessionSettings::stock()
    };
    let mut measured = Measured::default();
    measured.take_arena(&run(runner, model, &settings, None)?);
    let [_, growth] = measured.growth();
    Ok(growth)
}

/// Runs a model with some settings; `further_runs`: time for all runs after the first one.
fn run(
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

/// What is measured of a file that nothing is known against after its first run, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Further {
    /// Memory where nothing is set.
    Arena,
    /// Bits with more threads, where kernels divide sums among threads: in tiles.
    Threads,
    /// Bits at other sizes of dimensions that are free.
    Sizes,
    /// Times of both models in turns.
    Times,
}

impl Further {
    pub(crate) const ALL: [Self; 4] = [Self::Arena, Self::Threads, Self::Sizes, Self::Times];
}

/// What measuring shows: an output that differs from that of the original model, where one does.
pub(crate) type Differs = Option<Rejection>;

/// What measures files beside the original model.
pub(crate) trait Measures {
    /// What a process takes that measures the original model, or one made of it.
    fn took(&self) -> Duration;

    /// What completing the measurements of a file is expected to take.
    fn completing(&self) -> Duration;

    /// Measures a file with arena and pattern off: its `outputs`, where they must be identical, and its peak.
    ///
    /// # Errors
    /// [`RuntimeError`] if it does not run.
    fn first(&self, written: &Path, outputs: Outputs) -> Result<(Check, Differs), RuntimeError>;

    /// Adds to a check what there is time for.
    ///
    /// # Errors
    /// As [`Measures::first`].
    fn further(&self, what: Further, written: &Path, check: &mut Check) -> Result<Differs, RuntimeError>;

    /// Whether a model has the bits of the original model, with one thread.
    fn has_bits(&self, model: &Path) -> bool;
}

/// The original model, measured once for all files.
pub(crate) struct Original<'b, 'a> {
    bench: &'b Bench<'b, 'a>,
    /// Arena and pattern off.
    exact: Measurement,
    /// Arena and pattern on, once that was measured.
    stock: OnceCell<Measurement>,
    /// With [`MANY_THREADS`], once that was measured.
    threaded: [OnceCell<Measurement>; MANY_THREADS.len()],
    /// What the process took that measured it.
    took: Duration,
}

impl<'b, 'a> Original<'b, 'a> {
    /// Measures it.
    ///
    /// # Errors
    /// [`RuntimeError`] if it does not run here.
    pub(crate) fn measured(bench: &'b Bench<'b, 'a>) -> Result<Self, RuntimeError> {
        let started = Instant::now();
        let detail = format!("1/{MEASUREMENTS}, the original model");
        let exact = bench.clock.untimed(Activity::Measure, &detail, || {
            run(
                &bench.first_runner(),
                bench.request.input,
                &bench.exact(),
                bench.further_runs(),
            )
        })?;
        Ok(Self {
            bench,
            exact,
            stock: OnceCell::new(),
            threaded: Default::default(),
            took: started.elapsed(),
        })
    }

    /// What it takes, where memory can be measured.
    pub(crate) fn peak(&self) -> Option<BaselinePeak> {
        let peaks = self.exact.peaks.as_ref().ok()?;
        Some(BaselinePeak {
            bytes: peaks.first,
            of: BaselineOf::Measured,
        })
    }

    /// Memory where nothing is set.
    fn arena(&self, written: &Path, check: &mut Check) -> Result<Differs, RuntimeError> {
        let (bench, clock) = (self.bench, self.bench.clock);
        if check.seeds < SEEDS.len() {
            clock.leave_out(LeftOut::FurtherSeeds);
        }
        if !clock.allows(Work::ArenaPeaks, self.took) {
            clock.leave_out(LeftOut::ArenaPeaks);
            return Ok(None);
        }
        let (runner, settings) = (bench.runner(self.took), bench.stock());
        let with_arena = |place: u32, model| {
            let detail = format!("{place}/{MEASUREMENTS}, with the memory arena");
            clock.begins(Activity::Measure, &detail);
            run(&runner, model, &settings, bench.further_runs_with_arena())
        };
        let before = known_or(&self.stock, || with_arena(3, bench.request.input))?;
        let after = with_arena(4, written)?;
        check.before.take_arena(before);
        // Another order cannot be set here.
        if bench.request.order == OrderHint::Any {
            check.after.take_arena(&after);
        }
        Ok(difference(check.outputs, before, &after))
    }

    /// Bits where nothing is set but [`MANY_THREADS`], as far as they are asked for: with the first of them always, with others where there is
    /// time.
    fn threads(&self, written: &Path) -> Result<Differs, RuntimeError> {
        let (bench, most) = (self.bench, self.bench.request.exact_threads());
        for (known, threads) in self.threaded.iter().zip(MANY_THREADS) {
            let is_first = threads == MANY_THREADS[0];
            if !is_first && (threads > most || !bench.clock.allows(Work::Threads, self.took)) {
                break;
            }
            let threads = threads.min(most);
            let settings = SessionSettings {
                threads,
                ..bench.stock()
            };
            let runner = bench.runner(self.took);
            let detail = format!("bits with {threads} threads");
            bench.clock.begins(Activity::Measure, &detail);
            let once = |model| run(&runner, model, &settings, Some(Duration::ZERO));
            let before = known_or(known, || once(bench.request.input))?;
            let differs = difference(Outputs::Identical, before, &once(written)?);
            if differs.is_some() {
                return Ok(differs);
            }
        }
        Ok(None)
    }

    /// Both models at other sizes of free dimensions. That counts, and is never left out: it is part of the run of each model that is granted
    /// whatever the limit.
    fn sizes(&self, written: &Path, check: &mut Check) -> Result<Differs, RuntimeError> {
        let bench = self.bench;
        let runner = bench.runner(self.took * SIZES_AS_RUNS);
        let (pair, fixed) = ((bench.request.input, written), &bench.request.load.fixed_dims);
        let work = || compare_sizes(&runner, pair, &bench.exact(), CompareSizes::around(fixed, SEEDS[0]));
        let found = bench
            .clock
            .during(Activity::Measure, "other sizes of free dimensions", work)?;
        let other = found.first_difference(check.outputs != Outputs::Identical);
        let differs = other.map(|other| Rejection::OtherAtSize {
            dims: other.dims.clone(),
            outcome: other.outcome.clone(),
        });
        check.sizes = Some(found);
        Ok(differs)
    }

    /// How far the outputs of both models lie apart, on inputs of several kinds. That a file is close to the original is said of none that did not
    /// run beside it: the first inputs are never left out.
    fn closeness(&self, written: &Path, limit: f64) -> Result<Closeness, RuntimeError> {
        let bench = self.bench;
        let options = CloseOptions {
            seeds: SEEDS.to_vec(),
            limit,
            time: bench.further_runs(),
        };
        let runner = bench.runner(self.took * CLOSE_AS_RUNS);
        compare_close(&runner, (bench.request.input, written), &bench.exact(), &options)
    }

    /// Times, where nothing is set and with the arena off.
    fn times(&self, written: &Path, check: &mut Check) -> Result<(), RuntimeError> {
        let clock = self.bench.clock;
        match self.in_turns(written, &self.bench.stock(), 5)? {
            Some(times) => {
                (check.time_ratio, check.before_ns) = (Some(times.ratio), times.base_median_ns);
            }
            None => clock.leave_out(LeftOut::Times),
        }
        match self.in_turns(written, &self.bench.exact(), 6)? {
            Some(times) => {
                (check.arena_off_time_ratio, check.arena_off_before_ns) =
                    (Some(times.ratio), Some(times.base_median_ns));
            }
            None => clock.leave_out(LeftOut::ExactTimes),
        }
        Ok(())
    }

    /// Times of the two models in turns, if there is time for it.
    fn in_turns(
        &self,
        written: &Path,
        settings: &SessionSettings,
        place: u32,
    ) -> Result<Option<TimeComparison>, RuntimeError> {
        let (bench, pair) = (self.bench, Duration::from_nanos(self.exact.median_ns) * 2);
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
        compare_time(&runner, (bench.request.input, written), settings, options).map(Some)
    }
}

impl Measures for Original<'_, '_> {
    fn took(&self) -> Duration {
        self.took
    }

    fn completing(&self) -> Duration {
        let runs = Duration::from_nanos(self.exact.median_ns) * 4 * PAIRS;
        self.took.saturating_mul(6).saturating_add(runs)
    }

    fn first(&self, written: &Path, outputs: Outputs) -> Result<(Check, Differs), RuntimeError> {
        let bench = self.bench;
        let after = run(&bench.runner(self.took), written, &bench.exact(), bench.further_runs())?;
        let closeness = match outputs.limit() {
            Some(limit) => Some(self.closeness(written, limit)?),
            None => None,
        };
        let differs = difference(outputs, &self.exact, &after).or_else(|| apart(closeness.as_ref()?));
        let mut check = Check {
            before: Measured::of_exact(&self.exact),
            after: Measured::of_exact(&after),
            time_ratio: None,
            arena_off_time_ratio: None,
            before_ns: self.exact.median_ns,
            arena_off_before_ns: None,
            allocation_ns_per_mib: self.exact.fresh_ns_per_mib.min(after.fresh_ns_per_mib),
            seeds: after.outputs.len().min(self.exact.outputs.len()),
            outputs,
            closeness,
            sizes: None,
            unmeasured: after.peaks.clone().err(),
        };
        if bench.request.order == OrderHint::Priority {
            check.after = Measured::default();
            check.unmeasured = Some("the priority-based order can only be set from Python".to_owned());
        }
        Ok((check, differs))
    }

    fn further(&self, what: Further, written: &Path, check: &mut Check) -> Result<Differs, RuntimeError> {
        match what {
            Further::Arena => self.arena(written, check),
            Further::Threads => self.threads(written),
            Further::Sizes => self.sizes(written, check),
            Further::Times => self.times(written, check).map(|()| None),
        }
    }

    fn has_bits(&self, model: &Path) -> bool {
        let measured = run(
            &self.bench.runner(self.took),
            model,
            &self.bench.exact(),
            Some(Duration::ZERO),
        );
        measured.is_ok_and(|measured| difference(Outputs::Identical, &self.exact, &measured).is_none())
    }
}

/// What a cell holds, measured if it holds nothing.
fn known_or(
    known: &OnceCell<Measurement>,
    measure: impl FnOnce() -> Result<Measurement, RuntimeError>,
) -> Result<&Measurement, RuntimeError> {
    match known.get() {
        Some(known) => Ok(known),
        None => measure().map(|measured| known.get_or_init(|| measured)),
    }
}

/// The first output that is too far from that of the original.
fn apart(closeness: &Closeness) -> Differs {
    let (output, fault) = closeness.fault()?;
    Some(Rejection::OutputApart {
        output: output.name.clone(),
        fault,
        difference: output.relative_difference,
        inputs: output.inputs,
    })
}

/// The first output with other bits, where they must be the same.
fn difference(outputs: Outputs, before: &Measurement, after: &Measurement) -> Differs {
    let (seed, output) = before
        .first_difference(after)
        .filter(|_| outputs == Outputs::Identical)?;
    Some(Rejection::OutputDiffers {
        output: output.to_owned(),
        seed,
    })
}
