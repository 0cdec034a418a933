//! The blocks of a session, and the runs in them: which bytes an allocation gets, and which are given back to the system when.
//!
//! Every run has a block of its own. A run begins where nothing of an earlier run of its thread is live but outputs, and the allocation is
//! the first of a plan. Where outputs are still live, it begins in another block, and the rest of the old one is given back, so a loop that
//! holds the outputs of the run before takes one block and those outputs. When the last buffer that the session allocated while it loaded
//! is freed, the session is gone, and so are its blocks, one with live outputs when the last of them is freed. Nothing tells that a session
//! without such buffers is gone: its blocks are given back when no run used them for a while ([`Blocks::look`]), and when another session
//! loads.

use std::collections::BTreeMap;
use std::ops::Range;

use std::sync::Arc;

use crate::cursor::{Cursor, Plans, Spot};

/// Most blocks of a session. Beyond it, outputs that are held make buffers of later runs stay outside.
const MOST_BLOCKS: usize = 1 << 12;
/// An empty block is given back when so many runs began since its own.
const IDLE_RUNS: u64 = 64;

/// Address space from the system. Bytes that were never written, or were forgotten, take no memory.
pub(crate) trait Memory {
    /// The address of that many bytes, of which the first `expected` are about to be used; `None` where there are none.
    fn map(&self, bytes: usize, expected: usize) -> Option<usize>;
    /// Gives a mapping back.
    fn unmap(&self, start: usize, bytes: usize);
    /// Gives the memory back that the whole pages of these addresses take; their content is lost, they stay mapped.
    fn forget(&self, addresses: Range<usize>);
}

/// What is known of the allocations of sessions. The layout is that of `remat_arena_figures` in C, and only ever grows at its end.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocationCounts {
    /// Runs that began as a plan does.
    pub runs: u64,
    /// Buffers that got their planned offset.
    pub placed: u64,
    /// Buffers that stay outside by plan.
    pub planned_outside: u64,
    /// Buffers that no plan foresees.
    pub missed: u64,
    /// Buffers whose planned bytes were taken.
    pub refused: u64,
    /// Buffers that were allocated while a session loaded.
    pub at_load: u64,
    /// Blocks now.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Most blocks at one time.
    pub most_blocks: u64,
    /// Bytes of runs outside of blocks now.
    pub outside_bytes: u64,
    /// Most bytes of runs outside of blocks at one time.
    pub most_outside_bytes: u64,
}

impl AllocationCounts {
    /// Adds those of another session.
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.placed += other.placed;
        self.planned_outside += other.planned_outside;
        self.missed += other.missed;
        self.refused += other.refused;
        self.at_load += other.at_load;
        self.blocks += other.blocks;
        self.block_bytes = self.block_bytes.max(other.block_bytes);
        self.most_blocks += other.most_blocks;
        self.outside_bytes += other.outside_bytes;
        self.most_outside_bytes += other.most_outside_bytes;
    }
}

/// What a buffer outside of the blocks is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A session allocated it while it loaded.
    Load,
    /// A run that has the block at this address.
    Run(usize),
    /// It lives as long as it likes: an output, or what no plan foresees.
    Free,
}

/// An allocation that the plan did not serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    /// No plan has a buffer of this size at this place, from 0, of a run.
    Missed { place: usize, bytes: u64 },
    /// The planned bytes of the buffer at this place of a run were taken.
    Refused { place: usize, bytes: u64 },
}

/// A thread, by its number.
pub(crate) type Thread = u64;

#[derive(Debug)]
struct Block {
    /// Live buffers: their offsets, sizes, and whether they are outputs.
    live: BTreeMap<u64, (u64, bool)>,
    /// Live buffers of the run that are no outputs, outside of the block, too.
    transient: usize,
    /// The thread whose run is here.
    owner: Option<Thread>,
    cursor: Cursor,
    /// Which run began here last.
    run: u64,
    /// Whether it was empty at the last look, and no run began since.
    was_idle: bool,
}

impl Block {
    fn is_free(&self, offset: u64, bytes: u64) -> bool {
        let below = self.live.range(..offset + bytes).next_back();
        below.is_none_or(|(&start, &(size, _))| start + size <= offset)
    }

