//! Bytes of buffers and of runs.

use crate::lines::MOST_BYTES;

/// Bytes that a run needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Need {
    /// From the start of its block.
    pub(crate) block: u64,
    /// At one time outside of it.
    pub(crate) outside: u64,
}

impl Need {
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            block: self.block.max(other.block),
            outside: self.outside.max(other.outside),
        }
    }

    pub(crate) fn total(self) -> u64 {
        self.block.saturating_add(self.outside)
    }
}

/// A size in bytes; nothing where it is not positive, `None` where it is larger than any memory.
pub(crate) fn bytes(value: i128) -> Option<u64> {
    u64::try_from(value.max(0)).ok().filter(|&bytes| bytes <= MOST_BYTES)
}
