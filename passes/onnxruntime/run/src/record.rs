//! The buffers of a run, as the runtime allocates and frees them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use remat_onnxruntime_arena::RecordedEvent;
use serde::{Deserialize, Serialize};

use crate::planned::{ArenaLibrary, Loaded};
use crate::runner::{Runner, Task};
use crate::{Runtime, RuntimeError, SessionSettings};

/// Seed of the inputs.
const SEED: u64 = 0;
/// The runs that are recorded: kernels may set up something in the first one.
const RUNS: usize = 3;

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

/// Runs of a model that were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// Name and shape of every input.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// The runs, one after the other.
    pub runs: Vec<RecordedRun>,
}

/// Runs a model in a process of its own, and records what the runtime allocates in each run. `settings` name the arena library.
///
/// # Errors
/// [`RuntimeError`]; [`RuntimeError::ArenaLibrary`] if the library cannot be loaded.
pub fn record(runner: &Runner<'_>, model: &Path, settings: &SessionSettings) -> Result<Recording, RuntimeError> {
    let task = Task::Record {
        model: model.to_owned(),
    };
    runner.ask(settings, task)
}

/// The child's part of [`record`].
pub(crate) fn record_here(
    runtime: &Runtime,
    model: &Path,
    settings: &SessionSettings,
) -> Result<Recording, RuntimeError> {
    let mut loaded = runtime.open(model, settings)?;
    let library = ArenaLibrary::loaded(settings)?;
    let feed = loaded.seeded(SEED)?;
    let inputs = feed.iter().map(|(name, value)| (name.clone(), value.shape().to_vec()));
    let inputs = inputs.collect();
    library.events();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let outputs = loaded.run(&feed)?;
        runs.push(run_of(&library.events()));
        drop(outputs);
        // What is freed now belongs to no run.
        library.events();
    }
    Ok(Recording { inputs, runs })
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
