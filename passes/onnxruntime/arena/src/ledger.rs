//! Which bytes the runs of a process have reserved, and which allocations wait for some: who gets them next, and who never will.
//!
//! An allocation asks for what its run needs beyond what is reserved for it. Where that does not fit under its limit, it joins a queue.
//!
//! - **A run that begins** gets its whole need at once, or waits and holds nothing. Such runs are served in the order in which they came: while
//!   one waits, none that came later is let in, however small.
//! - **A run that grows** holds bytes others wait for, so it comes before all that begin. Of those that grow, the oldest that fits is served.
//! - **A run whose shape its first allocations do not tell** gets the most that it may need, and gives the rest back when its need is known. Where
//!   that does not fit, it gets what it allocates; one at a time, behind the *door*, so that of all runs that wait only one holds bytes
//!   without having its need.
//!
//! **Nobody waits for ever.** A run is *going on* if bytes are reserved for it and its thread does not wait. It ends some time and gives them back:
//! what it waits for is not memory. Where no run goes on, nobody waits: the newest of those that grow is refused, so that its run ends, or if
//! there are none, the oldest of those that begin, which does not fit beside what is held outside of runs. So there is no circle of
//! threads that wait for each other, and nobody waits for bytes that nobody gives back.

use std::collections::{BTreeMap, VecDeque};

/// A thread, by its number.
pub(crate) type Thread = u64;

/// What is known of the need of the run for which bytes are requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing yet.
    Early,
    /// All: with these bytes the run has what it needs.
    Known,
    /// As much as before: the bytes are beside its need.
    Beside,
}

/// What an allocation needs before it can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// Who makes it.
    pub(crate) thread: Thread,
    /// Bytes beyond what is reserved for the run.
    pub(crate) bytes: u64,
    /// What it takes rather, if that is at hand: at least `bytes`.
    pub(crate) rather: u64,
    pub(crate) stage: Stage,
    /// All that the run needs, as far as that is known.
    pub(crate) need: u64,
    /// The most bytes that may be reserved.
    pub(crate) limit: u64,
    /// Whether it waits for others; else it is refused where it would have to. It waits for a run whose need is about to be known.
    pub(crate) waits: bool,
    /// Whether the run begins: nothing of it is live but outputs.
    pub(crate) begins: bool,
    /// Whether a run is going on from now on.
    pub(crate) enters: bool,
}

#[cfg(test)]
impl Request {
    /// That of a run that begins and waits, and whose need is known.
    pub(crate) fn whole(thread: Thread, bytes: u64, limit: u64) -> Self {
        Self {
            thread,
            bytes,
            rather: bytes,
            stage: Stage::Known,
            need: bytes,
            limit,
            waits: true,
            begins: true,
            enters: true,
        }
    }
}

/// What is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// So many bytes are reserved.
    Granted(u64),
    /// It is never granted; so many bytes were reserved then.
    Refused(u64),
}

/// A request that waits, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
}

/// A thread with runs that hold bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Holder {
    runs: u32,
    /// Whether it is not known yet what one of them needs.
    is_early: bool,
}

/// What is reserved, and who waits.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    reserved: u64,
    most: u64,
    holders: BTreeMap<Thread, Holder>,
    /// The thread with a run that got neither its need nor the most that this may be.
    door: Option<Thread>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// What was decided, until it is fetched.
    decided: BTreeMap<Ticket, Verdict>,
    next: u64,
    /// Allocations for which there are too few bytes, whether they wait or look for some.
    short: usize,
}

impl Ledger {
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Answers a request if it can be answered now. `None` if it has to wait, and did not join the queue yet.
    pub(crate) fn ask(&mut self, request: Request) -> Option<Verdict> {
        if request.need > request.limit {
            return Some(Verdict::Refused(self.reserved));
        }
        // What has no limit waits for nobody.
        let passes = request.limit == u64::MAX || self.grows(&request) || self.waiting.is_empty();
        let bytes = self.fitting(&request).filter(|_| passes)?;
        Some(self.grant(request, bytes))
    }

