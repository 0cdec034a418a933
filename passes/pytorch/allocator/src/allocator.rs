//! Allocating and freeing.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::blocks::{Block, Id, PoolKey, State};
use crate::figures::{Event, Figures, Segment, SegmentBlock};
use crate::memory::{Device, MOST_BYTES, Memory};
use crate::settings::{Settings, SettingsError};
use crate::sizes::{LARGE_SEGMENT, LEAST_BLOCK, MOST_SMALL, rounded, taken};

/// The device has not enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "out of memory: {requested} bytes were asked for, {reserved} are reserved, of which {allocated} are given out, and {free} are left"
)]
pub struct OutOfMemory {
    /// What was asked for, in bytes.
    pub requested: u64,
    /// What is reserved.
    pub reserved: u64,
    /// What is given out.
    pub allocated: u64,
    /// What the device has left.
    pub free: u64,
}

/// The program did what it must not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Misuse {
    /// Nothing is given out there.
    #[error("nothing is allocated at {0:#x}")]
    NotAllocated(u64),
    /// Nothing that was freed there is waited for.
    #[error("nothing is waited for at {0:#x}")]
    NotAwaited(u64),
}

/// A device's allocator.
#[derive(Debug)]
pub struct Allocator {
    pub(crate) memory: Memory,
    /// Blocks that are given out, by where they are.
    given: BTreeMap<u64, Id>,
    /// Blocks that were freed while streams use them.
    awaited: BTreeMap<u64, Id>,
}

impl Allocator {
    /// That of a device from which nothing is taken yet.
    #[must_use]
    pub fn new(settings: Settings, device: Device) -> Self {
        Self {
            memory: Memory::new(settings, device),
            given: BTreeMap::new(),
            awaited: BTreeMap::new(),
        }
    }

    /// The same with settings as the environment variable has them.
    ///
    /// # Errors
    /// Those of [`Settings::parse`].
    pub fn with_text(settings: &str, device: Device) -> Result<Self, SettingsError> {
        Ok(Self::new(Settings::parse(settings)?, device))
    }

