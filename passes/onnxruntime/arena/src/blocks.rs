//! The blocks of a session, and the runs in them: which bytes an allocation gets, and which are given back to the system when.
//!
//! Every run has a block of its own. A run begins where nothing of an earlier run of its thread is live but outputs, and the allocation is
//! the first of a plan. Where outputs are still live, it begins in another block, and the rest of the old one is given back, so a loop that
//! holds the outputs of the run before takes one block and those outputs. When the last buffer that the session allocated while it loaded
//! is freed, the session is gone, and so are its blocks, one with live outputs when the last of them is freed. Nothing tells that a session
//! without such buffers is gone: its blocks are given back when no run used them for a while ([`Blocks::look`]), and when another session
//! loads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use std::sync::Arc;

use crate::cursor::{Cursor, Spot};
use crate::plans::{Known, Plans};

/// Most blocks of a session. Beyond it, outputs that are held make buffers of later runs stay outside.
const MOST_BLOCKS: usize = 1 << 12;
/// An empty block is given back when so many runs began since its own.
const IDLE_RUNS: u64 = 64;
/// Most sizes of which it is kept that no run begins with them.
const MOST_UNKNOWN: usize = 1 << 12;
/// Pages of a block go back that none of so many runs in a row needed: of every so many, it is looked at what they needed.
const WINDOW: u64 = 8;

/// Address space from the system. Bytes that were never written, or were forgotten, take no memory.
pub(crate) trait Memory {
    /// The address of that many bytes; `None` where there are none.
    fn map(&self, bytes: usize) -> Option<usize>;
    /// All of these bytes of a mapping are about to be used.
    fn expect(&self, addresses: Range<usize>);
    /// Gives a mapping back.
    fn unmap(&self, start: usize, bytes: usize);
    /// Gives the memory back that the whole pages of these addresses take; their content is lost, they stay mapped. They are no longer expected
    /// to be used.
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
    /// Bytes of the largest block that the plans may need.
    pub block_bytes: u64,
    /// Most blocks at one time.
    pub most_blocks: u64,
    /// Bytes of runs outside of blocks now.
    pub outside_bytes: u64,
    /// Most bytes of runs outside of blocks at one time.
    pub most_outside_bytes: u64,
    /// Bytes of blocks that runs wrote to and that were not given back, at most.
    pub used_bytes: u64,
    /// Most such bytes at one time.
    pub most_used_bytes: u64,
    /// Shapes whose offsets are kept.
    pub shapes: u64,
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
        self.used_bytes += other.used_bytes;
        self.most_used_bytes += other.most_used_bytes;
        self.shapes += other.shapes;
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
    /// Its size.
    bytes: u64,
    /// Live buffers by offset.
    live: BTreeMap<u64, Live>,
    /// Live buffers of the run that are no outputs, outside of the block, too.
    transient: usize,
    /// The thread whose run is here.
    owner: Option<Thread>,
    cursor: Cursor,
    /// Which run began here last.
    run: u64,
    /// Whether it was empty at the last look, and no run began since.
    was_idle: bool,
    pages: Pages,
}

/// A live buffer.
#[derive(Clone, Copy, Debug)]
struct Live {
    bytes: u64,
    is_output: bool,
    /// The run that allocated it, and which buffer of its plan it is.
    run: u64,
    place: usize,
}

/// How far the bytes of a block are in use, from its start.
#[derive(Clone, Copy, Default, Debug)]
struct Pages {
    /// Written to, and not given back.
    used: u64,
    /// Expected to be used.
    expected: u64,
    /// By the last run.
    last: u64,
    /// By the runs of this window.
    window: u64,
    /// How many these are.
    runs: u64,
}

impl Pages {
    /// A run begins; up to where the bytes are kept, if others go back now.
    fn begin(&mut self) -> Option<u64> {
        self.last = 0;
        if self.runs < WINDOW {
            self.runs += 1;
            return None;
        }
        let needed = self.window;
        (self.runs, self.window) = (1, 0);
        (needed < self.used).then_some(needed)
    }

