//! What happens to memory while one node runs.

use rustc_hash::FxHashMap;

use crate::ValueId;

/// Something that happens to memory while a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A piece of memory comes, of so many bytes.
    Take(usize, u64),
    /// A piece goes.
    Give(usize),
    /// Tables of the runtime beside the arena grow by so many bytes.
    Hold(u64),
    /// They shrink.
    Drop(u64),
    /// A result of the node comes.
    Create(ValueId),
}

/// All that happens while a node runs its subgraphs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inner {
    /// What happens. Every piece that is taken is given back, every one of the node's buffers is created once.
    pub(crate) events: Vec<Event>,
    /// How many pieces are taken; they are numbered from 1.
    pub(crate) pieces: usize,
    /// Whether sizes in the subgraphs are missing, which count as nothing.
    pub(crate) is_open: bool,
}

/// Bytes on the heap for a tensor of `bytes` bytes: whole cache lines, and what the C library keeps beside them; an empty
/// tensor takes none.
#[must_use]
pub fn heap_bytes(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    bytes.div_ceil(64).saturating_mul(64).saturating_add(8)
}

/// The most bytes held while a node runs its subgraphs, which starts with `held` bytes. `result` gives the bytes of a result.
pub(crate) fn most(inner: &Inner, mut held: u64, result: impl Fn(ValueId) -> u64) -> u64 {
    let mut pieces: FxHashMap<usize, u64> = FxHashMap::default();
    let mut most = held;
    for event in &inner.events {
        match *event {
            Event::Take(piece, bytes) => {
                pieces.insert(piece, heap_bytes(bytes));
                held = held.saturating_add(heap_bytes(bytes));
            }
            Event::Give(piece) => held = held.saturating_sub(pieces.remove(&piece).unwrap_or(0)),
            Event::Hold(bytes) => held = held.saturating_add(bytes),
            Event::Drop(bytes) => held = held.saturating_sub(bytes),
            Event::Create(value) => held = held.saturating_add(result(value)),
        }
        most = most.max(held);
    }
    most
}