    /// Joins the queue.
    pub(crate) fn join(&mut self, request: Request) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back(Waiting { ticket, request });
        self.decide();
        ticket
    }

    /// The verdict on a request in the queue, once.
    pub(crate) fn fetch(&mut self, ticket: Ticket) -> Option<Verdict> {
        self.decided.remove(&ticket)
    }

    /// Whether there are verdicts that nobody fetched.
    pub(crate) fn has_verdicts(&self) -> bool {
        !self.decided.is_empty()
    }

    /// Bytes that are no longer reserved.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
        self.decide();
    }

    /// A run of this thread is over, and so many bytes are no longer reserved.
    pub(crate) fn leave(&mut self, thread: Thread, bytes: u64) {
        if let Some(holder) = self.holders.get_mut(&thread) {
            holder.runs = holder.runs.saturating_sub(1);
            if holder.runs == 0 {
                self.holders.remove(&thread);
            }
            if self.door == Some(thread) {
                self.door = None;
            }
        }
        self.give_back(bytes);
    }

    /// It is known now what the run of this thread needs, and it has that.
    pub(crate) fn knows(&mut self, thread: Thread) {
        if let Some(holder) = self.holders.get_mut(&thread) {
            holder.is_early = false;
        }
        if self.door == Some(thread) {
            self.door = None;
        }
        self.decide();
    }

    /// An allocation found too few bytes; or has an answer now.
    pub(crate) fn count_short(&mut self, is_more: bool) {
        self.short = if is_more {
            self.short + 1
        } else {
            self.short.saturating_sub(1)
        };
    }

    /// Whether an allocation needs bytes that nobody uses.
    pub(crate) fn is_short(&self) -> bool {
        self.short > 0
    }

    /// Whether the run of a request holds bytes that others wait for.
    fn grows(&self, request: &Request) -> bool {
        !request.begins || self.holders.contains_key(&request.thread)
    }

    /// What a request can get, apart from its turn.
    fn fitting(&self, request: &Request) -> Option<u64> {
        let fits = |bytes: u64| self.reserved.checked_add(bytes).is_some_and(|sum| sum <= request.limit);
        if request.rather > request.bytes && fits(request.rather) {
            return Some(request.rather);
        }
        let is_shut = request.stage == Stage::Early && self.door.is_some_and(|thread| thread != request.thread);
        (!is_shut && fits(request.bytes)).then_some(request.bytes)
    }

    fn grant(&mut self, request: Request, bytes: u64) -> Verdict {
        self.reserved = self.reserved.saturating_add(bytes);
        self.most = self.most.max(self.reserved);
        if request.enters {
            self.holders.entry(request.thread).or_default().runs += 1;
        }
        if let Some(holder) = self
            .holders
            .get_mut(&request.thread)
            .filter(|_| request.stage != Stage::Beside)
        {
            holder.is_early = request.stage == Stage::Early;
            let has_most = request.rather > request.bytes && bytes == request.rather;
            if holder.is_early && !has_most && request.limit < u64::MAX {
                self.door = Some(request.thread);
            } else if self.door == Some(request.thread) {
                self.door = None;
            }
        }
        Verdict::Granted(bytes)
    }

    fn waits(&self, thread: Thread) -> bool {
        self.waiting.iter().any(|waiting| waiting.request.thread == thread)
    }

    /// Whether a run goes on: it holds bytes, and ends without those that wait.
    fn goes_on(&self) -> bool {
        self.holders.keys().any(|&thread| !self.waits(thread))
    }

    /// Decides on all that wait on which something can be decided.
    fn decide(&mut self) {
        loop {
            if let Some((place, bytes)) = self.next_grant() {
                if let Some(Waiting { ticket, request }) = self.waiting.remove(place) {
                    let verdict = self.grant(request, bytes);
                    self.decided.insert(ticket, verdict);
                }
            } else if let Some(place) = self.next_refusal() {
                if let Some(Waiting { ticket, .. }) = self.waiting.remove(place) {
                    self.decided.insert(ticket, Verdict::Refused(self.reserved));
                }
            } else {
                return;
            }
        }
    }

    /// The place of the next request in the queue that is served, and what it gets.
    fn next_grant(&self) -> Option<(usize, u64)> {
        let served = |place: usize| Some((place, self.fitting(&self.waiting.get(place)?.request)?));
        let mut growing = self.growing().peekable();
        if growing.peek().is_some() {
            growing.find_map(served)
        } else {
            served(0)
        }
    }

    /// The place of the next request in the queue that is refused, if none is served.
    fn next_refusal(&self) -> Option<usize> {
        if !self.goes_on() {
            let holds = |&place: &usize| self.holders.contains_key(&self.waiting[place].request.thread);
            return self
                .growing()
                .filter(holds)
                .last()
                .or_else(|| self.growing().last())
                .or_else(|| (!self.waiting.is_empty()).then_some(0));
        }
        let is_early = |(&thread, holder): (&Thread, &Holder)| holder.is_early && !self.waits(thread);
        if self.holders.iter().any(is_early) {
            return None;
        }
        self.waiting.iter().position(|waiting| !waiting.request.waits)
    }

    /// The places of those in the queue whose runs grow.
    fn growing(&self) -> impl Iterator<Item = usize> {
        let places = self.waiting.iter().enumerate();
        places
            .filter(|(_, waiting)| self.grows(&waiting.request))
            .map(|(place, _)| place)
    }
}

#[cfg(test)]
impl Ledger {
    /// Whether there is a verdict that was not fetched.
    pub(crate) fn is_decided(&self, ticket: Ticket) -> bool {
        self.decided.contains_key(&ticket)
    }

    /// Whether there is one that granted something.
    pub(crate) fn was_granted(&self, ticket: Ticket) -> bool {
        matches!(self.decided.get(&ticket), Some(Verdict::Granted(_)))
    }

    /// Bytes that were granted in verdicts that were not fetched.
    pub(crate) fn undelivered(&self) -> u64 {
        let granted = |verdict: &Verdict| match verdict {
            Verdict::Granted(bytes) => *bytes,
            Verdict::Refused(_) => 0,
        };
        self.decided.values().map(granted).sum()
    }
}
