//! The weights of a session within a budget: a thread that sees which of them a run reads, asks for the next ones, and drops those that were
//! read.
//!
//! A run may read many weights between two of its allocations, because the runtime uses buffers again without telling. What tells where a run
//! stands are the weights themselves: one that was dropped has no page in the process until a run reads it. What was asked for has none
//! either, it waits in the cache of the system. So the thread looks at the next few weights of the cycle. It sleeps where nothing
//! happens, and the first allocation after that wakes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::advice::{ask, forget, page_bytes, page_out};
use crate::mapped::{Mapping, Presence, mappings};
use crate::schedule::{Schedule, Step, Window};
use crate::uses::{PlannedWeights, WeightUse};

/// Between two looks while a run reads weights.
const SHORT: Duration = Duration::from_micros(100);
/// And when nothing was read for a while.
const LONG: Duration = Duration::from_millis(5);
/// When nothing was read for so long, the thread sleeps until it is woken.
const QUIET: Duration = Duration::from_secs(2);
/// So many weights after the one that is read are looked at.
const LOOKS: usize = 4;

/// The weights of a session, and their budget.
#[derive(Debug)]
pub(crate) struct Stream {
    path: PathBuf,
    schedule: Schedule,
    asked: AtomicU64,
    dropped: AtomicU64,
    sleeps: AtomicBool,
    /// The process in which the thread runs; 0 where there is none.
    process: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

impl Stream {
    /// For the weights of a plan that lies in this folder.
    pub(crate) fn new(folder: &Path, weights: &PlannedWeights, budget: u64) -> Self {
        let path = folder.join(&weights.file);
        Self {
            path: path.canonicalize().unwrap_or(path),
            schedule: Schedule::new(&weights.uses, budget),
            asked: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            sleeps: AtomicBool::new(true),
            process: AtomicU32::new(0),
            thread: Mutex::new(None),
        }
    }

    /// How many bytes were asked for, and how many dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.asked.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }

