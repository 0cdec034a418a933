//! The arena library in this process: what it recorded, and what it counted.

use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};

use libloading::Library;
use remat_onnxruntime_arena::{AllocationCounts, RecordedEvent, WeightUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arena library, and what a session does with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ArenaLibrary {
    /// The library's file.
    pub library: PathBuf,
    /// The plans that the session follows; without them it records.
    pub plan: Option<PathBuf>,
    /// Where it records: whether the memory pattern stays as the session sets it; else it is turned off.
    pub keeps_pattern: bool,
}

/// How a session followed its plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArenaFigures {
    /// Runs that began as a plan does.
    pub runs: u64,
    /// Buffers that got their planned offset.
    pub placed: u64,
    /// Buffers that no plan foresees.
    pub missed: u64,
    /// Buffers whose planned bytes were taken.
    pub refused: u64,
    /// Bytes of the block.
    pub block_bytes: u64,
    /// Most blocks at one time.
    pub most_blocks: u64,
    /// Bytes that loading had left in the heap, and the first run returned.
    pub returned_bytes: u64,
}

impl From<AllocationCounts> for ArenaFigures {
    fn from(figures: AllocationCounts) -> Self {
        Self {
            runs: figures.runs,
            placed: figures.placed,
            missed: figures.missed,
            refused: figures.refused,
            block_bytes: figures.block_bytes,
            most_blocks: figures.most_blocks,
            returned_bytes: figures.returned_bytes,
        }
    }
}

/// A part of the file of the weights that a run read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RecordedWeight {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The library, which a session of this process has loaded.
pub(crate) struct Loaded {
    stats: unsafe extern "C" fn(i64, *mut AllocationCounts, usize) -> usize,
    events: unsafe extern "C" fn(usize, *mut RecordedEvent, usize) -> usize,
    begin_weights: unsafe extern "C" fn(*const c_char),
    weights: unsafe extern "C" fn(*mut WeightUse, usize) -> usize,
    /// Keeps the functions above.
    _library: Library,
}

/// So many events are read at once.
const EVENTS: usize = 4096;
/// Most parts of the file of the weights that a run is seen to read.
const MOST_WEIGHTS: usize = 1 << 16;

impl Loaded {
    /// The library at this path.
    #[expect(unsafe_code, reason = "functions of a library are found by name only")]
    pub(crate) fn find(path: &Path) -> Result<Self, String> {
        // SAFETY: the runtime has loaded the library already, so that no code of its start runs here; the functions have these types, because
        // the library was made by this program.
        unsafe {
            let library = Library::new(path).map_err(|error| error.to_string())?;
            Ok(Self {
                stats: *library.get(b"remat_arena_stats\0").map_err(|error| error.to_string())?,
                events: *library
                    .get(b"remat_arena_events\0")
                    .map_err(|error| error.to_string())?,
                begin_weights: *library
                    .get(b"remat_arena_weights_begin\0")
                    .map_err(|error| error.to_string())?,
                weights: *library
                    .get(b"remat_arena_weights\0")
                    .map_err(|error| error.to_string())?,
                _library: library,
            })
        }
    }

    /// The figures of the first session options of this process that the library was registered in.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn figures(&self) -> ArenaFigures {
        let mut figures = AllocationCounts::default();
        // SAFETY: it writes no more than it is told there is room for.
        unsafe { (self.stats)(0, &raw mut figures, size_of::<AllocationCounts>()) };
        figures.into()
    }

    /// From now on it is recorded which parts of this file are read.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn begin_weights(&self, file: &Path) {
        if let Ok(file) = CString::new(file.as_os_str().as_encoded_bytes()) {
            // SAFETY: the text ends in a zero.
            unsafe { (self.begin_weights)(file.as_ptr()) }
        }
    }

    /// What was read since, in the order in which each part was begun; that ends it.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn weights(&self) -> Vec<RecordedWeight> {
        let mut parts = vec![WeightUse { offset: 0, bytes: 0 }; MOST_WEIGHTS];
        // SAFETY: there is room for so many.
        let found = unsafe { (self.weights)(parts.as_mut_ptr(), MOST_WEIGHTS) };
        let part = |&WeightUse { offset, bytes }: &WeightUse| RecordedWeight { offset, bytes };
        parts.iter().take(found).map(part).collect()
    }

    /// What those options recorded since the last call.
    #[expect(unsafe_code, reason = "a function of another library")]
    pub(crate) fn events(&self) -> Vec<RecordedEvent> {
        let none = RecordedEvent {
            address: 0,
            bytes: 0,
            thread: 0,
        };
        let mut events = Vec::new();
        loop {
            let start = events.len();
            events.resize(start + EVENTS, none);
            // SAFETY: there is room for so many.
            let found = unsafe { (self.events)(0, events[start..].as_mut_ptr(), EVENTS) };
            events.truncate(start + found);
            if found < EVENTS {
                return events;
            }
        }
    }
}
