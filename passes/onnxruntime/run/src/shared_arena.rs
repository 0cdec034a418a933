//! An arena of the process's environment, which sessions may take in the place of their own.

use std::ffi::CStr;
use std::ptr::null_mut;

use ort::AsPointer;
use ort::environment::Environment;
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an arena of the environment is set up (`OrtArenaCfg`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SharedArena {
    /// How it grows.
    pub extend_strategy: ExtendStrategy,
    /// Size of its first region in bytes, for [`ExtendStrategy::NextPowerOfTwo`]; later regions have at least that size.
    pub initial_chunk_size_bytes: Option<u64>,
    /// A free chunk is split where more than these bytes would be left over.
    pub max_dead_bytes_per_chunk: u64,
}

/// How an arena grows (`arena_extend_strategy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtendStrategy {
    /// By regions whose sizes double: `0`.
    NextPowerOfTwo,
    /// By what is asked for: `1`.
    SameAsRequested,
}

impl SharedArena {
    /// What differs from the runtime's own settings, by the runtime's names.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'static str, u64)> {
        let strategy = match self.extend_strategy {
            ExtendStrategy::NextPowerOfTwo => 0,
            ExtendStrategy::SameAsRequested => 1,
        };
        let initial = self.initial_chunk_size_bytes;
        let initial = initial.map(|bytes| ("initial_chunk_size_bytes", bytes));
        [("arena_extend_strategy", strategy)]
            .into_iter()
            .chain(initial)
            .chain([("max_dead_bytes_per_chunk", self.max_dead_bytes_per_chunk)])
            .collect()
    }

    /// Makes this the arena that later sessions take which ask for the environment's.
    #[expect(
        unsafe_code,
        reason = "arenas of the environment are had through the runtime's C interface only"
    )]
    pub(crate) fn register(&self, environment: &Environment) -> Result<(), String> {
        let info = MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Arena, MemoryType::Default);
        let info = info.map_err(|error| error.to_string())?;
        let entries = self.entries().into_iter().map(|(name, value)| {
            let name = std::ffi::CString::new(name).map_err(|error| error.to_string())?;
            let value = usize::try_from(value).map_err(|error| error.to_string())?;
            Ok((name, value))
        });
        let entries: Vec<_> = entries.collect::<Result<_, String>>()?;
        let names: Vec<_> = entries.iter().map(|(name, _)| name.as_ptr()).collect();
        let values: Vec<usize> = entries.iter().map(|(_, value)| *value).collect();
        let api = ort::api();
        let mut settings = null_mut();
        // SAFETY: names and values are as many as is stated, and live as long as the call; it sets `settings` to what is ours to release, or
        // returns a status that is. The environment copies the settings, and takes no hold of the description of the memory.
        unsafe {
            let created = (api.CreateArenaCfgV2)(names.as_ptr(), values.as_ptr(), names.len(), &raw mut settings);
            outcome(created)?;
            let registered =
                (api.CreateAndRegisterAllocator)(environment.ptr().cast_mut(), info.ptr(), settings.cast_const());
            (api.ReleaseArenaCfg)(settings);
            outcome(registered)
        }
    }
}

/// What a status says, which is released.
///
/// # Safety
/// It is a status of the runtime, which nobody else releases.
#[expect(unsafe_code, reason = "a status is read through the runtime's C interface only")]
unsafe fn outcome(status: ort::sys::OrtStatusPtr) -> Result<(), String> {
    if status.0.is_null() {
        return Ok(());
    }
    let api = ort::api();
    // SAFETY: the status is not null; its message is a C string that lives until it is released.
    unsafe {
        let why = CStr::from_ptr((api.GetErrorMessage)(status.0))
            .to_string_lossy()
            .into_owned();
        (api.ReleaseStatus)(status.0);
        Err(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_names_of_the_runtime_and_leave_out_what_is_not_said() {
        let mut arena = SharedArena {
            extend_strategy: ExtendStrategy::SameAsRequested,
            initial_chunk_size_bytes: None,
            max_dead_bytes_per_chunk: 256,
        };
        assert_eq!(
            arena.entries(),
            [("arena_extend_strategy", 1), ("max_dead_bytes_per_chunk", 256)]
        );
        arena.extend_strategy = ExtendStrategy::NextPowerOfTwo;
        arena.initial_chunk_size_bytes = Some(1 << 20);
        assert_eq!(
            arena.entries(),
            [
                ("arena_extend_strategy", 0),
                ("initial_chunk_size_bytes", 1 << 20),
                ("max_dead_bytes_per_chunk", 256)
            ]
        );
    }
}
