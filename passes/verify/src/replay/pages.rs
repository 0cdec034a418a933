//! Paging steps: what moves between the memories, when, and what that costs.

use remat_plan::{Paging, PagingMode, StorageId, Transfer};

use super::state::Replayer;
use crate::Code;
use crate::clock::{Arrival, Span, transfer_duration, transfer_energy};
use crate::memory::Location;
use crate::text::Bytes;

impl Replayer<'_> {
    pub(super) fn page_out(&mut self, position: usize, storage: StorageId) -> (u64, Span) {
        let paging = self.paging(position, storage, "out");
        let now = self.clock.now;
        let left_out = (self.memory_now(), Span { start: now, end: now });
        if !self.may_give_up(position, storage, "pages out") {
            return left_out;
        }
        if self.memory.location(storage) != Location::Resident {
            let name = self.problem.storage_name(storage);
            self.findings.add(Code::V013, Some(position), || {
                format!("step {position} pages out `{name}`, which is not resident")
            });
            return left_out;
        }
        let waited = self.wait_for(storage);
        let before = self.memory_now();
        self.leave(storage, Location::PagedOut);
        let moves = !std::mem::replace(&mut self.pages.copied[storage], true);
        let Some(paging) = paging.filter(|_| moves) else {
            let at_once = Span {
                start: waited.end,
                end: waited.end,
            };
            return (before, at_once);
        };
        let bytes = self.problem.storages[storage].bytes;
        let span = self.transfer(position, storage, paging.mode, &paging.page_out);
        self.clock.departs(bytes, span.end);
        self.fill(position, storage, paging.capacity);
        (before, span)
    }

    /// Brings a storage back; returns the bytes that count when its transfer begins, so far as that is known.
    pub(super) fn page_in(&mut self, position: usize, storage: StorageId) -> (u64, Span) {
        let paging = self.paging(position, storage, "in");
        let name = self.problem.storage_name(storage);
        let now = self.clock.now;
        if self.memory.location(storage) != Location::PagedOut {
            self.findings.add(Code::V013, Some(position), || {
                format!("step {position} pages in `{name}`, which is not paged out")
            });
            return (self.memory_now(), Span { start: now, end: now });
        }
        let bytes = self.problem.storages[storage].bytes;
        let resident = self.resident.checked_add(bytes);
        self.resident = self.fits(position, name, "memory", resident);
        self.memory.relocate(storage, Location::Resident);
        self.changes[storage] += 1;
        self.come_back(position, storage);
        let mut span = Span { start: now, end: now };
        if let Some(paging) = paging {
            span = self.transfer(position, storage, paging.mode, &paging.page_in);
            self.pages.arrived[storage] = span.end;
        }
        if span.start > now {
            let start = span.start;
            self.clock.arrives(Arrival {
                step: position,
                storage,
                bytes,
                start,
            });
            return (self.memory_now(), span);
        }
        let during = self.clock.memory_at(now, self.resident);
        let during = self.fits(position, name, "memory", during);
        self.check_budget(position, name, during);
        (during, span)
    }

    /// Notes the memory at the transfers into it that begin at that moment or before, while `resident` bytes are there or let in.
    /// Where nothing runs meanwhile, they are held to the budget themselves.
    pub(super) fn arrive(&mut self, until: u64, resident: u64, alone: bool) {
        while let Some(arrival) = self.clock.next_arrival(until) {
            let during = self.clock.memory_at(arrival.start, resident).unwrap_or(u64::MAX);
            self.replay.trace[arrival.step].during = during;
            self.note_peak(arrival.step, during);
            if alone {
                let name = self.problem.storage_name(arrival.storage);
                self.check_budget(arrival.step, name, during);
            }
        }
    }

    /// Waits until a storage that was paged in has arrived.
    pub(super) fn wait_for(&mut self, storage: StorageId) -> Span {
        let start = self.clock.now;
        let end = self.pages.arrived(storage).max(start);
        self.arrive(end, self.resident, true);
        self.clock.advance(end);
        Span { start, end }
    }

    /// A storage is in memory again: its copy stays only if that saves a transfer.
    pub(super) fn come_back(&mut self, position: usize, storage: StorageId) {
        if !self.pages.copied[storage] || self.pages.leaves_by_page_out(position, storage) {
            return;
        }
        self.pages.copied[storage] = false;
        if self.problem.paging.is_some() {
            let bytes = self.problem.storages[storage].bytes;
            self.pages.held = self.pages.held.saturating_sub(bytes);
        }
    }

    /// The second memory; without one, paging is not allowed.
    fn paging(&mut self, position: usize, storage: StorageId, direction: &str) -> Option<Paging> {
        if self.problem.paging.is_none() {
            let name = self.problem.storage_name(storage);
            self.findings.add(Code::V012, Some(position), || {
                format!("step {position} pages `{name}` {direction}, but the problem allows no paging")
            });
        }
        self.problem.paging
    }

    fn transfer(&mut self, position: usize, storage: StorageId, mode: PagingMode, way: &Transfer) -> Span {
        let (name, bytes) = (self.problem.storage_name(storage), self.problem.storages[storage].bytes);
        let duration = transfer_duration(way, bytes);
        let duration = self.fits(position, name, "duration", duration);
        self.replay.paging_duration = self.replay.paging_duration.saturating_add(duration);
        let energy = transfer_energy(way, bytes);
        let energy = self.fits(position, name, "energy", energy);
        self.replay.paging_energy = self.replay.paging_energy.saturating_add(energy);
        let total = self.replay.energy.checked_add(energy);
        self.replay.energy = self.fits(position, name, "energy", total);
        self.clock.transfer(mode, duration).unwrap_or_else(|| {
            self.fits(position, name, "duration", None);
            self.clock.now = u64::MAX;
            Span {
                start: u64::MAX,
                end: u64::MAX,
            }
        })
    }

    /// Puts a copy into the second memory.
    fn fill(&mut self, position: usize, storage: StorageId, capacity: Option<u64>) {
        let name = self.problem.storage_name(storage);
        let held = self.pages.held.checked_add(self.problem.storages[storage].bytes);
        self.pages.held = self.fits(position, name, "second memory", held);
        self.replay.second_peak = self.replay.second_peak.max(self.pages.held);
        let Some(capacity) = capacity.filter(|&capacity| self.pages.held > capacity) else {
            return;
        };
        let held = self.pages.held;
        self.findings.add(Code::V018, Some(position), || {
            let (need, capacity) = (Bytes(held), Bytes(capacity));
            format!("second memory full at step {position} (`{name}`): need {need}, capacity {capacity}")
        });
    }
}
