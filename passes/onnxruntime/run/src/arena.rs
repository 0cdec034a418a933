//! What a provider's arena states of itself: bytes in use, and the most there were.

use std::ffi::CStr;

use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;

use crate::Provider;

/// The arena of a session's provider.
pub(crate) struct Arena {
    allocator: Allocator,
}

/// Its figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArenaStats {
    /// Bytes that are handed out.
    pub(crate) in_use: i64,
    /// Bytes of its regions.
    pub(crate) held: i64,
    /// Most bytes that ever were.
    pub(crate) max_in_use: i64,
}

impl Arena {
    /// The arena of the provider's device; an explanation where there is none.
    pub(crate) fn of(session: &Session, provider: Provider) -> Result<Self, String> {
        let (device, number) = match provider {
            Provider::Cpu => (AllocationDevice::CPU, 0),
            Provider::Cuda(number) => (AllocationDevice::CUDA, number),
        };
        let info = MemoryInfo::new(device, number, AllocatorType::Arena, MemoryType::Default);
        let info = info.map_err(|error| error.to_string())?;
        let allocator = Allocator::new(session, info).map_err(|error| error.to_string())?;
        let arena = Self { allocator };
        arena.stats()?;
        Ok(arena)
    }

    /// The figures now.
    #[expect(unsafe_code, reason = "statistics are had through the runtime's C interface only")]
    pub(crate) fn stats(&self) -> Result<ArenaStats, String> {
        let api = ort::api();
        let mut pairs = std::ptr::null_mut();
        // SAFETY: the allocator lives as long as `self`; the call sets `pairs` to a list that is ours to release, or returns a status
        // that is ours to release. Keys are C strings, and values live until the list is released.
        unsafe {
            let status = (api.AllocatorGetStats)(self.allocator.ptr(), &raw mut pairs);
            if !status.0.is_null() {
                let why = CStr::from_ptr((api.GetErrorMessage)(status.0))
                    .to_string_lossy()
                    .into_owned();
                (api.ReleaseStatus)(status.0);
                return Err(why);
            }
            let number = |key: &CStr| {
                let value = (api.GetKeyValue)(pairs, key.as_ptr());
                if value.is_null() {
                    return Err(format!("the allocator does not state `{}`", key.to_string_lossy()));
                }
                let text = CStr::from_ptr(value).to_string_lossy();
                text.parse::<i64>().map_err(|error| format!("`{text}`: {error}"))
            };
            let stats = number(c"InUse").and_then(|in_use| {
                Ok(ArenaStats {
                    in_use,
                    held: number(c"TotalAllocated")?,
                    max_in_use: number(c"MaxInUse")?,
                })
            });
            (api.ReleaseKeyValuePairs)(pairs);
            stats
        }
    }
}