    /// Whether the run that was here is over.
    fn is_over(&self, plans: &Plans) -> bool {
        self.transient == 0 && self.cursor.is_over(plans)
    }

    /// Whether nothing is in it, and no run goes on here.
    fn is_idle(&self, plans: &Plans) -> bool {
        self.live.is_empty() && (self.owner.is_none() || self.is_over(plans))
    }
}

/// The blocks of a session, and what it has outside of them.
#[derive(Debug)]
pub(crate) struct Blocks<M> {
    memory: M,
    plans: Arc<Plans>,
    blocks: BTreeMap<usize, Block>,
    /// Size and origin of every live buffer outside.
    outside: BTreeMap<usize, (u64, Origin)>,
    /// Threads on which a session is being loaded.
    loading: Vec<Thread>,
    /// Live buffers that were allocated while a session loaded.
    loaded: usize,
    /// Whether the session is gone.
    is_gone: bool,
    /// The plan that a run completed last.
    preferred: usize,
    /// Whether somebody looks after idle blocks.
    is_watched: bool,
    /// The first allocation that the plans did not serve, until it is told.
    misfit: Option<Misfit>,
    figures: AllocationCounts,
}

impl<M: Memory> Blocks<M> {
    pub(crate) fn new(plans: Arc<Plans>, memory: M) -> Self {
        let figures = AllocationCounts {
            block_bytes: plans.block_bytes(),
            ..AllocationCounts::default()
        };
        Self {
            memory,
            plans,
            blocks: BTreeMap::new(),
            outside: BTreeMap::new(),
            loading: Vec::new(),
            loaded: 0,
            is_gone: false,
            preferred: 0,
            is_watched: false,
            misfit: None,
            figures,
        }
    }

    /// The first allocation that the plans did not serve; once.
    pub(crate) fn take_misfit(&mut self) -> Option<Misfit> {
        self.misfit.take()
    }

    /// Whether somebody has to [`look`](Blocks::look) from now on; said once, until a look says that it was the last one.
    pub(crate) fn asks_for_watch(&mut self) -> bool {
        let asks = !self.is_watched && self.loaded == 0 && !self.blocks.is_empty();
        self.is_watched |= asks;
        asks
    }

    /// Gives the blocks back that were idle at the last look, too, if nothing else would tell that the session is gone. Whether there is
    /// something to look after.
    pub(crate) fn look(&mut self) -> bool {
        self.drop_unused(|block| block.was_idle);
        let plans = &self.plans;
        self.blocks
            .values_mut()
            .for_each(|block| block.was_idle = block.is_idle(plans));
        self.is_watched = self.loaded == 0 && !self.blocks.is_empty();
        self.is_watched
    }

    /// Gives all idle blocks back, if nothing else would tell that the session is gone.
    pub(crate) fn make_room(&mut self) {
        self.drop_unused(|_| true);
    }

    fn drop_unused(&mut self, is_unused: impl Fn(&Block) -> bool) {
        if self.loaded > 0 {
            return;
        }
        let unused = self
            .blocks
            .iter()
            .filter(|(_, block)| block.is_idle(&self.plans) && is_unused(block));
        let unused: Vec<usize> = unused.map(|(&base, _)| base).collect();
        unused.into_iter().for_each(|base| self.unmap(base));
    }

    pub(crate) fn figures(&self) -> AllocationCounts {
        AllocationCounts {
            blocks: self.blocks.len() as u64,
            ..self.figures
        }
    }

    /// A session begins to load on this thread.
    pub(crate) fn load_begins(&mut self, thread: Thread) {
        self.is_gone = false;
        if !self.loading.contains(&thread) {
            self.loading.push(thread);
        }
    }

    /// The session that loads on this thread is loaded.
    pub(crate) fn load_ends(&mut self, thread: Thread) {
        self.loading.retain(|&other| other != thread);
    }

    /// Whether a session is being loaded on this thread.
    pub(crate) fn is_loading(&self, thread: Thread) -> bool {
        self.loading.contains(&thread)
    }

