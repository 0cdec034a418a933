//! Segments that grow: addresses for more than the device has, of which pages are taken as they are needed.

use std::collections::BTreeSet;

use crate::blocks::{Block, Id, PoolKey, State};
use crate::figures::Event;
use crate::memory::Memory;
use crate::sizes::{LARGE_SEGMENT, SMALL_SEGMENT};

impl Memory {
    /// A block of at least so many bytes, in no pool, of a segment that grows for it.
    pub(crate) fn grown_block(&mut self, key: PoolKey, stream: u64, bytes: u64) -> Option<Id> {
        let mut block = self.room_to_grow(key, stream, bytes);
        if self.blocks.get(block).state == State::Unmapped {
            self.map(block, bytes)?;
        }
        while self.blocks.get(block).bytes < bytes {
            let missing = bytes - self.blocks.get(block).bytes;
            let next = self.blocks.get(block).after?;
            self.map(next, missing)?;
            block = next;
        }
        self.blocks.unshelve(block);
        Some(block)
    }

    /// The lowest addresses at which there is room, free or not taken yet; else those of a new segment.
    fn room_to_grow(&mut self, key: PoolKey, stream: u64, bytes: u64) -> Id {
        let pool = self.blocks.pool(key);
        let candidates: Vec<Id> = pool
            .unmapped
            .range((stream, 0, 0)..)
            .take_while(|(of, ..)| *of == stream)
            .map(|&(.., id)| id)
            .collect();
        for candidate in candidates {
            let before = self.blocks.get(candidate).before;
            let start = before.filter(|&id| self.is_room(id)).unwrap_or(candidate);
            let chain = std::iter::successors(Some(start), |&id| self.blocks.get(id).after);
            let room = chain
                .take_while(|&id| self.is_room(id))
                .map(|id| self.blocks.get(id).bytes);
            if room.fold(0, u64::saturating_add) >= bytes {
                return start;
            }
        }
        let page = page(key);
        let addresses = (self.device.total_bytes + self.device.total_bytes / 8).div_ceil(page) * page;
        let address = self.place(addresses);
        let id = self.blocks.add(Block {
            stream,
            pool: key,
            address,
            bytes: addresses,
            requested: 0,
            state: State::Unmapped,
            before: None,
            after: None,
            grows_from: Some(address),
            users: BTreeSet::new(),
            freed_at: 0,
        });
        self.blocks.shelve(id);
        id
    }

    fn is_room(&self, id: Id) -> bool {
        matches!(self.blocks.get(id).state, State::Free | State::Unmapped)
    }

    /// Takes pages for the beginning of a block without any, as far as it reaches, and joins it with free neighbours, in the pool. `None` where the
    /// device has not enough.
    fn map(&mut self, id: Id, wanted: u64) -> Option<()> {
        let block = self.blocks.get(id);
        let page = page(block.pool);
        let bytes = wanted.min(block.bytes).div_ceil(page) * page;
        // Pages may exceed what the settings allow, as in PyTorch.
        if bytes > self.left_on_device() {
            return None;
        }
        self.blocks.unshelve(id);
        if bytes < self.blocks.get(id).bytes {
            let rest = self.blocks.cut(id, bytes);
            self.blocks.shelve(rest);
        }
        let block = self.blocks.get_mut(id);
        block.state = State::Free;
        let address = block.address;
        self.blocks.join_neighbours(id);
        self.blocks.shelve(id);
        self.figures.takes(bytes);
        self.events.push(Event::SegmentMap { address, bytes });
        Some(())
    }

    /// Gives the whole pages of a free block back.
    pub(crate) fn unmap(&mut self, id: Id) {
        let block = self.blocks.get(id);
        let (page, base) = (page(block.pool), block.grows_from.unwrap_or(0));
        let first = block.address - base;
        let (begin, end) = (
            base + first.div_ceil(page) * page,
            base + (first + block.bytes) / page * page,
        );
        if begin >= end {
            return;
        }
        self.blocks.unshelve(id);
        let ahead = begin - self.blocks.get(id).address;
        let id = match ahead {
            0 => id,
            _ => {
                let whole = self.blocks.cut(id, ahead);
                self.blocks.shelve(id);
                whole
            }
        };
        if self.blocks.get(id).bytes > end - begin {
            let rest = self.blocks.cut(id, end - begin);
            self.blocks.shelve(rest);
        }
        self.blocks.get_mut(id).state = State::Unmapped;
        self.blocks.join_neighbours(id);
        self.blocks.shelve(id);
        let bytes = end - begin;
        self.figures.reserved -= bytes;
        self.events.push(Event::SegmentUnmap { address: begin, bytes });
        if !self.blocks.get(id).is_split() {
            self.blocks.unshelve(id);
            self.blocks.remove(id);
        }
    }
}

/// What is taken at a time.
fn page(key: PoolKey) -> u64 {
    if key.is_small { SMALL_SEGMENT } else { LARGE_SEGMENT }
}
