//! The blocks of a session, and the runs in them: which bytes an allocation gets, and which are given back to the system when.
//!
//! Every run has a block of its own. A run begins where nothing of an earlier run of its thread is live but outputs, and the allocation is
//! the first of a plan. Where outputs are still live, it begins in another block, and the rest of the old one is given back, so a loop that
//! holds the outputs of the run before takes one block and those outputs. When the last buffer that the session allocated while it loaded
//! is freed, the session is gone, and so are its blocks, one with live outputs when the last of them is freed. Nothing tells that a session
//! without such buffers is gone: its blocks are given back when no run used them for a while ([`Blocks::look`]), and when another session
//! loads.
//!
//! What a run needs is reserved in the ledger of the process before the run uses it, from its first buffer on, or where its shape is not
//! certain then, from the first one with which it is. It stays reserved while a buffer is live that is no output; after that, the pages that the
//! block keeps, and what the run left outside, count with their own bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::account::{Account, Credit, Denied, Turn};
use crate::block::{Block, Live};
use crate::counts::AllocationCounts;
use crate::cursor::{Cursor, Spot};
use crate::ledger::Thread;
use crate::pages::Memory;
use crate::plans::{Known, Plans};

/// Most blocks of a session. Beyond it, outputs that are held make buffers of later runs stay outside.
const MOST_BLOCKS: usize = 1 << 12;
/// An empty block is given back when so many runs began since its own.
const IDLE_RUNS: u64 = 64;
/// Most sizes of which it is kept that no run begins with them.
const MOST_UNKNOWN: usize = 1 << 12;

/// What a buffer outside of the blocks is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A session allocated it while it loaded.
    Load,
    /// The plan of a run has it, which has the block at this address.
    Run { block: usize, run: u64, is_output: bool },
    /// No plan foresees it; it lives as long as it likes. This thread allocated it.
    Unforeseen(Thread),
}

/// Why a buffer does not lie in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Elsewhere {
    /// The caller has to allocate it elsewhere, and then to [`Blocks::adopt`] it.
    Outside(Origin),
    /// The caller has to wait for what is requested, and then to try again with it; or to [refuse](Blocks::refuse) it.
    Denied(Denied),
}

/// An allocation that the plan did not serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    /// No plan has a buffer of this size at this place, from 0, of a run.
    Missed { place: usize, bytes: u64 },
    /// The planned bytes of the buffer at this place of a run were taken.
    Refused { place: usize, bytes: u64 },
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
    account: Account,
    figures: AllocationCounts,
}

impl<M: Memory> Blocks<M> {
    pub(crate) fn new(plans: Arc<Plans>, memory: M, account: Account) -> Self {
        let figures = AllocationCounts {
            block_bytes: plans.block_bytes(),
            limit_bytes: account.most_bytes.unwrap_or(0),
            ..AllocationCounts::default()
        };
        Self {
            account,
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
            if is_idle
                && block.was_idle
                && let Some(keep) = block.pages.left()
            {
                block.forget_from(base, keep, memory);
            }
            block.was_idle = is_idle;
            self.has_unused_pages |= block.pages.unused().is_some();
        }
        self.settle_all();
        self.is_watched = self.has_unused_pages || self.loaded == 0 && !self.blocks.is_empty();
        self.is_watched
    }

    /// The heap gave back so many bytes that loading had left.
    pub(crate) fn count_returned(&mut self, bytes: u64) {
        self.figures.returned_bytes += bytes;
    }