    /// The address of a buffer in a block; or the origin of one that the caller has to allocate elsewhere, and then to [`Blocks::adopt`].
    pub(crate) fn allocate(&mut self, thread: Thread, bytes: u64) -> Result<usize, Origin> {
        if self.is_loading(thread) {
            self.figures.at_load += 1;
            return Err(Origin::Load);
        }
        let Some(base) = self.block_of(thread, bytes) else {
            self.misses(0, bytes);
            return Err(Origin::Free);
        };
        let Some(block) = self.blocks.get_mut(&base) else {
            return Err(Origin::Free);
        };
        let place = block.cursor.place();
        let Some(Spot { offset, is_output }) = block.cursor.advance(&self.plans, bytes) else {
            self.misses(place, bytes);
            return Err(Origin::Free);
        };
        if block.cursor.is_complete(&self.plans) {
            self.preferred = block.cursor.plan();
        }
        let address = match offset {
            Some(offset) if block.is_free(offset, bytes) => {
                block.live.insert(offset, (bytes, is_output));
                self.figures.placed += 1;
                usize::try_from(offset).ok().map(|offset| base + offset)
            }
            Some(_) => {
                if self.figures.refused + self.figures.missed == 0 {
                    self.misfit = Some(Misfit::Refused { place, bytes });
                }
                self.figures.refused += 1;
                None
            }
            None => {
                self.figures.planned_outside += 1;
                None
            }
        };
        block.transient += usize::from(!is_output);
        address.ok_or(if is_output { Origin::Free } else { Origin::Run(base) })
    }

    /// Counts a buffer that no plan has.
    fn misses(&mut self, place: usize, bytes: u64) {
        if self.figures.refused + self.figures.missed == 0 {
            self.misfit = Some(Misfit::Missed { place, bytes });
        }
        self.figures.missed += 1;
    }

    /// Notes a buffer that was allocated outside of the blocks.
    pub(crate) fn adopt(&mut self, address: usize, bytes: u64, origin: Origin) {
        self.outside.insert(address, (bytes, origin));
        if origin == Origin::Load {
            self.loaded += 1;
        } else {
            self.figures.outside_bytes += bytes;
            self.figures.most_outside_bytes = self.figures.most_outside_bytes.max(self.figures.outside_bytes);
        }
    }

    /// Notes a buffer that the session takes from elsewhere and keeps, its weights for instance.
    pub(crate) fn adopt_reserved(&mut self, address: usize, bytes: u64) {
        self.figures.at_load += 1;
        self.adopt(address, bytes, Origin::Load);
    }

    /// Takes a buffer back. Whether it lay in a block; else the caller has to free it.
    pub(crate) fn free(&mut self, address: usize) -> bool {
        if let Some((&base, block)) = self.blocks.range_mut(..=address).next_back()
            && let Ok(offset) = u64::try_from(address - base)
            && offset < self.plans.block_bytes()
        {
            if let Some((_, is_output)) = block.live.remove(&offset) {
                block.transient = block.transient.saturating_sub(usize::from(!is_output));
            }
            if self.is_gone && block.live.is_empty() {
                self.unmap(base);
            }
            return true;
        }
        match self.outside.remove(&address) {
            Some((_, Origin::Load)) => {
                self.loaded = self.loaded.saturating_sub(1);
                if self.loaded == 0 && self.loading.is_empty() {
                    self.leave();
                }
            }
            Some((bytes, origin)) => {
                self.figures.outside_bytes = self.figures.outside_bytes.saturating_sub(bytes);
                if let Origin::Run(base) = origin
                    && let Some(block) = self.blocks.get_mut(&base)
                {
                    block.transient = block.transient.saturating_sub(1);
                }
            }
            None => {}
        }
        false
    }

    /// The session is gone.
    fn leave(&mut self) {
        self.is_gone = true;
        let empty = self.blocks.iter().filter(|(_, block)| block.live.is_empty());
        let empty: Vec<usize> = empty.map(|(&base, _)| base).collect();
        empty.into_iter().for_each(|base| self.unmap(base));
    }