    /// Bytes up to here are used.
    fn use_to(&mut self, end: u64) {
        self.used = self.used.max(end);
        self.last = self.last.max(end);
        self.window = self.window.max(end);
    }
}

impl Block {
    fn is_free(&self, offset: u64, bytes: u64) -> bool {
        let below = self.live.range(..offset.saturating_add(bytes)).next_back();
        below.is_none_or(|(&start, live)| start + live.bytes <= offset)
    }

    /// Whether the run that was here is over.
    fn is_over(&self, plans: &Plans) -> bool {
        self.transient == 0 && self.cursor.is_over(plans)
    }

    /// Whether nothing is in it, and no run goes on here.
    fn is_idle(&self, plans: &Plans) -> bool {
        self.live.is_empty() && (self.owner.is_none() || self.is_over(plans))
    }

    /// Live buffers of the run that is here, and where they lie.
    fn of_run(&self) -> Vec<(usize, u64)> {
        let mine = self.live.iter().filter(|(_, live)| live.run == self.run);
        mine.map(|(&offset, live)| (live.place, offset)).collect()
    }

    /// Gives the bytes from an offset on back, but for those of live buffers.
    fn forget_from(&mut self, base: usize, keep: u64, memory: &impl Memory) {
        let mut from = keep;
        let ends = self.live.iter().map(|(&start, live)| (start, start + live.bytes));
        for (start, end) in ends.chain([(self.bytes, 0)]) {
            if let (Ok(from), Ok(start)) = (usize::try_from(from), usize::try_from(start))
                && from < start
            {
                memory.forget(base + from..base + start);
            }
            from = from.max(end);
        }
        let kept = self
            .live
            .last_key_value()
            .map_or(0, |(&start, live)| start + live.bytes);
        self.pages.used = self.pages.used.min(keep.max(kept));
        self.pages.expected = self.pages.expected.min(keep);
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
    /// The shapes of runs that were completed.
    known: Known,
    /// Sizes with which no run begins.
    unknown: BTreeSet<u64>,
    /// Whether somebody looks after idle blocks.
    is_watched: bool,
    /// Whether a block has pages that its last run did not need.
    has_unused_pages: bool,
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
            known: Known::default(),
            unknown: BTreeSet::new(),
            is_watched: false,
            has_unused_pages: false,
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
        let asks = !self.is_watched && (self.has_unused_pages || self.loaded == 0 && !self.blocks.is_empty());
        self.is_watched |= asks;
        asks
    }

    /// Gives back what nobody needed since the last look: blocks, if nothing else would tell that the session is gone, else pages beyond those
    /// of the last run. Whether there is something to look after.
    pub(crate) fn look(&mut self) -> bool {
        self.drop_unused(|block| block.was_idle);
        let (plans, memory) = (&self.plans, &self.memory);
        self.has_unused_pages = false;
        for (&base, block) in &mut self.blocks {
            let is_idle = block.is_idle(plans);
            if is_idle && block.was_idle && block.pages.last < block.pages.used {
                block.forget_from(base, block.pages.last, memory);
            }
            block.was_idle = is_idle;
            self.has_unused_pages |= block.pages.last < block.pages.used;
        }
        self.is_watched = self.has_unused_pages || self.loaded == 0 && !self.blocks.is_empty();
        self.is_watched
    }

