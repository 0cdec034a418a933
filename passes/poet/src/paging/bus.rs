//! Time with DMA, by the rules that `remat-plan` states for the second memory.

use std::collections::VecDeque;

/// Bytes that count in memory until or from a moment.
#[derive(Clone, Copy)]
struct Moving {
    bytes: i64,
    at: u64,
}

/// Processor and bus.
#[derive(Default)]
pub(super) struct Bus {
    /// When the processor takes its next step.
    pub(super) now: u64,
    /// When the bus has done all transfers issued so far.
    free: u64,
    /// What leaves, by the end of its transfer.
    leaving: VecDeque<Moving>,
    /// What comes, by the beginning of its transfer.
    coming: VecDeque<Moving>,
}

impl Bus {
    pub(super) fn reset(&mut self) {
        self.now = 0;
        self.free = 0;
        self.leaving.clear();
        self.coming.clear();
    }

    /// When everything has ended.
    pub(super) fn end(&self) -> u64 {
        self.now.max(self.free)
    }

    /// A transfer out is issued.
    pub(super) fn out(&mut self, bytes: i64, time: u64) {
        self.free = self.now.max(self.free).saturating_add(time);
        self.leaving.push_back(Moving { bytes, at: self.free });
    }

    /// A transfer back is issued; returns its end.
    pub(super) fn back(&mut self, bytes: i64, time: u64) -> u64 {
        let at = self.now.max(self.free);
        self.free = at.saturating_add(time);
        if at > self.now {
            self.coming.push_back(Moving { bytes, at });
        }
        self.free
    }

    /// A run that cannot begin before `earliest` and has `memory` in all, of which what comes and what leaves is known here.
    pub(super) fn run(&mut self, earliest: u64, memory: i64, budget: i64, time: u64) {
        let earliest = earliest.max(self.now);
        let start = if self.leaving.is_empty() || self.fits(earliest, memory, budget) {
            earliest
        } else {
            let mut ends = self.leaving.iter().map(|moving| moving.at);
            ends.find(|&end| end > earliest && self.fits(end, memory, budget))
                .unwrap_or(earliest)
        };
        self.advance(start.saturating_add(time));
    }

    /// The processor waits.
    pub(super) fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
        while self.leaving.front().is_some_and(|moving| moving.at <= self.now) {
            self.leaving.pop_front();
        }
        while self.coming.front().is_some_and(|moving| moving.at <= self.now) {
            self.coming.pop_front();
        }
    }

    /// Whether memory keeps the budget from a moment on.
    fn fits(&self, from: u64, memory: i64, budget: i64) -> bool {
        let at = |time: u64| {
            let leaving = self.leaving.iter().filter(|moving| moving.at > time);
            let coming = self.coming.iter().filter(|moving| moving.at > time);
            let sum = |moving: &mut dyn Iterator<Item = &Moving>| moving.map(|moving| moving.bytes).sum::<i64>();
            memory + sum(&mut leaving.into_iter()) - sum(&mut coming.into_iter())
        };
        let later = self.coming.iter().map(|moving| moving.at).filter(|&at| at > from);
        std::iter::once(from).chain(later).all(|time| at(time) <= budget)
    }
}
