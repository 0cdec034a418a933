//! Runs models in ONNX Runtime, loaded at run time from a shared library.
//!
//! The only crate that reaches the runtime. It builds without it: the library is named when [`Runtime::load`] is called, and
//! [`Host::find`] looks for it in given surroundings.
//!
//! | question | answer |
//! |---|---|
//! | what does the runtime make of a model? | [`optimize`] writes the model that it optimized |
//! | what does a run take: memory, time, bits? | [`measure()`], in a process of its own |
//! | is one model slower than another? | [`compare_time`] runs them in turns |
//! | where do two models differ? | [`compare_bits`]; all of this at once: [`compare_models`] |
//! | how far, where they may round otherwise? | [`compare_close`] |
//! | what does each node take? | [`profile()`] |
//! | what does it allocate, in which order? | [`record()`] |
//! | what does a process take that loads a model and runs it? | [`measure_process`] |
//!
//! Measuring happens in a child process, the program itself started with a subcommand that calls [`serve`]: it is started with a
//! heap meter (`meter/heap_meter.rs`), and may run out of memory without harm.

mod arena;
mod child;
mod closeness;
mod compare;
mod error;
mod events;
mod host;
mod inputs;
mod ledger;
mod measure;
mod meter;
mod optimize;
mod output;
mod planned;
mod process;
mod profile;
mod record;
mod resident;
mod runner;
mod second_memory;
mod session;
mod settings;
mod shared_arena;
mod sizes;
mod time;
mod verify;
mod version;
mod walk;

pub use child::serve;
pub use closeness::{CloseFault, Closeness, InputCloseness, OutputCloseness, compare_close};
pub use compare::{OutputDifference, TimeComparison, compare_bits, compare_time};
pub use error::RuntimeError;
pub use events::{ProfiledNode, ProfiledOutput};
pub use host::Host;
pub use inputs::{InputKind, InputTensor};
pub use ledger::{ProcessMeasured, measure_process};
pub use measure::{Measurement, OutputDigest, Peaks, SeededOutputs, measure};
pub use meter::LIBRARY as HEAP_METER;
pub use optimize::{optimize, optimize_and_pack, optimize_without_blocks};
pub use output::Output;
pub use planned::{ArenaFigures, ArenaLibrary, RecordedWeight};
pub use process::{ChildCommand, ChildLimits, Ended, ask, die_with};
pub use profile::{ProfileInputs, ProfileOptions, RunProfile, profile};
pub use record::{Recorded, RecordedBuffer, RecordedRun, Recording, record};
pub use remat_files::Surroundings;
pub use resident::{Resident, available_bytes};
pub use runner::Runner;
pub use second_memory::needs_arena_library;
pub use session::{Runtime, SHARED_ARENA, run_seeded};
pub use settings::{
    CloseOptions, CompareSizes, LedgerOptions, MeasureOptions, OptimizationLevel, PairOptions, Provider, RecordOptions,
    SessionSettings, Sizes,
};
pub use shared_arena::{ExtendStrategy, SharedArena};
pub use sizes::{SIZES_AS_RUNS, SizeComparison, SizeOutcome, SizesCompared, compare_sizes, dims_text};
pub use verify::{ModelComparison, compare_models};
pub use walk::complete_ranges;