    /// The block of the run that allocates that many bytes on this thread. A run may begin with it.
    fn block_of(&mut self, thread: Thread, bytes: u64) -> Option<usize> {
        let mut owned = self.blocks.iter().filter(|(_, block)| block.owner == Some(thread));
        let Some((&mine, block)) = owned.next() else {
            return self.begin(thread, bytes, None);
        };
        let goes_on =
            block.transient > 0 || !block.cursor.is_over(&self.plans) && block.cursor.expects(&self.plans, bytes);
        if goes_on {
            return Some(mine);
        }
        self.begin(thread, bytes, Some(mine)).or(Some(mine))
    }

    /// Begins a run, if a plan begins with this allocation: in the block that the thread had, in another one that is empty, or in a new one.
    fn begin(&mut self, thread: Thread, bytes: u64, mine: Option<usize>) -> Option<usize> {
        let cursor = self.plans.begin(self.preferred, bytes)?;
        let run = self.figures.runs + 1;
        let chosen = mine.filter(|base| self.blocks.get(base).is_some_and(|block| block.live.is_empty()));
        let chosen = chosen.or_else(|| self.idle()).or_else(|| self.map(&cursor));
        // Without another block, what is live in this one stays, and buffers that need its bytes go elsewhere.
        let chosen = chosen.or(mine)?;
        if let Some(mine) = mine.filter(|&mine| mine != chosen) {
            self.trim(mine);
        }
        let block = self.blocks.get_mut(&chosen)?;
        (block.owner, block.cursor, block.run, block.transient) = (Some(thread), cursor, run, 0);
        block.was_idle = false;
        self.figures.runs = run;
        self.drop_idle(run);
        Some(chosen)
    }

    /// The empty block, of those without a run, that was used last.
    fn idle(&self) -> Option<usize> {
        let idle = self.blocks.iter().filter(|(_, block)| block.is_idle(&self.plans));
        idle.max_by_key(|(_, block)| block.run).map(|(&base, _)| base)
    }

    /// A new block.
    fn map(&mut self, cursor: &Cursor) -> Option<usize> {
        let bytes = usize::try_from(self.plans.block_bytes())
            .ok()
            .filter(|&bytes| bytes > 0)?;
        let expected = usize::try_from(cursor.block_bytes(&self.plans)).map_or(bytes, |expected| expected.min(bytes));
        let base = Some(())
            .filter(|()| self.blocks.len() < MOST_BLOCKS)
            .and_then(|()| self.memory.map(bytes, expected))?;
        let block = Block {
            live: BTreeMap::new(),
            transient: 0,
            owner: None,
            cursor: cursor.clone(),
            run: 0,
            was_idle: false,
        };
        self.blocks.insert(base, block);
        self.figures.most_blocks = self.figures.most_blocks.max(self.blocks.len() as u64);
        Some(base)
    }

    fn unmap(&mut self, base: usize) {
        if self.blocks.remove(&base).is_some()
            && let Ok(bytes) = usize::try_from(self.plans.block_bytes())
        {
            self.memory.unmap(base, bytes);
        }
    }

    /// Leaves a block to the outputs that are live in it.
    fn trim(&mut self, base: usize) {
        let Some(block) = self.blocks.get_mut(&base) else {
            return;
        };
        block.owner = None;
        let mut from = 0;
        let ends = block.live.iter().map(|(&start, &(bytes, _))| (start, start + bytes));
        for (start, end) in ends.chain([(self.plans.block_bytes(), 0)]) {
            if let (Ok(from), Ok(start)) = (usize::try_from(from), usize::try_from(start)) {
                self.memory.forget(base + from..base + start);
            }
            from = end;
        }
    }

    /// Gives empty blocks back that no run needed for long.
    fn drop_idle(&mut self, run: u64) {
        if self.blocks.len() < 2 {
            return;
        }
        let is_old = |block: &Block| block.live.is_empty() && block.run + IDLE_RUNS < run && block.transient == 0;
        let old: Vec<usize> = self
            .blocks
            .iter()
            .filter(|(_, block)| is_old(block))
            .map(|(&base, _)| base)
            .collect();
        old.into_iter().for_each(|base| self.unmap(base));
    }
}
