//! Ways to set up the memory of sessions, and what is known of each.

use std::collections::BTreeMap;

use remat_onnxruntime_run::{ExtendStrategy, Measurement, SHARED_ARENA, SharedArena};
use schemars::JsonSchema;
use serde::Serialize;

/// The least that the runtime leaves over of a chunk that it splits.
pub(crate) const GRAIN: u64 = 256;

/// A way to set up the memory of sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Nothing is set: arena and memory pattern on.
    Default,
    /// The memory pattern off.
    PatternOff,
    /// Arena and memory pattern off.
    ArenaOff,
    /// An arena of the environment that grows by what is asked for, the memory pattern off.
    SharedAsRequested,
    /// An arena of the environment whose first region holds all of a run, the memory pattern off.
    SharedFirstRegion,
}

/// What is set in session options, and of the environment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct SettingOptions {
    /// `enable_cpu_mem_arena`.
    pub enable_cpu_mem_arena: bool,
    /// `enable_mem_pattern`.
    pub enable_mem_pattern: bool,
    /// `intra_op_num_threads`: the figures are for so many.
    pub intra_op_num_threads: usize,
    /// `add_session_config_entry`.
    pub config_entries: BTreeMap<&'static str, &'static str>,
    /// `create_and_register_allocator`: the arena of the environment, where there is one.
    pub environment_arena: Option<SharedArena>,
}

/// Bytes that runs take; absent where they are not known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, JsonSchema)]
pub struct SettingBytes {
    /// Most bytes of the heap above the loaded session, in the first run.
    pub heap_first_bytes: Option<u64>,
    /// The same in later runs.
    pub heap_later_bytes: Option<u64>,
    /// By how much the process grows in the first run.
    pub resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub resident_later_bytes: Option<u64>,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SettingTried {
    /// Which it is.
    pub setting: Setting,
    /// What is set.
    pub options: SettingOptions,
    /// What it is predicted to take. Where the C library places buffers, by how much the process grows is not predicted.
    pub predicted: SettingBytes,
    /// What it was measured to take.
    pub measured: SettingBytes,
    /// Median time of a run after the first, in nanoseconds.
    pub median_ns: u64,
}

/// The settings that were tried, and the best of them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SettingsTried {
    /// All of them, the default first.
    pub tried: Vec<SettingTried>,
    /// The one with which the process grows least, as measured.
    pub recommended: Setting,
    /// What makes a session with it, in Python.
    pub python: String,
}

impl SettingsTried {
    /// What was tried of a setting.
    #[must_use]
    pub fn of(&self, setting: Setting) -> Option<&SettingTried> {
        self.tried.iter().find(|tried| tried.setting == setting)
    }
}

impl SettingBytes {
    /// By how much the process grows at most.
    #[must_use]
    pub fn growth(&self) -> Option<u64> {
        Some(self.resident_first_bytes?.max(self.resident_later_bytes?))
    }

    /// What was measured.
    #[must_use]
    pub fn of(measured: &Measurement) -> Self {
        let peaks = measured.peaks.as_ref().ok();
        Self {
            heap_first_bytes: peaks.map(|peaks| peaks.first),
            heap_later_bytes: peaks.and_then(|peaks| peaks.steady),
            resident_first_bytes: measured.resident.map(|resident| resident.first),
            resident_later_bytes: measured.resident.and_then(|resident| resident.later),
        }
    }
}

impl Setting {
    /// All of them, in the order in which they are tried; the default first.
    pub(crate) const ALL: [Self; 5] = [
        Self::Default,
        Self::PatternOff,
        Self::ArenaOff,
        Self::SharedAsRequested,
        Self::SharedFirstRegion,
    ];

    /// What is set; `first_region` is the size of a first region in which all runs fit, if there is one.
    pub(crate) fn options(self, first_region: Option<u64>) -> Option<SettingOptions> {
        let shared = |extend_strategy, initial_chunk_size_bytes| SharedArena {
            extend_strategy,
            initial_chunk_size_bytes,
            max_dead_bytes_per_chunk: GRAIN,
        };
        let environment_arena = match self {
            Self::Default | Self::PatternOff | Self::ArenaOff => None,
            Self::SharedAsRequested => Some(shared(ExtendStrategy::SameAsRequested, None)),
            Self::SharedFirstRegion => Some(shared(ExtendStrategy::NextPowerOfTwo, Some(first_region?))),
        };
        let entries = SHARED_ARENA.into_iter().filter(|_| environment_arena.is_some());
        Some(SettingOptions {
            enable_cpu_mem_arena: self != Self::ArenaOff,
            enable_mem_pattern: self == Self::Default,
            intra_op_num_threads: 1,
            config_entries: entries.collect(),
            environment_arena,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_first_region_that_holds_a_run_that_setting_is_left_out() {
        assert_eq!(Setting::SharedFirstRegion.options(None), None);
        let options = Setting::SharedFirstRegion.options(Some(4096)).expect("there is one");
        assert_eq!(options.config_entries["session.use_env_allocators"], "1");
        assert!(!options.enable_mem_pattern);
    }
}
