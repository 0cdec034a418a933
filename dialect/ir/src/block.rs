//! The block of a graph: one piece of memory, and where storages lie in it.

use std::collections::BTreeMap;

use crate::{OpId, StorageId};

/// Memory that a kernel takes on top of operands and results while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workspace {
    /// Its size.
    pub bytes: u64,
    /// Its first byte in the block.
    pub offset: u64,
}

/// A block that results of ops lie in, from the op that makes them or brings them back to the one that frees them or moves them away.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Its size in bytes.
    pub bytes: u64,
    /// Every offset is a multiple of this; at least 1.
    pub alignment: u64,
    /// The first byte of each storage, as its op makes it.
    pub results: BTreeMap<StorageId, u64>,
    /// The first byte of what a `page_in` brings back.
    pub returns: BTreeMap<OpId, u64>,
    /// The workspaces of ops.
    pub workspaces: BTreeMap<OpId, Workspace>,
}
