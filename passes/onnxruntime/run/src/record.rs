//! The buffers of runs, as the runtime allocates and frees them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use remat_onnxruntime_arena::RecordedEvent;
use serde::{Deserialize, Serialize};

use crate::planned::{ArenaLibrary, Loaded, RecordedWeight};
use crate::runner::{Runner, Task};
use crate::walk::{Dims, complete_ranges, walk};
use crate::{RecordOptions, Runtime, RuntimeError, SessionSettings};

/// Seed of the inputs.
const SEED: u64 = 0;
/// The runs of the first shape that are recorded: kernels may set up something in the first one.
const FIRST_RUNS: usize = 2;

/// Where time is short, no more shapes are tried once the model did not run with so many.
const MOST_FAILED: usize = 64;

/// A buffer of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedBuffer {
    /// Its size as the runtime asks for it.
    pub bytes: u64,
    /// When it is allocated; times count the allocations and frees of the run.
    pub first: u64,
    /// When it is freed; `None` where it is live when the run ends, as outputs are.
    pub last: Option<u64>,
}

/// What the runtime allocates in a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedRun {
    /// In the order of their allocation.
    pub buffers: Vec<RecordedBuffer>,
    /// The time at its end.
    pub end: u64,
    /// How many threads allocated.
    pub threads: usize,
}

/// Runs of one shape that were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The sizes of the dimensions that the model leaves open.
    pub dims: Dims,
    /// Name and shape of every input.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// The runs, one after the other: several of the first shape, one of each other.
    pub runs: Vec<RecordedRun>,
    /// What the last of them read of the file of the weights, in the order in which it began to.
    #[serde(default)]
    pub weights: Vec<RecordedWeight>,
}

/// What a session does at several shapes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// The dimensions that the model leaves open: its names for them, or `INPUT[AXIS]`.
    pub open: BTreeSet<String>,
    /// The shapes that were run, in their order.
    pub recordings: Vec<Recording>,
    /// Shapes with which the model does not run, and the words of the runtime.
    pub failed: Vec<(Dims, String)>,
}

/// Runs a model in a process of its own, in one session, and records what the runtime allocates in each run: first with the sizes of the
/// settings, then with others. `settings` name the arena library.
///
/// # Errors
/// [`RuntimeError`]; [`RuntimeError::ArenaLibrary`] if the library cannot be loaded.
pub fn record(
    runner: &Runner<'_>,
    model: &Path,
    settings: &SessionSettings,
    options: &RecordOptions,
) -> Result<Recorded, RuntimeError> {
    let task = Task::Record {
        model: model.to_owned(),
        options: options.clone(),
    };
    runner.ask(settings, task)
}

/// The child's part of [`record`].
pub(crate) fn record_here(
    runtime: &Runtime,
    model: &Path,
    settings: &SessionSettings,
    options: &RecordOptions,
) -> Result<Recorded, RuntimeError> {
    let mut loaded = runtime.open(model, settings)?;
    let library = ArenaLibrary::loaded(settings)?;
    let mut recorded = Recorded {
        open: loaded.open_dims(),
        recordings: Vec::new(),
        failed: Vec::new(),
    };
    let first: Dims = recorded
        .open
        .iter()
        .map(|name| (name.clone(), settings.dims.get(name).copied().unwrap_or(1)))
        .collect();
    let ranges = complete_ranges(&options.ranges, &recorded.open, &first);
    let mut start = Instant::now();
    let mut error = None;
    let mut run = |shape: &Dims| {
        let is_first = recorded.recordings.is_empty();
        let is_enough = recorded.recordings.len() >= options.least.max(1) || recorded.failed.len() >= MOST_FAILED;
        if is_enough && options.time.is_some_and(|most| start.elapsed() >= most) {
            return None;
        }
        let mut dims = settings.dims.clone();
        dims.extend(shape.clone());
        loaded.set_dims(dims.clone());
        let runs = if is_first { FIRST_RUNS } else { 1 };
        match runs_of(&mut loaded, &library, runs, options.weights.as_deref()) {
            Ok(ran) => recorded.recordings.push(Recording { dims, ..ran }),
            Err(failure) if is_first => {
                error = Some(failure);
                return None;
            }
            Err(failure) => {
                recorded.failed.push((dims, failure.to_string()));
                return Some(false);
            }
        }
        if is_first {
            start = Instant::now();
        }
        Some(true)
    };
    if options.walks {
        walk(&ranges, &first, &mut run);
    } else {
        run(&first);
    }
    for other in &options.others {
        if run(other).is_none() {
            break;
        }
    }
    error.map_or(Ok(recorded), Err)
}

/// Some runs on inputs of the present sizes; of a file of weights, what the last of them reads.
fn runs_of(
    loaded: &mut crate::session::Loaded,
    library: &Loaded,
    runs: usize,
    weights: Option<&Path>,
) -> Result<Recording, RuntimeError> {
    let feed = loaded.seeded(SEED)?;
    let inputs = feed.iter().map(|(name, value)| (name.clone(), value.shape().to_vec()));
    let mut recording = Recording {
        dims: Dims::new(),
        inputs: inputs.collect(),
        runs: Vec::new(),
        weights: Vec::new(),
    };
    for _ in 0..runs {
        // What is freed between runs belongs to none.
        library.events();
        if let Some(file) = weights {
            library.begin_weights(file);
        }
        let outputs = loaded.run(&feed);
        recording.weights = library.weights();
        let outputs = outputs?;
        recording.runs.push(run_of(&library.events()));
        drop(outputs);
    }
    Ok(recording)
}

impl ArenaLibrary {
    /// The library of a session that was made with these settings.
    pub(crate) fn loaded(settings: &SessionSettings) -> Result<Loaded, RuntimeError> {
        let path = settings.arena_library.as_ref().map(|arena| arena.library.clone());
        let path = path.unwrap_or_default();
        Loaded::find(&path).map_err(|why| RuntimeError::ArenaLibrary { path, why })
    }
}

/// The buffers that were allocated among these events.
fn run_of(events: &[RecordedEvent]) -> RecordedRun {
    let mut live = BTreeMap::new();
    let mut buffers: Vec<RecordedBuffer> = Vec::new();
    let mut threads = BTreeSet::new();
    for (time, event) in (0..).zip(events) {
        if event.bytes > 0 {
            threads.insert(event.thread);
            live.insert(event.address, buffers.len());
            buffers.push(RecordedBuffer {
                bytes: event.bytes,
                first: time,
                last: None,
            });
        } else if let Some(buffer) = live.remove(&event.address) {
            buffers[buffer].last = Some(time);
        }
    }
    RecordedRun {
        buffers,
        end: events.len() as u64,
        threads: threads.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_lives_from_its_allocation_to_its_free_and_addresses_are_used_again() {
        let event = |address, bytes| RecordedEvent {
            address,
            bytes,
            thread: 1,
        };
        // Freed before it was seen to be allocated: an output of an earlier run.
        let events = [
            event(9, 0),
            event(5, 8),
            event(5, 0),
            event(5, 16),
            event(6, 4),
            event(6, 0),
        ];
        let buffer = |bytes, first, last| RecordedBuffer { bytes, first, last };
        let expected = [buffer(8, 1, Some(2)), buffer(16, 3, None), buffer(4, 4, Some(5))];
        let run = run_of(&events);
        assert_eq!(run.buffers, expected);
        assert_eq!((run.end, run.threads), (6, 1));
    }
}
