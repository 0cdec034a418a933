//! Counts, and what happened.

use serde::{Deserialize, Serialize};

/// What is allocated and reserved, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Figures {
    /// In blocks that are given out.
    pub allocated: u64,
    /// Most of that at one time.
    pub allocated_peak: u64,
    /// Asked for, of blocks that are given out or that streams still use.
    pub requested: u64,
    /// Most of that at one time.
    pub requested_peak: u64,
    /// Taken from the device.
    pub reserved: u64,
    /// Most of that at one time.
    pub reserved_peak: u64,
    /// How often something was taken from the device.
    pub segments_taken: u64,
}

impl Figures {
    pub(crate) fn gives(&mut self, bytes: u64, requested: u64) {
        self.allocated += bytes;
        self.allocated_peak = self.allocated_peak.max(self.allocated);
        self.requested += requested;
        self.requested_peak = self.requested_peak.max(self.requested);
    }

    pub(crate) fn takes(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.reserved_peak = self.reserved_peak.max(self.reserved);
        self.segments_taken += 1;
    }
}

/// What the allocator does, as PyTorch's records of it have it (`torch.cuda.memory._record_memory_history`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A segment is taken from the device.
    SegmentAlloc {
        /// Where.
        address: u64,
        /// How large.
        bytes: u64,
    },
    /// A segment goes back.
    SegmentFree {
        /// Where.
        address: u64,
        /// How large.
        bytes: u64,
    },
    /// A segment grows.
    SegmentMap {
        /// Where.
        address: u64,
        /// By how much.
        bytes: u64,
    },
    /// Pages of a growing segment go back.
    SegmentUnmap {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// A block is given out.
    Alloc {
        /// Where.
        address: u64,
        /// What was asked for.
        bytes: u64,
    },
}

/// A segment with its blocks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Segment {
    /// Where it begins.
    pub address: u64,
    /// How large it is, what nothing was taken for left out.
    pub bytes: u64,
    /// The stream whose blocks it has.
    pub stream: u64,
    /// Its blocks in order.
    pub blocks: Vec<SegmentBlock>,
}

/// A block of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentBlock {
    /// How large it is.
    pub bytes: u64,
    /// Whether it is given out, or streams still use it.
    pub is_active: bool,
}
