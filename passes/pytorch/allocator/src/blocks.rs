//! Blocks, their neighbours in a segment, and the pools that free ones wait in.

use std::collections::{BTreeMap, BTreeSet};

use crate::sizes::MOST_SMALL;

/// The number of a block, which another one may get when it is gone.
pub(crate) type Id = usize;

/// What a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// In its pool.
    Free,
    /// A part of a growing segment that the device gave nothing for.
    Unmapped,
    /// Given out.
    Allocated,
    /// Freed, while other streams use it.
    Awaited,
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) stream: u64,
    pub(crate) pool: PoolKey,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// What the program asked for.
    pub(crate) requested: u64,
    pub(crate) state: State,
    /// The neighbours in the segment.
    pub(crate) before: Option<Id>,
    pub(crate) after: Option<Id>,
    /// Where its segment begins, if that grows: pages count from there.
    pub(crate) grows_from: Option<u64>,
    /// Other streams that use it.
    pub(crate) users: BTreeSet<u64>,
    /// How often its pool was searched when it was freed.
    pub(crate) freed_at: u64,
}

impl Block {
    /// Whether it is a part of its segment.
    pub(crate) fn is_split(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }
}

/// Which pool: of the program or of one of its private pools, of small blocks or of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PoolKey {
    pub(crate) private: Option<u64>,
    pub(crate) is_small: bool,
}

impl PoolKey {
    /// That of blocks of this size.
    pub(crate) fn of(private: Option<u64>, bytes: u64) -> Self {
        Self {
            private,
            is_small: bytes <= MOST_SMALL,
        }
    }
}

/// The free blocks of a pool.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// By stream, size and address.
    pub(crate) free: BTreeSet<(u64, u64, u64, Id)>,
    /// What the device gave nothing for, by stream and address.
    pub(crate) unmapped: BTreeSet<(u64, u64, Id)>,
    /// How often it was searched while old blocks are collected.
    pub(crate) searches: u64,
}

/// All blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    slots: Vec<Option<Block>>,
    vacant: Vec<Id>,
    pub(crate) pools: BTreeMap<PoolKey, Pool>,
}

impl Blocks {
    pub(crate) fn get(&self, id: Id) -> &Block {
        self.slots[id].as_ref().expect("a block that is there")
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> &mut Block {
        self.slots[id].as_mut().expect("a block that is there")
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &Block)> {
        let all = self.slots.iter().enumerate();
        all.filter_map(|(id, block)| Some((id, block.as_ref()?)))
    }

    /// A new one, in no pool, between no neighbours that know of it.
    pub(crate) fn add(&mut self, block: Block) -> Id {
        match self.vacant.pop() {
            Some(id) => {
                self.slots[id] = Some(block);
                id
            }
            None => {
                self.slots.push(Some(block));
                self.slots.len() - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<Block> {
        self.vacant.push(id);
        self.slots[id].take()
    }

    pub(crate) fn pool(&mut self, key: PoolKey) -> &mut Pool {
        self.pools.entry(key).or_default()
    }

    /// Puts a block where those of its state wait.
    pub(crate) fn shelve(&mut self, id: Id) {
        let block = self.get(id);
        let (key, stream, bytes, address, state) = (block.pool, block.stream, block.bytes, block.address, block.state);
        let pool = self.pool(key);
        match state {
            State::Free => {
                let searches = pool.searches;
                pool.free.insert((stream, bytes, address, id));
                self.get_mut(id).freed_at = searches;
            }
            State::Unmapped => {
                pool.unmapped.insert((stream, address, id));
            }
            State::Allocated | State::Awaited => {}
        }
    }

    /// Takes it from there.
    pub(crate) fn unshelve(&mut self, id: Id) {
        let block = self.get(id);
        let (key, stream, bytes, address) = (block.pool, block.stream, block.bytes, block.address);
        let pool = self.pool(key);
        pool.free.remove(&(stream, bytes, address, id));
        pool.unmapped.remove(&(stream, address, id));
    }

    /// Cuts a block that is in no pool: the rest, from `bytes` on, becomes a block of its own in the same state, in no pool either.
    pub(crate) fn cut(&mut self, id: Id, bytes: u64) -> Id {
        let block = self.get_mut(id);
        let rest = Block {
            address: block.address + bytes,
            bytes: block.bytes - bytes,
            requested: 0,
            before: Some(id),
            users: BTreeSet::new(),
            ..block.clone()
        };
        block.bytes = bytes;
        let after = block.after;
        let rest = self.add(rest);
        self.get_mut(id).after = Some(rest);
        if let Some(after) = after {
            self.get_mut(after).before = Some(rest);
        }
        rest
    }

    /// Joins the neighbours to a block that is in no pool, as far as they are in the same state.
    pub(crate) fn join_neighbours(&mut self, id: Id) {
        for neighbour in [self.get(id).before, self.get(id).after] {
            let Some(neighbour) = neighbour.filter(|&other| self.get(other).state == self.get(id).state) else {
                continue;
            };
            self.unshelve(neighbour);
            let Some(gone) = self.remove(neighbour) else { continue };
            let block = self.get_mut(id);
            block.bytes += gone.bytes;
            if block.before == Some(neighbour) {
                block.address = gone.address;
                block.before = gone.before;
                if let Some(before) = gone.before {
                    self.get_mut(before).after = Some(id);
                }
            } else {
                block.after = gone.after;
                if let Some(after) = gone.after {
                    self.get_mut(after).before = Some(id);
                }
            }
        }
    }
}
