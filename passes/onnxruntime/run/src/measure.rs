//! What a run of a model takes, measured in a process of its own: memory at its peak, time, and the bits of its outputs.

use std::path::Path;
use std::time::Instant;

use ort::session::{Session, SessionOutputs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arena::Arena;
use crate::meter::HeapMeter;
use crate::output::viewed;
use crate::planned::{ArenaFigures, ArenaLibrary};
use crate::resident::{Resident, ResidentMeter, fresh_ns_per_mib};
use crate::runner::{Runner, Task};
use crate::session::take;
use crate::time::{Rest, median, nanoseconds};
use crate::{MeasureOptions, Provider, Runtime, RuntimeError, SessionSettings};

/// Most bytes that were taken at once, above those that were taken before the first run (weights and inputs).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peaks {
    /// In the first run.
    pub first: u64,
    /// In the runs after it, where there were any. What the session kept after the first run counts: an arena's memory, blocks of a
    /// memory pattern.
    pub steady: Option<u64>,
}

/// The bits of one output, as a digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputDigest {
    /// Name in the model's signature.
    pub name: String,
    /// Element type, as in [`Output::element`](crate::Output::element).
    pub element: String,
    /// Dimensions, as in [`Output::shape`](crate::Output::shape).
    pub shape: Vec<i64>,
    /// BLAKE3 of the bytes, in hexadecimal. NaNs compare by their bits.
    pub digest: String,
}

/// The outputs for one seed, in the order of the signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeededOutputs {
    /// The seed of the inputs.
    pub seed: u64,
    /// The outputs.
    pub outputs: Vec<OutputDigest>,
}

impl SeededOutputs {
    /// The first output that differs from that of others, by name, type, shape or any bit.
    pub(crate) fn first_difference<'m>(&'m self, others: &Self) -> Option<&'m str> {
        let mut outputs = self.outputs.iter().enumerate();
        let (_, output) = outputs.find(|&(index, output)| others.outputs.get(index) != Some(output))?;
        Some(&output.name)
    }
}

/// What runs of a model took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Memory: of the process's heap, or on a GPU of the provider's arena. Otherwise why it is not known.
    pub peaks: Result<Peaks, String>,
    /// How the session followed its plans, if it has the arena library.
    pub planned: Option<ArenaFigures>,
    /// Most bytes of the provider's arena in use at once, in any run, above those in use before the first; `None` without an arena. The
    /// arena itself is larger: that is in `peaks`.
    pub arena_peak: Option<u64>,
    /// Bytes of the provider's arena in use before the first run: what the session keeps there.
    pub arena_kept: Option<u64>,
    /// By how much the process grew; `None` where the system does not tell.
    pub resident: Option<Resident>,
    /// Nanoseconds for each MiB that the system hands out for the first time.
    pub fresh_ns_per_mib: u64,
    /// Live bytes before the first run (weights, inputs, the session itself), where memory is known.
    pub loaded_bytes: u64,
    /// Time to load the model, in nanoseconds.
    pub load_ns: u64,
    /// Time of the first run, in nanoseconds.
    pub first_ns: u64,
    /// How many warm runs there were.
    pub warm_runs: u32,
    /// Median of the warm runs, in nanoseconds; that of the first run where there were none.
    pub median_ns: u64,
    /// Fastest warm run, in nanoseconds; that of the first run where there were none.
    pub min_ns: u64,
    /// The outputs for each seed that there was time for, the first seed's in any case.
    pub outputs: Vec<SeededOutputs>,
    /// Whether all floating-point outputs were free of NaN and infinity.
    pub finite: bool,
}

impl Measurement {
    /// The first output in which two measurements differ on the seeds that both ran: by name, type, shape or any bit.
    #[must_use]
    pub fn first_difference<'m>(&'m self, other: &Self) -> Option<(u64, &'m str)> {
        let pairs = self.outputs.iter().zip(&other.outputs);
        let differs =
            |(here, there): (&'m SeededOutputs, &SeededOutputs)| Some((here.seed, here.first_difference(there)?));
        pairs.into_iter().find_map(differs)
    }
}

/// Runs a model in a process of its own and measures it there.
///
/// # Errors
/// [`RuntimeError`]; [`RuntimeError::Child`] if the process ends without an answer, for want of memory for instance.
pub fn measure(
    runner: &Runner<'_>,
    model: &Path,
    settings: &SessionSettings,
    options: &MeasureOptions,
) -> Result<Measurement, RuntimeError> {
    let task = Task::Measure {
        model: model.to_owned(),
        options: options.clone(),
    };
    runner.ask(settings, task)
}

