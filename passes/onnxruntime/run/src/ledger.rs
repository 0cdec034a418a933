//! What a process takes that loads a model and runs it, from its first to its last instruction, by what it takes it for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ort::value::ValueType;
use serde::{Deserialize, Serialize};

use crate::measure::{SeededOutputs, digest};
use crate::planned::ArenaLibrary;
use crate::resident::status;
use crate::runner::{Runner, Task};
use crate::time::{median, nanoseconds};
use crate::{LedgerOptions, Runtime, RuntimeError, SessionSettings};

/// Seed of the inputs.
const SEED: u64 = 0;
/// How often the private memory is looked at.
const LOOK: Duration = Duration::from_micros(300);

/// What was measured of a process, in bytes. What the program took that loaded the runtime does not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessMeasured {
    /// Pages of libraries: the system can drop them and read them again.
    pub code_mapped: u64,
    /// Memory of their own that libraries have once they are loaded.
    pub code_private: u64,
    /// Most private memory while the session was loaded, and in its first run, beyond what it keeps when it runs.
    pub loading: u64,
    /// Private memory that the loaded session keeps when it runs: its graph, and weights in the heap.
    pub session: u64,
    /// Pages of files of weights that runs read.
    pub weights_mapped: u64,
    /// Most private memory that a run adds, outputs among it.
    pub run: u64,
    /// Outputs of a run.
    pub outputs: u64,
    /// Most memory of the process at one time, private or mapped: what it would be charged for.
    pub most: u64,
    /// Median of the runs after the first, in nanoseconds.
    pub median_ns: u64,
    /// The outputs of the first run.
    pub first_outputs: SeededOutputs,
}

/// Loads a model in a process of its own, runs it, and measures what the process takes.
///
/// # Errors
/// [`RuntimeError`]; [`RuntimeError::Child`] where the system does not tell what a process takes.
pub fn measure_process(
    runner: &Runner<'_>,
    model: &Path,
    settings: &SessionSettings,
    options: &LedgerOptions,
) -> Result<ProcessMeasured, RuntimeError> {
    let task = Task::Ledger {
        model: model.to_owned(),
        options: options.clone(),
    };
    runner.ask(settings, task)
}

/// Memory of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Pages of its own.
    private: u64,
    /// Pages of files.
    mapped: u64,
}

impl Taken {
    /// That of now; `None` where the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        Some(Self {
            private: status("RssAnon:")?,
            mapped: status("RssFile:")?,
        })
    }
}

/// The child's part of [`measure_process`]; `before`: what it took before it loaded the runtime.
pub(crate) fn measure_process_here(
    runtime: &Runtime,
    model: &Path,
    (settings, before): (&SessionSettings, Option<Taken>),
    options: &LedgerOptions,
) -> Result<ProcessMeasured, RuntimeError> {
    let untold = || RuntimeError::Child {
        model: model.to_owned(),
        why: "cannot tell what it takes: this system has no /proc/self/status".to_owned(),
    };
    let before = before.ok_or_else(untold)?;
    let now = || Taken::now().ok_or_else(untold);
    let libraries = now()?;
    let meter = PrivateMeter::start();
    let mut loaded = runtime.open(model, settings)?;
    let loading = meter.most();
    let kept = now()?;
    let feed = loaded.seeded(SEED)?;
    let names = loaded.outputs().to_vec();
    let fed = now()?.private.saturating_sub(kept.private);

    // Of the first run counts what is more than loading took: it gives back what loading left.
    let meter = PrivateMeter::start();
    let outputs = loaded.run(&feed)?;
    let bytes = outputs.values().map(|value| bytes_of(value.dtype())).sum();
    let failed = |why| RuntimeError::Run {
        model: model.to_owned(),
        why,
    };
    let (outputs, _) = digest(outputs, names).map_err(failed)?;
    let first = meter.most().saturating_sub(fed);
    let meter = PrivateMeter::start();
    let mut times = Vec::new();
    for _ in 1..options.runs.max(2) {
        let start = Instant::now();
        drop(loaded.run(&feed)?);
        times.push(nanoseconds(start));
    }
    let running = meter.most();
    let end = now()?;
    let library = settings.arena_library.as_ref().map(|_| ArenaLibrary::loaded(settings));
    let returned = library
        .transpose()?
        .map_or(0, |library| library.figures().returned_bytes);
    let weights_mapped = mapped(&options.data);

    // What loading left in the heap and the first run returned is part of loading.
    let session = kept.private.saturating_sub(libraries.private + returned);
    let rests = libraries.private + session;
    Ok(ProcessMeasured {
        code_mapped: end.mapped.saturating_sub(before.mapped + weights_mapped),
        code_private: libraries.private.saturating_sub(before.private),
        loading: loading.max(first).saturating_sub(rests),
        session,
        weights_mapped,
        run: running.saturating_sub(rests + fed),
        outputs: bytes,
        most: (loading.max(first).max(running.saturating_sub(fed)) + end.mapped)
            .saturating_sub(before.private + before.mapped),
        median_ns: median(&mut times),
        first_outputs: SeededOutputs { seed: SEED, outputs },
    })
}