    /// A run goes on.
    pub(crate) fn wake(&'static self) {
        if !self.sleeps.load(Ordering::Relaxed) || !self.sleeps.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut thread = self.thread();
        let this = std::process::id();
        // The thread of a parent is not there after a fork.
        if self.process.load(Ordering::Relaxed) != this {
            self.process.store(this, Ordering::Relaxed);
            *thread = self.start();
        } else if let Some(thread) = &*thread {
            thread.unpark();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self) {
        self.sleeps.store(true, Ordering::Release);
        while self.sleeps.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    /// Drops what loading read before the run goes on, and starts the thread. Where the file cannot be read, or the system does not say which
    /// pages are there, nothing is done.
    fn start(&'static self) -> Option<Thread> {
        let page_bytes = page_bytes();
        let mut reader = Reader {
            stream: self,
            file: File::open(&self.path).ok()?,
            presence: Presence::open(page_bytes)?,
            page_bytes,
            mappings: mappings(&self.path),
            window: Window::default(),
            at: None,
            stuck: BTreeSet::new(),
        };
        reader.begin();
        if self.schedule.streamed().is_empty() {
            return None;
        }
        let named = std::thread::Builder::new().name("remat-weights".to_owned());
        let started = named.spawn(move || reader.follow());
        Some(started.ok()?.thread().clone())
    }
}

/// Where the thread stands.
struct Reader {
    stream: &'static Stream,
    file: File,
    presence: Presence,
    page_bytes: usize,
    mappings: Vec<Mapping>,
    window: Window,
    /// The place in the cycle that was read last.
    at: Option<usize>,
    /// Weights whose pages stayed when they were dropped: they say nothing of what is read.
    stuck: BTreeSet<WeightUse>,
}

impl Reader {
    /// What the thread does.
    fn follow(mut self) {
        let mut last = Instant::now();
        loop {
            let quiet = last.elapsed();
            if self.goes_on() {
                last = Instant::now();
            } else if quiet > QUIET {
                self.stream.sleep();
                self.mappings = mappings(&self.stream.path);
                last = Instant::now();
            } else {
                std::thread::sleep((quiet / 8).clamp(SHORT, LONG));
            }
        }
    }

    /// Before anything is known of the run: what loading read goes, but for what stays.
    fn begin(&mut self) {
        let schedule = &self.stream.schedule;
        let mut kept: Vec<WeightUse> = schedule.kept().to_vec();
        kept.sort_unstable();
        for mapping in &self.mappings {
            if !kept.iter().any(|part| mapping.of(part).is_some()) {
                page_out(&mapping.addresses, self.page_bytes);
            }
        }
        let end = self.file.metadata().map_or(0, |metadata| metadata.len());
        for part in gaps(&kept, end) {
            forget(&self.file, &part);
        }
        let start = self.window.start(schedule);
        self.count(schedule.kept());
        schedule.kept().iter().for_each(|part| ask(&self.file, part));
        self.take(&start);
    }

    /// Looks whether a run reads another weight; whether it does.
    fn goes_on(&mut self) -> bool {
        let streamed = self.stream.schedule.streamed();
        let count = streamed.len();
        let now = self.at.and_then(|at| streamed.get(at)).copied();
        let next = self.at.map_or(0, |at| at + 1);
        let found = (0..LOOKS.min(count))
            .map(|ahead| (next + ahead) % count)
            .find(|&place| {
                let part = streamed[place];
                Some(part) != now && self.is_read(&part)
            });
        let Some(place) = found else { return false };
        self.at = Some(place);
        if place < next {
            // Sessions come and go.
            self.mappings = mappings(&self.stream.path);
        }
        let step = self.window.reads(&self.stream.schedule, place);
        self.take(&step);
        true
    }

    /// Whether a run has read from a weight since it was dropped.
    fn is_read(&mut self, part: &WeightUse) -> bool {
        let is_there = self.is_there(part);
        match self.stuck.contains(part) {
            true if !is_there => {
                self.stuck.remove(part);
                false
            }
            is_stuck => is_there && !is_stuck,
        }
    }

    fn is_there(&self, part: &WeightUse) -> bool {
        let mut places = self.mappings.iter().filter_map(|mapping| mapping.of(part));
        places.any(|addresses| self.presence.any(&addresses))
    }

    fn take(&mut self, step: &Step) {
        for part in &step.drop {
            for addresses in self.mappings.iter().filter_map(|mapping| mapping.of(part)) {
                page_out(&addresses, self.page_bytes);
            }
            forget(&self.file, part);
            if self.is_there(part) {
                self.stuck.insert(*part);
            } else {
                self.stream.dropped.fetch_add(part.bytes, Ordering::Relaxed);
            }
        }
        self.count(&step.ask);
        step.ask.iter().for_each(|part| ask(&self.file, part));
    }

    /// Counts what is asked for.
    fn count(&self, asked: &[WeightUse]) {
        let bytes = asked.iter().map(|part| part.bytes).sum();
        self.stream.asked.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What of a file with so many bytes lies between parts in the order of their offsets.
fn gaps(parts: &[WeightUse], end: u64) -> Vec<WeightUse> {
    let (mut gaps, mut from) = (Vec::new(), 0);
    for (offset, after) in parts.iter().map(|part| (part.offset, part.end())).chain([(end, end)]) {
        if offset > from {
            let bytes = offset - from;
            gaps.push(WeightUse { offset: from, bytes });
        }
        from = from.max(after);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_in_no_part() {
        let part = |offset, bytes| WeightUse { offset, bytes };
        assert_eq!(gaps(&[], 9), [part(0, 9)]);
        assert_eq!(gaps(&[part(0, 4), part(2, 3), part(7, 2)], 9), [part(5, 2)]);
        assert_eq!(gaps(&[part(3, 3)], 9), [part(0, 3), part(6, 3)]);
        assert_eq!(gaps(&[], 0), []);
    }
}
