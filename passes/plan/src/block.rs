//! The block of a plan: one piece of memory in which every storage has an offset as long as it is resident.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{OpId, PlacementCertificate, StorageId};

/// What the budget bounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The load: the largest sum of bytes that are needed at once.
    #[default]
    Load,
    /// The block that all storages lie in, gaps between them included.
    Block,
}

impl Bound {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The block that a plan's storages lie in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its size.
    pub bytes: u64,
    /// Every offset is a multiple of this; at least 1.
    pub alignment: u64,
    /// Graph outputs lie in the first so many bytes of the block, so that the rest is free when the plan has ended; absent: they lie
    /// anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_bytes: Option<u64>,
    /// What is claimed about the lowest block for this plan; absent in plans written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PlacementCertificate>,
}

/// What takes bytes of the block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resident {
    /// A storage: from the step that creates it or brings it back to the step that frees it or moves it away. What a run makes of a
    /// storage that is resident takes bytes of its own during that step.
    Storage(StorageId),
    /// The workspace of the op that runs, during that step.
    Workspace(OpId),
}

/// Where one interval of residency lies. A step and what becomes resident at it name an interval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedInterval {
    /// Position of the step at which the interval begins, from 0.
    pub step: usize,
    /// What becomes resident.
    pub what: Resident,
    /// Its first byte in the block.
    pub offset: u64,
}

/// A block, and where each interval of residency of a plan lies in it. Only the checker says whether it is a valid one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockPlacement {
    /// The block.
    pub block: Block,
    /// The places, ascending.
    pub intervals: Vec<PlacedInterval>,
}

impl BlockPlacement {
    /// The places at a step.
    pub fn at(&self, step: usize) -> &[PlacedInterval] {
        let from = self.intervals.partition_point(|placed| placed.step < step);
        let rest = &self.intervals[from..];
        &rest[..rest.partition_point(|placed| placed.step == step)]
    }
}
