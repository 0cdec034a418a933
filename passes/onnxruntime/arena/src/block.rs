//! A block: the live buffers in it, and the run that is there.

use std::collections::BTreeMap;

use crate::account::{Account, Credit, Denied, Turn};
use crate::cursor::{Cursor, Spot};
use crate::ledger::{Request, Stage, Thread};
use crate::need::Need;
use crate::pages::{Memory, Pages};
use crate::plans::Plans;

#[derive(Debug)]
pub(crate) struct Block {
    /// Its size.
    pub(crate) bytes: u64,
    /// Live buffers by offset.
    pub(crate) live: BTreeMap<u64, Live>,
    /// Live buffers of the run that are no outputs, outside of the block, too.
    pub(crate) transient: usize,
    /// Bytes of live buffers that the run has outside of the block.
    pub(crate) outside: u64,
    /// Whether the run has its turn, where sessions share the bytes.
    pub(crate) has_turn: bool,
    /// The thread whose run is here.
    pub(crate) owner: Option<Thread>,
    pub(crate) cursor: Cursor,
    /// Which run began here last.
    pub(crate) run: u64,
    /// Whether it was empty at the last look, and no run began since.
    pub(crate) was_idle: bool,
    pub(crate) pages: Pages,
    pub(crate) share: Share,
}

/// What is reserved for a block and the run in it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Share {
    /// Bytes that are reserved.
    pub(crate) reserved: u64,
    /// The run that goes on here, if one does.
    pub(crate) holder: Option<Thread>,
    /// What was reserved for it.
    pub(crate) need: Need,
    /// Whether it is not known yet what it needs.
    pub(crate) is_early: bool,
    /// Whether its next allocation waits.
    pub(crate) is_awaited: bool,
}

/// A live buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) bytes: u64,
    pub(crate) is_output: bool,
    /// The run that allocated it, and which buffer of its plan it is.
    pub(crate) run: u64,
    pub(crate) place: usize,
}

impl Block {
    pub(crate) fn new(bytes: u64, cursor: Cursor) -> Self {
        Self {
            bytes,
            live: BTreeMap::new(),
            transient: 0,
            outside: 0,
            has_turn: false,
            owner: None,
            cursor,
            run: 0,
            was_idle: false,
            pages: Pages::default(),
            share: Share::default(),
        }
    }

    /// Whether it may get further buffers of the run that is here, or has some that go with that run.
    pub(crate) fn is_under_way(&self) -> bool {
        self.transient > 0 || self.owner.is_some() && !self.cursor.is_complete()
    }

    pub(crate) fn is_free(&self, offset: u64, bytes: u64) -> bool {
        let below = self.live.range(..offset.saturating_add(bytes)).next_back();
        below.is_none_or(|(&start, live)| start + live.bytes <= offset)
    }

    /// Whether the run that was here is over.
    pub(crate) fn is_over(&self, plans: &Plans) -> bool {
        self.transient == 0 && self.cursor.is_over(plans)
    }

    /// Whether nothing is in it, and no run goes on here.
    pub(crate) fn is_idle(&self, plans: &Plans) -> bool {
        self.live.is_empty() && (self.owner.is_none() || self.is_over(plans))
    }

    /// Where a buffer goes in bytes that sessions share: outputs, which outlive the turn of their run, and what has no turn lie outside.
    pub(crate) fn shared_offset(&mut self, spot: Spot, credit: &mut Credit) -> Result<Option<u64>, Denied> {
        if spot.is_output || spot.offset.is_none() {
            return Ok(None);
        }
        if !self.has_turn {
            match credit.turn {
                None => return Err(Denied::Turn),
                Some(Turn::Refused) => return Ok(None),
                Some(Turn::Taken) => (credit.turn, self.has_turn) = (None, true),
            }
        }
        Ok(spot.offset)
    }

    /// Live buffers of the run that is here, and where they lie.
    pub(crate) fn of_run(&self) -> Vec<(usize, u64)> {
        let mine = self.live.iter().filter(|(_, live)| live.run == self.run);
        mine.map(|(&offset, live)| (live.place, offset)).collect()
    }

    /// What has to be reserved for it if the run here needs that, and has so many bytes more outside.
    fn charge(&self, need: Need, more_outside: u64) -> u64 {
        let outside = need.outside.max(self.outside.saturating_add(more_outside));
        self.pages.bytes_to(need.block).saturating_add(outside)
    }

