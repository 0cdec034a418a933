//! What a run with the memory arena off takes anew from the system: pages that the C library gave back before, each of which costs a fault.
//!
//! glibc's rules, with the fine print left out: a request beyond a threshold is mapped apart and unmapped when it goes, which raises the
//! threshold to its size (at most 32 MiB); all others come out of one heap, best fit first, and the end of that heap is given back once
//! twice the threshold is free there. So a process whose memory goes up and down by much takes pages anew in every run, others in the
//! first one only.
//!
//! Source: `malloc/malloc.c`.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::control::{Patterns, steps_within};
use crate::events::{Event, heap_bytes};
use crate::steps::Step;
use crate::{Allocation, NodeIndex, Program, ValueId};

/// The threshold of a new process.
const FIRST_THRESHOLD: u64 = 128 << 10;
/// It rises no further.
const LAST_THRESHOLD: u64 = 32 << 20;
/// What a block that is mapped apart has before it, and its grain.
const HEADER: u64 = 16;
const PAGE: u64 = 4096;
/// Runs until each takes what the one before it took.
const RUNS: usize = 3;

/// Bytes that a later run takes anew from the system with the memory arena off. `order` and `allocation` are as for
/// [`heap`](crate::heap()).
#[must_use]
pub fn fresh_bytes(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> u64 {
    let steps = steps_within(program, order, allocation, Patterns::Off);
    let mut library = Malloc::default();
    let mut fresh = 0;
    for _ in 0..RUNS {
        let before = library.fresh;
        run(program, &steps, &mut library);
        fresh = library.fresh - before;
    }
    fresh
}

fn run(program: &Program, steps: &[Step], library: &mut Malloc) {
    let mut results: BTreeMap<ValueId, Block> = BTreeMap::new();
    for step in steps {
        let mut create = |library: &mut Malloc, value: ValueId| {
            results.insert(value, library.take(program.values[value].bytes.unwrap_or(0)));
        };
        if let Some(inner) = &step.inner {
            let mut pieces: FxHashMap<usize, Block> = FxHashMap::default();
            for event in &inner.events {
                match *event {
                    Event::Take(piece, bytes) => {
                        pieces.insert(piece, library.take(bytes));
                    }
                    Event::Give(piece) => pieces.remove(&piece).into_iter().for_each(|block| library.give(block)),
                    Event::Create(value) => create(library, value),
                    Event::Hold(_) | Event::Drop(_) => {}
                }
            }
        } else {
            step.created.iter().for_each(|&value| create(library, value));
            let piece = step.workspace / step.pieces.max(1);
            let taken: Vec<Block> = (0..step.pieces).map(|_| library.take(piece)).collect();
            taken.into_iter().for_each(|block| library.give(block));
        }
        for value in &step.released {
            results.remove(value).into_iter().for_each(|block| library.give(block));
        }
    }
    results.into_values().for_each(|block| library.give(block));
}

/// Memory that was handed out.
#[derive(Clone, Copy, Debug)]
enum Block {
    /// None.
    Empty,
    /// Mapped apart.
    Mapped(u64),
    /// From an address of the heap on.
    Heap(u64, u64),
}

/// The C library.
struct Malloc {
    threshold: u64,
    /// Bytes that may be free at the end of the heap.
    spare: u64,
    /// End of what is handed out of the heap.
    top: u64,
    /// End of the pages that the heap has.
    end: u64,
    /// Free chunks below `top` by size, and by address with their size.
    by_size: BTreeSet<(u64, u64)>,
    by_address: BTreeMap<u64, u64>,
    /// Bytes taken from the system so far.
    fresh: u64,
}

impl Default for Malloc {
    fn default() -> Self {
        Self {
            threshold: FIRST_THRESHOLD,
            spare: FIRST_THRESHOLD,
            top: 0,
            end: 0,
            by_size: BTreeSet::new(),
            by_address: BTreeMap::new(),
            fresh: 0,
        }
    }
}

impl Malloc {
    fn take(&mut self, bytes: u64) -> Block {
        let bytes = heap_bytes(bytes);
        if bytes == 0 {
            return Block::Empty;
        }
        if bytes >= self.threshold {
            // Whole pages, with room for a header: more than was asked for.
            let pages = bytes.saturating_add(HEADER).next_multiple_of(PAGE);
            self.fresh = self.fresh.saturating_add(pages);
            return Block::Mapped(pages);
        }
        if let Some(&(size, address)) = self.by_size.range((bytes, 0)..).next() {
            self.remove(address, size);
            if size > bytes {
                self.insert(address + bytes, size - bytes);
            }
            return Block::Heap(address, bytes);
        }
        let address = self.top;
        self.top += bytes;
        if self.top > self.end {
            self.fresh = self.fresh.saturating_add(self.top - self.end);
            self.end = self.top;
        }
        Block::Heap(address, bytes)
    }

    fn give(&mut self, block: Block) {
        match block {
            Block::Empty => {}
            Block::Mapped(bytes) => {
                if bytes > self.threshold && bytes <= LAST_THRESHOLD {
                    self.threshold = bytes;
                    self.spare = 2 * bytes;
                }
            }
            Block::Heap(mut address, mut size) => {
                if let Some((&before, &length)) = self.by_address.range(..address).next_back()
                    && before + length == address
                {
                    self.remove(before, length);
                    (address, size) = (before, size + length);
                }
                if let Some(&length) = self.by_address.get(&(address + size)) {
                    self.remove(address + size, length);
                    size += length;
                }
                if address + size < self.top {
                    self.insert(address, size);
                    return;
                }
                self.top = address;
                if self.end - self.top >= self.spare {
                    self.end = self.top;
                }
            }
        }
    }

    fn insert(&mut self, address: u64, size: u64) {
        self.by_size.insert((size, address));
        self.by_address.insert(address, size);
    }

    fn remove(&mut self, address: u64, size: u64) {
        self.by_size.remove(&(size, address));
        self.by_address.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Bytes taken anew by the last of three runs, each of which takes and gives back blocks of these sizes in MiB, all at once.
    fn anew(sizes: &[u64]) -> u64 {
        let mut library = Malloc::default();
        let mut last = 0;
        for _ in 0..3 {
            let before = library.fresh;
            let blocks: Vec<Block> = sizes.iter().map(|&size| library.take(size * MIB)).collect();
            blocks.into_iter().rev().for_each(|block| library.give(block));
            last = library.fresh - before;
        }
        last / MIB
    }

    #[test]
    fn what_fits_into_twice_the_largest_block_stays_with_the_process() {
        assert_eq!(anew(&[8]), 0);
        assert_eq!(anew(&[8, 7]), 0);
        assert_eq!(anew(&[8, 7, 7]), 22);
    }

    #[test]
    fn the_largest_blocks_are_mapped_every_time() {
        assert_eq!(anew(&[33]), 33);
        assert_eq!(anew(&[33, 1]), 33);
        assert_eq!(anew(&[32, 30]), 32);
    }

    #[test]
    fn gaps_are_filled_before_the_heap_grows() {
        let mut library = Malloc::default();
        let kib = |library: &mut Malloc, size: u64| library.take(size << 10);
        let blocks: Vec<Block> = [60, 40, 60].map(|size| kib(&mut library, size)).to_vec();
        let before = library.fresh;
        library.give(blocks[1]);
        library.give(blocks[0]);
        kib(&mut library, 90);
        assert_eq!(library.fresh, before);
        kib(&mut library, 90);
        assert!(library.fresh > before);
    }
}