    /// Gives back all pages in which nothing is live, of blocks in which no run goes on.
    pub(crate) fn trim(&mut self) {
        for (&base, block) in &mut self.blocks {
            if block.owner.is_none() || block.is_over(&self.plans) {
                block.forget_from(base, 0, &self.memory);
            }
        }
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
            used_bytes: self.used_bytes(),
            shapes: self.known.iter().count() as u64,
            ..self.figures
        }
    }

    fn used_bytes(&self) -> u64 {
        self.blocks.values().map(|block| block.pages.used).sum()
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
        let found = block.cursor.find(&self.plans, &self.known, bytes);
        if found == Some(true) {
            let live = block.of_run();
            block.cursor.keep(&self.plans, &live);
        }
        let spot = found.and_then(|_| block.cursor.advance(&self.plans, bytes));
        let Some(Spot {
            place,
            offset,
            is_output,
        }) = spot
        else {
            let place = block.cursor.place();
            self.misses(place, bytes);
            return Err(Origin::Free);
        };
        let used = block.pages.used;
        let address = match offset {
            Some(offset) if block.is_free(offset, bytes) && offset.saturating_add(bytes) <= block.bytes => {
                block.live.insert(
                    offset,
                    Live {
                        bytes,
                        is_output,
                        run: block.run,
                        place,
                    },
                );
                let end = offset + bytes;
                if end > block.pages.expected {
                    let expected = block.cursor.block_bytes().clamp(end, block.bytes);
                    if let [Ok(from), Ok(to)] = [block.pages.expected, expected].map(usize::try_from) {
                        self.memory.expect(base + from..base + to);
                    }
                    block.pages.expected = expected;
                }
                block.pages.use_to(end);
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
        if block.cursor.is_complete() {
            self.known.used(block.cursor.shape());
            self.has_unused_pages |= block.pages.last < block.pages.used;
        }
        if block.pages.used > used {
            self.figures.most_used_bytes = self.figures.most_used_bytes.max(self.used_bytes());
        }
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
            && offset < block.bytes
        {
            if let Some(live) = block.live.remove(&offset) {
                block.transient = block.transient.saturating_sub(usize::from(!live.is_output));
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
        if self.unknown.contains(&bytes) {
            return None;
        }
        let Some(cursor) = Cursor::begin(&self.plans, &self.known, bytes) else {
            if self.unknown.len() >= MOST_UNKNOWN {
                self.unknown.clear();
            }
            self.unknown.insert(bytes);
            return None;
        };
        let run = self.figures.runs + 1;
        let chosen = mine.filter(|base| self.blocks.get(base).is_some_and(|block| block.live.is_empty()));
        let chosen = chosen.or_else(|| self.idle()).or_else(|| self.map(&cursor));
        // Without another block, what is live in this one stays, and buffers that need its bytes go elsewhere.
        let chosen = chosen.or(mine)?;
        if let Some(mine) = mine.filter(|&mine| mine != chosen)
            && let Some(block) = self.blocks.get_mut(&mine)
        {
            // It is left to the outputs that are live in it.
            block.owner = None;
            block.forget_from(mine, 0, &self.memory);
        }
        let block = self.blocks.get_mut(&chosen)?;
        if let Some(keep) = block.pages.begin() {
            block.forget_from(chosen, keep, &self.memory);
        }
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

    /// A new block: as large as any run may need, or if there is no room for that, as this one needs.
    fn map(&mut self, cursor: &Cursor) -> Option<usize> {
        if self.blocks.len() >= MOST_BLOCKS {
            return None;
        }
        let sizes = [self.plans.block_bytes(), cursor.block_bytes()]
            .into_iter()
            .filter(|&bytes| bytes > 0);
        let mapped = |bytes: u64| Some((self.memory.map(usize::try_from(bytes).ok()?)?, bytes));
        let (base, bytes) = sizes.into_iter().find_map(mapped)?;
        let block = Block {
            bytes,
            live: BTreeMap::new(),
            transient: 0,
            owner: None,
            cursor: cursor.clone(),
            run: 0,
            was_idle: false,
            pages: Pages::default(),
        };
        self.blocks.insert(base, block);
        self.figures.most_blocks = self.figures.most_blocks.max(self.blocks.len() as u64);
        Some(base)
    }

    fn unmap(&mut self, base: usize) {
        if let Some(block) = self.blocks.remove(&base)
            && let Ok(bytes) = usize::try_from(block.bytes)
        {
            self.memory.unmap(base, bytes);
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