    /// Gives back all pages that neither a live buffer nor a run that goes on needs; how many bytes that were.
    pub(crate) fn trim(&mut self) -> u64 {
        let before = self.used_bytes();
        for (&base, block) in &mut self.blocks {
            block.trim(base, &self.memory);
        }
        self.settle_all();
        before.saturating_sub(self.used_bytes())
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
            reserved_bytes: self.account.reserved().0,
            most_reserved_bytes: self.account.reserved().1,
            ..self.figures
        }
    }

    fn used_bytes(&self) -> u64 {
        self.blocks.values().map(|block| block.pages.bytes()).sum()
    }

    /// Runs of this session no longer wait for others; what does not fit is refused.
    pub(crate) fn never_wait(&mut self) {
        self.account.waits = false;
    }

    /// Whether they wait.
    pub(crate) fn waits(&self) -> bool {
        self.account.waits
    }

    /// An allocation waited for so long.
    pub(crate) fn count_wait(&mut self, time: Duration) {
        self.figures.waits += 1;
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.figures.waiting_nanoseconds = self.figures.waiting_nanoseconds.saturating_add(nanoseconds);
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

    /// The address of a buffer in a block. What was granted for it is taken from the credit; the caller [declines](Blocks::decline) the rest.
    pub(crate) fn allocate(&mut self, thread: Thread, bytes: u64, credit: &mut Credit) -> Result<usize, Elsewhere> {
        if self.is_loading(thread) {
            self.figures.at_load += 1;
            return Err(Elsewhere::Outside(Origin::Load));
        }
        let Some(base) = self.block_of(thread, bytes) else {
            return Err(self.allocate_unforeseen(thread, 0, bytes, credit));
        };
        let Some(block) = self.blocks.get_mut(&base) else {
            return Err(self.allocate_unforeseen(thread, 0, bytes, credit));
        };
        let found = block.cursor.find(&self.plans, &self.known, bytes);
        if found == Some(true) {
            let live = block.of_run();
            block.cursor.keep(&self.plans, &live);
        }
        let Some(spot) = found.and_then(|_| block.cursor.spot(&self.plans)) else {
            let place = block.cursor.place();
            return Err(self.allocate_unforeseen(thread, place, bytes, credit));
        };
        let planned = match self.memory.is_shared() {
            true => match block.shared_offset(spot, credit) {
                Ok(offset) => offset,
                Err(denied) => return Err(Elsewhere::Denied(denied)),
            },
            false => spot.offset,
        };
        let is_in = |&offset: &u64| block.is_free(offset, bytes) && offset.saturating_add(bytes) <= block.bytes;
        let offset = planned.filter(is_in);
        block
            .reserve(&self.plans, &mut self.account, thread, offset, bytes, credit)
            .map_err(Elsewhere::Denied)?;
        let is_refused = planned.is_some() && offset.is_none();
        if is_refused && self.figures.refused + self.figures.missed == 0 {
            let place = spot.place;
            self.misfit = Some(Misfit::Refused { place, bytes });
        }
        self.figures.refused += u64::from(is_refused);
        self.figures.planned_outside += u64::from(planned.is_none());
        self.figures.placed += u64::from(offset.is_some());
        self.put(base, spot, offset, bytes)
    }

    /// Puts a buffer into a block, or beside it where it has no offset.
    fn put(&mut self, base: usize, spot: Spot, offset: Option<u64>, bytes: u64) -> Result<usize, Elsewhere> {
        let Spot { place, is_output, .. } = spot;
        let Some(block) = self.blocks.get_mut(&base) else {
            return Err(Elsewhere::Outside(Origin::Load));
        };
        let (run, used) = (block.run, block.pages.bytes());
        block.cursor.advance(&self.plans, spot, bytes);
        block.transient += usize::from(!is_output);
        if let Some(offset) = offset {
            let live = Live {
                bytes,
                is_output,
                run,
                place,
            };
            block.live.insert(offset, live);
            let end = offset + bytes;
            if end > block.pages.expected() {
                let expected = block.cursor.block_bytes().clamp(end, block.bytes);
                if let Some((from, to)) = block.pages.expect_to(expected)
                    && let [Ok(from), Ok(to)] = [from, to].map(usize::try_from)
                {
                    self.memory.expect(base + from..base + to);
                }
            }
            block.pages.use_to(end);
        } else {
            block.outside = block.outside.saturating_add(bytes);
        }
        let (is_complete, grew) = (block.cursor.is_complete(), block.pages.bytes() > used);
        if is_complete && block.transient == 0 {
            block.rest(base, &self.memory, &mut self.account);
        } else {
            block.settle(&mut self.account);
        }
        if is_complete {
            self.known.used(block.cursor.shape());
            self.has_unused_pages |= block.pages.unused().is_some();
        }
        if grew {
            self.figures.most_used_bytes = self.figures.most_used_bytes.max(self.used_bytes());
        }
        let address = offset
            .and_then(|offset| usize::try_from(offset).ok())
            .map(|offset| base + offset);
        address.ok_or(Elsewhere::Outside(Origin::Run {
            block: base,
            run,
            is_output,
        }))
    }

    /// Counts and reserves a buffer that no plan has.
    fn allocate_unforeseen(&mut self, thread: Thread, place: usize, bytes: u64, credit: &mut Credit) -> Elsewhere {
        let holds = self.blocks.values().any(|block| block.share.holder == Some(thread));
        if let Err(denied) = self.account.reserve_unforeseen(thread, bytes, holds, credit) {
            return Elsewhere::Denied(denied);
        }
        self.misses(place, bytes);
        Elsewhere::Outside(Origin::Unforeseen(thread))
    }

    /// Hands back what was granted and not used.
    pub(crate) fn decline(&self, credit: Credit) {
        if credit.turn == Some(Turn::Taken) {
            self.memory.leave();
        }
        self.account.decline(credit);
    }

    /// The run of a thread is ended: it cannot have what it needs.
    pub(crate) fn refuse(&mut self, thread: Thread) {
        self.figures.refused_runs += 1;
        for block in self.blocks.values_mut().filter(|block| block.owner == Some(thread)) {
            block.share.is_awaited = false;
            if block.live.is_empty() && block.transient == 0 {
                block.owner = None;
            }
        }
    }

    /// Gives back what is reserved for blocks and neither used nor needed.
    fn settle_all(&mut self) {
        let account = &mut self.account;
        self.blocks.values_mut().for_each(|block| block.settle(account));
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

    /// A buffer outside of the blocks is gone, or there was no memory for it.
    pub(crate) fn disown(&mut self, bytes: u64, origin: Origin) {
        match origin {
            Origin::Load => {}
            Origin::Run { block, run, is_output } => {
                match self.blocks.get_mut(&block).filter(|block| block.run == run) {
                    Some(owner) => {
                        owner.outside = owner.outside.saturating_sub(bytes);
                        owner.transient = owner.transient.saturating_sub(usize::from(!is_output));
                        if owner.transient == 0 {
                            owner.rest(block, &self.memory, &mut self.account);
                        } else {
                            owner.settle(&mut self.account);
                        }
                    }
                    None => self.account.give_back(bytes, None),
                }
            }
            Origin::Unforeseen(thread) => self.account.drop_unforeseen(thread, bytes),
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
            } else if block.transient == 0 {
                block.rest(base, &self.memory, &mut self.account);
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
                self.disown(bytes, origin);
            }
            None => {}
        }
        false
    }

    /// Whether nothing is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.outside.is_empty() && self.blocks.values().all(|block| block.live.is_empty())
    }

    /// Whether a live buffer lies there.
    pub(crate) fn has(&self, address: usize) -> bool {
        let is_in = |(&base, block): (&usize, &Block)| block.live.contains_key(&((address - base) as u64));
        self.outside.contains_key(&address) || self.blocks.range(..=address).next_back().is_some_and(is_in)
    }

    /// Whether a run goes on that may allocate more in its block, or has something there that goes with it.
    pub(crate) fn is_under_way(&self) -> bool {
        self.blocks.values().any(Block::is_under_way)
    }

    /// The run of a thread is over, whatever its plan foresees.
    pub(crate) fn end(&mut self, thread: Thread) {
        let mine = self.blocks.values_mut().filter(|block| block.owner == Some(thread));
        mine.for_each(|block| block.owner = None);
    }

    /// There is a session again.
    pub(crate) fn enter(&mut self) {
        self.is_gone = false;
    }

    /// The session is gone.
    pub(crate) fn leave(&mut self) {
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
        if let Some((mine, block)) = mine.and_then(|mine| Some((mine, self.blocks.get_mut(&mine)?))) {
            block.rest(mine, &self.memory, &mut self.account);
        }
        let run = self.figures.runs + 1;
        let chosen = mine.filter(|base| self.blocks.get(base).is_some_and(|block| block.live.is_empty()));
        let chosen = chosen.or_else(|| self.idle());
        // One that was mapped for a smaller run makes room for another.
        let is_small = |base: &usize| {
            let block = self.blocks.get(base);
            block.is_some_and(|block| block.bytes < cursor.block_bytes())
        };
        let small = chosen.filter(is_small);
        small.iter().for_each(|&base| self.unmap(base));
        let mine = mine.filter(|&mine| small != Some(mine));
        let chosen = chosen.filter(|_| small.is_none()).or_else(|| self.map(&cursor));
        // Without another block, what is live in this one stays, and buffers that need its bytes go elsewhere.
        let chosen = chosen.or(mine)?;
        if let Some(mine) = mine.filter(|&mine| mine != chosen)
            && let Some(block) = self.blocks.get_mut(&mine)
        {
            // It is left to the outputs that are live in it.
            block.owner = None;
            block.forget_from(mine, 0, &self.memory);
            block.settle(&mut self.account);
        }
        let block = self.blocks.get_mut(&chosen)?;
        if block.run > 0 && block.owner != Some(thread) {
            self.memory.changes_hands();
        }
        if let Some(keep) = block.pages.begin() {
            block.forget_from(chosen, keep, &self.memory);
        }
        // What the last run left outside counts by itself.
        block.share.reserved = block.share.reserved.saturating_sub(std::mem::take(&mut block.outside));
        (block.owner, block.cursor, block.run, block.transient) = (Some(thread), cursor, run, 0);
        block.was_idle = false;
        block.settle(&mut self.account);
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
        let block = Block::new(bytes, cursor.clone());
        self.blocks.insert(base, block);
        self.figures.most_blocks = self.figures.most_blocks.max(self.blocks.len() as u64);
        Some(base)
    }

    fn unmap(&mut self, base: usize) {
        if let Some(mut block) = self.blocks.remove(&base)
            && let Ok(bytes) = usize::try_from(block.bytes)
        {
            block.leave(&self.memory);
            self.memory.unmap(base, bytes);
            // What its run left outside counts by itself.
            let reserved = block.share.reserved.saturating_sub(block.outside);
            self.account.give_back(reserved, block.share.holder);
        }
    }

    /// Gives empty blocks back that no run needed for long.
    fn drop_idle(&mut self, run: u64) {
        if self.blocks.len() < 2 {
            return;
        }
        let is_old = |block: &Block| {
            block.live.is_empty() && block.run + IDLE_RUNS < run && block.transient == 0 && !block.share.is_awaited
        };
        let old: Vec<usize> = self
            .blocks
            .iter()
            .filter(|(_, block)| is_old(block))
            .map(|(&base, _)| base)
            .collect();
        old.into_iter().for_each(|base| self.unmap(base));
    }
}