    /// What is allocated and reserved.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.memory.figures
    }

    /// What happened since this was last called, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.memory.events)
    }

    /// Peaks begin anew at what is there now, as with `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peaks(&mut self) {
        let now = self.memory.figures;
        (self.memory.figures.allocated_peak, self.memory.figures.requested_peak) = (now.allocated, now.requested);
        self.memory.figures.reserved_peak = now.reserved;
    }

    /// Gives out a block for work of a stream, from a private pool (of a CUDA graph, or `torch.cuda.MemPool`) or the program's own; its address.
    ///
    /// # Errors
    /// [`OutOfMemory`] where the device has not enough, even after all that can go back went back.
    pub fn malloc(&mut self, requested: u64, stream: u64, private: Option<u64>) -> Result<u64, OutOfMemory> {
        let bytes = rounded(&self.memory.settings, requested);
        if bytes > MOST_BYTES {
            return Err(self.out_of_memory(requested));
        }
        let key = PoolKey::of(private, bytes);
        let found = match self.free_block(key, stream, bytes) {
            Some(found) => Some(found),
            None => {
                self.memory.collect();
                self.new_block(key, stream, bytes)
            }
        };
        let found = match found {
            None if self.memory.release_oversized(key, stream, bytes) => self.new_block(key, stream, bytes),
            found => found,
        };
        let found = match found {
            None => {
                self.empty_cache();
                self.new_block(key, stream, bytes)
            }
            found => found,
        };
        let block = found.ok_or_else(|| self.out_of_memory(requested))?;
        if self.is_worth_splitting(block, bytes) {
            let rest = self.memory.blocks.cut(block, bytes);
            self.memory.blocks.shelve(rest);
        }
        let given = self.memory.blocks.get_mut(block);
        (given.state, given.requested) = (State::Allocated, requested);
        let (address, bytes) = (given.address, given.bytes);
        self.given.insert(address, block);
        self.memory.figures.gives(bytes, requested);
        self.memory.events.push(Event::Alloc {
            address,
            bytes: requested,
        });
        Ok(address)
    }

    fn out_of_memory(&self, requested: u64) -> OutOfMemory {
        OutOfMemory {
            requested,
            reserved: self.memory.figures.reserved,
            allocated: self.memory.figures.allocated,
            free: self.left(),
        }
    }

    /// Another stream uses what lies at an address.
    ///
    /// # Errors
    /// [`Misuse`] where nothing is given out there.
    pub fn record_stream(&mut self, address: u64, stream: u64) -> Result<(), Misuse> {
        let id = *self.given.get(&address).ok_or(Misuse::NotAllocated(address))?;
        let block = self.memory.blocks.get_mut(id);
        if block.stream != stream {
            block.users.insert(stream);
        }
        Ok(())
    }

    /// Frees what lies at an address. What other streams use comes back later, by [`Self::complete`].
    ///
    /// # Errors
    /// [`Misuse`] where nothing is given out there.
    pub fn free(&mut self, address: u64) -> Result<(), Misuse> {
        let id = self.given.remove(&address).ok_or(Misuse::NotAllocated(address))?;
        self.memory.figures.allocated -= self.memory.blocks.get(id).bytes;
        if self.memory.blocks.get(id).users.is_empty() {
            self.take_back(id);
        } else {
            self.memory.blocks.get_mut(id).state = State::Awaited;
            self.awaited.insert(address, id);
        }
        Ok(())
    }

    /// Streams have done what they did with something that was freed.
    ///
    /// # Errors
    /// [`Misuse`] where nothing is waited for at the address.
    pub fn complete(&mut self, address: u64) -> Result<(), Misuse> {
        let id = self.awaited.remove(&address).ok_or(Misuse::NotAwaited(address))?;
        self.take_back(id);
        Ok(())
    }

    /// Gives all back to the device that can go, as `torch.cuda.empty_cache` does, after waiting for all streams.
    pub fn empty_cache(&mut self) {
        let awaited: Vec<u64> = self.awaited.keys().copied().collect();
        for address in awaited {
            if let Some(id) = self.awaited.remove(&address) {
                self.take_back(id);
            }
        }
        self.memory.release_all();
    }

    /// What the device has left for the allocator.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.memory.left()
    }

    /// The segments, by address.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        let begins = |block: &Block| match block.before {
            None => true,
            Some(before) => self.memory.blocks.get(before).state == State::Unmapped,
        };
        let all = self.memory.blocks.iter();
        let heads = all.filter(|(_, block)| block.state != State::Unmapped && begins(block));
        let mut segments: Vec<Segment> = heads.map(|(id, _)| self.segment(id)).collect();
        segments.sort_unstable_by_key(|segment| segment.address);
        segments
    }

    fn segment(&self, head: Id) -> Segment {
        let (address, stream) = (
            self.memory.blocks.get(head).address,
            self.memory.blocks.get(head).stream,
        );
        let next = |&id: &Id| self.memory.blocks.get(id).after;
        let chain = std::iter::successors(Some(head), next).map(|id| self.memory.blocks.get(id));
        let mapped = chain.take_while(|block| block.state != State::Unmapped);
        let blocks: Vec<SegmentBlock> = mapped
            .map(|block| SegmentBlock {
                bytes: block.bytes,
                is_active: block.state != State::Free,
            })
            .collect();
        Segment {
            address,
            bytes: blocks.iter().map(|block| block.bytes).sum(),
            stream,
            blocks,
        }
    }

    /// Puts a block that nobody uses any more into its pool, joined with its free neighbours.
    fn take_back(&mut self, id: Id) {
        let block = self.memory.blocks.get_mut(id);
        self.memory.figures.requested -= block.requested;
        (block.state, block.requested) = (State::Free, 0);
        block.users = BTreeSet::new();
        self.memory.blocks.join_neighbours(id);
        self.memory.blocks.shelve(id);
    }

    /// The best of the free blocks, taken from its pool: the smallest that is large enough.
    fn free_block(&mut self, key: PoolKey, stream: u64, bytes: u64) -> Option<Id> {
        let counts = self.memory.settings.allowed_bytes.is_some() && self.memory.settings.collection_permille > 0;
        let pool = self.memory.blocks.pool(key);
        pool.searches += u64::from(counts);
        let pool = &self.memory.blocks.pools[&key];
        let mut fitting = pool
            .free
            .range((stream, bytes, 0, 0)..)
            .take_while(|(of, ..)| *of == stream);
        let mut best = fitting.next()?.3;
        if self.memory.settings.expandable_segments {
            // What can grow counts as large as it can become.
            for &(.., other) in fitting {
                if self.memory.blocks.get(best).grows_from.is_none() || self.reach(other) >= self.reach(best) {
                    break;
                }
                best = other;
            }
        }
        let (size, most) = (self.memory.blocks.get(best).bytes, self.memory.settings.max_split());
        // What is not split is for requests that need it, and nearly all of it.
        let is_too_large = bytes < most && size >= most || bytes >= most && size >= bytes.saturating_add(LARGE_SEGMENT);
        if is_too_large {
            return None;
        }
        self.memory.blocks.unshelve(best);
        Some(best)
    }

    /// How large a free block is with what its segment can grow by after it.
    fn reach(&self, id: Id) -> u64 {
        let block = self.memory.blocks.get(id);
        let after = block.after.map(|after| self.memory.blocks.get(after));
        let room = after.filter(|after| after.state == State::Unmapped);
        block.bytes + room.map_or(0, |room| room.bytes)
    }

    fn is_worth_splitting(&self, id: Id, bytes: u64) -> bool {
        let block = self.memory.blocks.get(id);
        let rest = block.bytes - bytes;
        if block.pool.is_small || self.memory.settings.expandable_segments {
            rest >= LEAST_BLOCK
        } else {
            bytes < self.memory.settings.max_split() && rest > MOST_SMALL
        }
    }

    /// A block that is taken from the device, in no pool.
    fn new_block(&mut self, key: PoolKey, stream: u64, bytes: u64) -> Option<Id> {
        let whole = taken(bytes);
        if self
            .memory
            .settings
            .allowed_bytes
            .is_some_and(|allowed| self.memory.figures.reserved + whole > allowed)
        {
            return None;
        }
        if self.memory.settings.expandable_segments {
            return self.memory.grown_block(key, stream, bytes);
        }
        if whole > self.left() {
            return None;
        }
        let address = self.memory.place(whole);
        self.memory.figures.takes(whole);
        self.memory.events.push(Event::SegmentAlloc { address, bytes: whole });
        Some(self.memory.blocks.add(Block {
            stream,
            pool: key,
            address,
            bytes: whole,
            requested: 0,
            state: State::Free,
            before: None,
            after: None,
            grows_from: None,
            users: BTreeSet::new(),
            freed_at: 0,
        }))
    }
}

#[cfg(test)]
#[path = "allocator_tests.rs"]
mod tests;
