//! When steps happen: the processor, the bus to the second memory, and what is on its way between the memories.

use std::collections::VecDeque;

use remat_plan::{PagingMode, StorageId, Transfer};

/// When a step begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Span {
    /// Time from the beginning of the plan.
    pub start: u64,
    /// Time from the beginning of the plan, not before `start`.
    pub end: u64,
}

/// A storage that enters memory later than the step that lets it in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// The step.
    pub(crate) step: usize,
    pub(crate) storage: StorageId,
    pub(crate) bytes: u64,
    /// When its transfer begins.
    pub(crate) start: u64,
}

/// A storage that leaves memory later than the step that gives it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Departure {
    bytes: u64,
    /// When its transfer ends.
    end: u64,
}

/// The times of processor and bus. Transfers begin in the order in which they are issued, so both queues are sorted by time.
#[derive(Default)]
pub(crate) struct Clock {
    /// When the processor takes its next step.
    pub(crate) now: u64,
    /// When the bus has done all transfers issued so far.
    bus: u64,
    arrivals: VecDeque<Arrival>,
    departures: VecDeque<Departure>,
}

impl Clock {
    /// Puts a transfer of that duration on the bus; `None` if its end does not fit 64 bits.
    pub(crate) fn transfer(&mut self, mode: PagingMode, duration: u64) -> Option<Span> {
        let start = self.now.max(self.bus);
        let end = start.checked_add(duration)?;
        self.bus = end;
        if mode == PagingMode::Sync {
            self.now = end;
        }
        Some(Span { start, end })
    }

    /// The storage that leaves with the transfer takes its bytes until the end.
    pub(crate) fn departs(&mut self, bytes: u64, end: u64) {
        if end > self.now {
            self.departures.push_back(Departure { bytes, end });
        }
    }

    /// The storage that comes with the transfer takes its bytes from the start, which is still to come.
    pub(crate) fn arrives(&mut self, arrival: Arrival) {
        self.arrivals.push_back(arrival);
    }

    /// When both processor and bus have ended.
    pub(crate) fn end(&self) -> u64 {
        self.now.max(self.bus)
    }

    /// Bytes in memory at a moment not before now, if nothing but transfers happens until then: `resident` are the storages that are
    /// there or have been let in. `None` if the sum does not fit 64 bits.
    pub(crate) fn memory_at(&self, time: u64, resident: u64) -> Option<u64> {
        let leaving = self.departures.iter().filter(|departure| departure.end > time);
        let leaving = leaving.map(|departure| departure.bytes).try_fold(0, u64::checked_add)?;
        let to_come = self.arrivals.iter().filter(|arrival| arrival.start > time);
        let to_come = to_come.map(|arrival| arrival.bytes).try_fold(0, u64::checked_add)?;
        resident.checked_add(leaving)?.checked_sub(to_come)
    }

    /// Most bytes in memory from `span.start` to `span.end`, both included. `None` if a sum does not fit 64 bits.
    pub(crate) fn most_memory_in(&self, span: Span, resident: u64) -> Option<u64> {
        let within = |arrival: &&Arrival| arrival.start > span.start && arrival.start <= span.end;
        let starts = self.arrivals.iter().filter(within).map(|arrival| arrival.start);
        std::iter::once(span.start)
            .chain(starts)
            .map(|time| self.memory_at(time, resident))
            .try_fold(0, |most, memory| Some(memory?.max(most)))
    }

    /// The first moment, not before `earliest`, from which on memory keeps the budget with that much in it and all transfers issued so
    /// far; `None` if there is none.
    pub(crate) fn first_fit(&self, earliest: u64, resident: u64, budget: u64) -> Option<u64> {
        let ends = self.departures.iter().map(|departure| departure.end);
        let moments = std::iter::once(earliest).chain(ends.filter(|&end| end > earliest));
        let fits = |&start: &u64| {
            let from_then = Span { start, end: u64::MAX };
            self.most_memory_in(from_then, resident)
                .is_some_and(|most| most <= budget)
        };
        moments.into_iter().find(fits)
    }

    /// The next transfer into memory that begins at that moment or before; it is to come no longer.
    pub(crate) fn next_arrival(&mut self, until: u64) -> Option<Arrival> {
        let is_due = self.arrivals.front().is_some_and(|arrival| arrival.start <= until);
        if is_due { self.arrivals.pop_front() } else { None }
    }

    /// The processor takes its next step at that moment; all arrivals until then were asked for.
    pub(crate) fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
        while self
            .departures
            .front()
            .is_some_and(|departure| departure.end <= self.now)
        {
            self.departures.pop_front();
        }
    }
}

/// Time to move so many bytes, rounded up; `None` if it does not fit 64 bits.
pub(crate) fn transfer_duration(way: &Transfer, bytes: u64) -> Option<u64> {
    const NS_PER_S: u128 = 1_000_000_000;
    let moving = (u128::from(bytes) * NS_PER_S).div_ceil(u128::from(way.bytes_per_s.max(1)));
    u64::try_from(moving).ok()?.checked_add(way.latency_ns)
}

/// Energy to move so many bytes; `None` if it does not fit 64 bits.
pub(crate) fn transfer_energy(way: &Transfer, bytes: u64) -> Option<u64> {
    bytes.checked_mul(way.energy_pj_per_byte)?.checked_add(way.energy_pj)
}