/// The child's part of [`measure`].
pub(crate) fn measure_here(
    runtime: &Runtime,
    model: &Path,
    settings: &SessionSettings,
    options: &MeasureOptions,
) -> Result<Measurement, RuntimeError> {
    let start = Instant::now();
    let mut loaded = runtime.open(model, settings)?;
    let load_ns = nanoseconds(start);
    let library = settings.arena_library.as_ref().map(|_| ArenaLibrary::loaded(settings));
    let library = library.transpose()?;
    let first_seed = options.seeds.first().copied().unwrap_or(0);
    let feed = loaded.seeded(first_seed)?;
    let meter = Meter::of(&loaded.session, settings.provider);
    let arena = Arena::of(&loaded.session, settings.provider).ok();
    let arena_before = arena.as_ref().and_then(|arena| arena.stats().ok());

    // What an arena of the environment holds for runs is theirs, also where it holds it since the session was loaded.
    let shared = arena_before.filter(|_| settings.shared_arena.is_some());
    let before = meter.live() - shared.map_or(0, |stats| stats.held + table(stats.held) - stats.in_use);
    let resident = ResidentMeter::start();
    let growth = || resident.as_ref().and_then(ResidentMeter::growth);
    meter.reset();
    let names = loaded.outputs().to_vec();
    let start = Instant::now();
    let outputs = loaded.run(&feed)?;
    let first_ns = nanoseconds(start);
    let first = meter.peak();
    let first_growth = growth();
    let files = resident.as_ref().and_then(ResidentMeter::files).unwrap_or(0);
    let failed = |why| RuntimeError::Run {
        model: model.to_owned(),
        why,
    };
    let (digests, mut finite) = digest(outputs, names.clone()).map_err(failed)?;
    let mut seeded = vec![SeededOutputs {
        seed: first_seed,
        outputs: digests,
    }];

    let rest = Rest::new(options.time, first_ns);
    for &seed in options.seeds.iter().skip(1) {
        if !rest.has_room() {
            break;
        }
        let feed = loaded.seeded(seed)?;
        let (outputs, is_finite) = digest(loaded.run(&feed)?, names.clone()).map_err(failed)?;
        finite &= is_finite;
        seeded.push(SeededOutputs { seed, outputs });
    }
    let mut times = Vec::new();
    let mut steady = None;
    resident.iter().for_each(ResidentMeter::reset);
    for _ in 0..options.runs.max(1) {
        if !rest.has_room() {
            break;
        }
        meter.reset();
        let start = Instant::now();
        let outputs = loaded.run(&feed)?;
        times.push(nanoseconds(start));
        steady = steady.max(Some(meter.peak()));
        drop(outputs);
    }
    let later_growth = growth().filter(|_| steady.is_some());
    let warm_runs = u32::try_from(times.len()).unwrap_or(u32::MAX);
    if times.is_empty() {
        times.push(first_ns);
    }
    let above = |peak: i64| u64::try_from(peak - before).unwrap_or(0);
    let peaks = Peaks {
        first: above(first),
        steady: steady.map(above),
    };
    let arena_after = arena.as_ref().and_then(|arena| arena.stats().ok());
    let arena_peak = arena_before
        .zip(arena_after)
        .map(|(before, after)| after.max_in_use - before.in_use);
    Ok(Measurement {
        planned: library.map(|library| library.figures()),
        arena_kept: arena_before.and_then(|before| u64::try_from(before.in_use).ok()),
        arena_peak: arena_peak.and_then(|peak| u64::try_from(peak).ok()),
        peaks: meter.is_there().map(|()| peaks),
        resident: first_growth.map(|first| Resident {
            first,
            later: later_growth,
            files,
        }),
        fresh_ns_per_mib: fresh_ns_per_mib(),
        loaded_bytes: u64::try_from(before).unwrap_or(0),
        load_ns,
        first_ns,
        warm_runs,
        median_ns: median(&mut times),
        min_ns: times.first().copied().unwrap_or(0),
        outputs: seeded,
        finite,
    })
}

/// Bytes of the arena's tables for regions of so many bytes: an entry of 8 for each 256.
fn table(regions: i64) -> i64 {
    regions / 256 * 8
}

/// The outputs of a run, and whether all are finite.
pub(crate) fn digest(outputs: SessionOutputs<'_>, names: Vec<String>) -> Result<(Vec<OutputDigest>, bool), String> {
    let mut finite = true;
    let mut digests = Vec::new();
    for output in take(outputs, names, |name, value| viewed(name, value, blake3::hash)) {
        let (output, digest, is_finite) = output?;
        finite &= is_finite;
        digests.push(OutputDigest {
            digest: digest.to_hex().to_string(),
            name: output.name,
            element: output.element,
            shape: output.shape,
        });
    }
    Ok((digests, finite))
}

/// What memory is read off.
enum Meter {
    Heap(HeapMeter),
    Device(Arena),
    Unknown(String),
}

impl Meter {
    fn of(session: &Session, provider: Provider) -> Self {
        let found = match provider {
            Provider::Cpu => HeapMeter::find().map(Self::Heap),
            Provider::Cuda(_) => Arena::of(session, provider).map(Self::Device),
        };
        found.unwrap_or_else(Self::Unknown)
    }

    fn is_there(&self) -> Result<(), String> {
        match self {
            Self::Heap(_) | Self::Device(_) => Ok(()),
            Self::Unknown(why) => Err(why.clone()),
        }
    }

    fn live(&self) -> i64 {
        match self {
            Self::Heap(meter) => meter.live(),
            Self::Device(arena) => arena.stats().map_or(0, |stats| stats.in_use),
            Self::Unknown(_) => 0,
        }
    }

    /// Most bytes since the last reset; those of a device since it exists, which has no reset.
    fn peak(&self) -> i64 {
        match self {
            Self::Heap(meter) => meter.peak(),
            Self::Device(arena) => arena.stats().map_or(0, |stats| stats.max_in_use),
            Self::Unknown(_) => 0,
        }
    }

    fn reset(&self) {
        if let Self::Heap(meter) = self {
            meter.reset();
        }
    }
}