/// Bytes of a tensor; none of what has another form.
fn bytes_of(form: &ValueType) -> u64 {
    let ValueType::Tensor { ty, shape, .. } = form else {
        return 0;
    };
    let elements = shape
        .iter()
        .map(|&size| u64::try_from(size).unwrap_or(0))
        .product::<u64>();
    elements * ty.byte_size(1).unwrap_or(0) as u64
}

/// Resident pages of files, as far as they are what the files hold.
fn mapped(files: &BTreeSet<PathBuf>) -> u64 {
    let text = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut is_one = false;
    let mut bytes = 0_u64;
    for line in text.lines() {
        let kilobytes = |name: &str| {
            let rest = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
            rest.trim().parse::<u64>().ok()
        };
        if let Some(all) = kilobytes("Rss:").filter(|_| is_one) {
            bytes += all << 10;
        } else if let Some(private) = kilobytes("Anonymous:").filter(|_| is_one) {
            bytes = bytes.saturating_sub(private << 10);
        } else if line
            .split_once('-')
            .is_some_and(|(from, _)| u64::from_str_radix(from, 16).is_ok())
        {
            // The path begins at the first slash: the fields before it have none.
            let path = line.find('/').map(|at| Path::new(&line[at..]));
            is_one = path.is_some_and(|path| files.contains(path));
        }
    }
    bytes
}

/// Watches the most private memory of this process from a thread.
struct PrivateMeter {
    watched: std::sync::Arc<Watched>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Watched {
    most: AtomicU64,
    is_over: AtomicBool,
}

impl Watched {
    fn look(&self) {
        let private = status("RssAnon:").unwrap_or(0);
        self.most.fetch_max(private, Ordering::Relaxed);
    }
}

impl PrivateMeter {
    fn start() -> Self {
        let watched = std::sync::Arc::new(Watched::default());
        watched.look();
        let shared = std::sync::Arc::clone(&watched);
        let thread = thread::spawn(move || {
            while !shared.is_over.load(Ordering::Relaxed) {
                shared.look();
                thread::sleep(LOOK);
            }
        });
        Self {
            watched,
            thread: Some(thread),
        }
    }

    /// The most since the start.
    fn most(mut self) -> u64 {
        self.watched.look();
        self.watched.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does nothing that can fail.
            let _ = thread.join();
        }
        self.watched.most.load(Ordering::Relaxed)
    }
}

impl Drop for PrivateMeter {
    fn drop(&mut self) {
        self.watched.is_over.store(true, Ordering::Relaxed);
    }
}

impl ProcessMeasured {
    /// The first output that differs from that of another process, by name, type, shape or any bit.
    #[must_use]
    pub fn first_difference<'m>(&'m self, other: &Self) -> Option<&'m str> {
        self.first_outputs.first_difference(&other.first_outputs)
    }
}