    /// Reserves what the run here needs, as far as that is known, to allocate so many bytes at an offset, or without one outside.
    pub(crate) fn reserve(
        &mut self,
        plans: &Plans,
        account: &mut Account,
        thread: Thread,
        offset: Option<u64>,
        bytes: u64,
        credit: &mut Credit,
    ) -> Result<(), Denied> {
        let share = self.share;
        let more = if offset.is_some() { 0 } else { bytes };
        let is_early = !self.cursor.is_certain(plans);
        let want = if is_early {
            let so_far = Need {
                block: offset.map_or(0, |offset| offset.saturating_add(bytes)),
                outside: self.outside.saturating_add(more),
            };
            share.need.max(so_far)
        } else {
            self.cursor.need()
        };
        let missing = |need: Need| self.charge(need, more).saturating_sub(share.reserved);
        let may_take_most = is_early && share.holder.is_none() && account.most_bytes.is_some();
        let most = may_take_most.then(|| plans.most().max(want));
        let goes_on = share.holder.is_some() || credit.enters == Some(thread);
        if !goes_on || missing(want) > credit.bytes {
            let beyond = |need: Need| missing(need).saturating_sub(credit.bytes);
            let request = Request {
                thread,
                bytes: beyond(want),
                rather: beyond(most.unwrap_or(want)),
                stage: if is_early { Stage::Early } else { Stage::Known },
                need: want.total(),
                limit: account.limit(),
                waits: account.waits,
                begins: share.holder.is_none(),
                enters: !goes_on,
            };
            if let Err(denied) = account.ask(request, credit) {
                self.share.is_awaited = true;
                return Err(denied);
            }
        } else if share.is_early && !is_early {
            account.knows(thread);
        }
        let need = most.filter(|&most| missing(most) <= credit.bytes).unwrap_or(want);
        let spent = missing(need).min(credit.bytes);
        credit.bytes -= spent;
        credit.enters = credit.enters.filter(|&enters| enters != thread);
        account.spend(spent);
        self.share = Share {
            reserved: share.reserved.saturating_add(spent),
            holder: Some(thread),
            need,
            is_early,
            is_awaited: false,
        };
        Ok(())
    }

    /// Gives back what is reserved and neither used nor needed.
    pub(crate) fn settle(&mut self, account: &mut Account) {
        let charge = self.charge(self.share.need, 0);
        if charge < self.share.reserved {
            account.give_back(self.share.reserved - charge, None);
            self.share.reserved = charge;
        }
    }

    /// Nothing of the run here is live but outputs: it needs no bytes until it allocates again.
    pub(crate) fn rest(&mut self, base: usize, memory: &impl Memory, account: &mut Account) {
        self.leave(memory);
        (self.share.need, self.share.is_early) = (Need::default(), false);
        if account.is_short() {
            self.forget_from(base, 0, memory);
        }
        if let Some(thread) = self.share.holder.take() {
            let charge = self.charge(Need::default(), 0).min(self.share.reserved);
            account.give_back(self.share.reserved - charge, Some(thread));
            self.share.reserved = charge;
        } else {
            self.settle(account);
        }
    }

    /// Its turn is over, if it has one: the bytes are those of others.
    pub(crate) fn leave(&mut self, memory: &impl Memory) {
        if std::mem::take(&mut self.has_turn) {
            self.pages = Pages::default();
            memory.leave();
        }
    }

    /// Gives the bytes from an offset on back, but for those of live buffers.
    pub(crate) fn forget_from(&mut self, base: usize, keep: u64, memory: &impl Memory) {
        if !memory.forgets() {
            return;
        }
        let mut from = keep;
        let ends = self.live.iter().map(|(&start, live)| (start, start + live.bytes));
        for (start, end) in ends.clone().chain([(self.bytes, 0)]) {
            if let (Ok(from), Ok(start)) = (usize::try_from(from), usize::try_from(start))
                && from < start
            {
                memory.forget(base + from..base + start);
            }
            from = from.max(end);
        }
        self.pages.kept(keep, ends);
    }

    /// Gives all bytes back that neither a live buffer nor the run that goes on here needs.
    pub(crate) fn trim(&mut self, base: usize, memory: &impl Memory) {
        let keep = if self.transient > 0 { self.share.need.block } else { 0 };
        self.forget_from(base, keep, memory);
    }
}
