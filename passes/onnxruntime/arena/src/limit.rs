//! The limit of a process: a ledger behind a lock, and threads that wait for what it decides.
//!
//! A thread waits with no other lock of this library. Locks of sessions are taken before this one, never after it.

use std::ops::DerefMut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::ledger::{Ledger, Request, Thread, Verdict};

/// A lock around a ledger, and a condition to wait for: what the standard library has, and what a checker of threads puts in its place.
pub(crate) trait Monitor {
    type Guard<'a>: DerefMut<Target = Ledger>
    where
        Self: 'a;

    fn lock(&self) -> Self::Guard<'_>;

    /// Waits without the lock until another thread calls `notify_all`, or for no reason.
    fn wait<'a>(&'a self, guard: Self::Guard<'a>) -> Self::Guard<'a>;

    fn notify_all(&self);
}

/// That of the standard library.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    ledger: Mutex<Ledger>,
    decided: Condvar,
}

impl Monitor for Threads {
    type Guard<'a> = MutexGuard<'a, Ledger>;

    fn lock(&self) -> Self::Guard<'_> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, guard: Self::Guard<'a>) -> Self::Guard<'a> {
        self.decided.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_all(&self) {
        self.decided.notify_all();
    }
}

/// What all runs of a process reserve.
#[derive(Debug, Default)]
pub(crate) struct Limit<M = Threads>(M);

impl Limit {
    /// That of this process.
    pub(crate) fn of_process() -> Arc<Self> {
        static LIMIT: OnceLock<Arc<Limit>> = OnceLock::new();
        Arc::clone(LIMIT.get_or_init(Arc::default))
    }
}

impl<M: Monitor> Limit<M> {
    #[cfg(test)]
    pub(crate) fn new(monitor: M) -> Self {
        Self(monitor)
    }

    /// Answers a request if that can be done without waiting.
    pub(crate) fn ask(&self, request: Request) -> Option<Verdict> {
        self.with(|ledger| ledger.ask(request))
    }

    /// Answers a request, after waiting for others if need be.
    pub(crate) fn wait(&self, request: Request) -> Verdict {
        let mut ledger = self.0.lock();
        if let Some(verdict) = ledger.ask(request) {
            return verdict;
        }
        let ticket = ledger.join(request);
        if ledger.has_verdicts() {
            self.0.notify_all();
        }
        loop {
            if let Some(verdict) = ledger.fetch(ticket) {
                return verdict;
            }
            ledger = self.0.wait(ledger);
        }
    }

    /// Bytes that are no longer reserved.
    pub(crate) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.with(|ledger| ledger.give_back(bytes));
        }
    }

    /// A run of this thread is over, and so many bytes are no longer reserved.
    pub(crate) fn leave(&self, thread: Thread, bytes: u64) {
        self.with(|ledger| ledger.leave(thread, bytes));
    }

    /// It is known now what the run of this thread needs, and it has that.
    pub(crate) fn knows(&self, thread: Thread) {
        self.with(|ledger| ledger.knows(thread));
    }

    /// Until it is dropped, runs that end give back the pages that nobody uses.
    pub(crate) fn shortage(&self) -> Shortage<'_, M> {
        self.with(|ledger| ledger.count_short(true));
        Shortage(self)
    }

    /// Whether an allocation needs bytes that nobody uses.
    pub(crate) fn is_short(&self) -> bool {
        self.0.lock().is_short()
    }

    /// Bytes that are reserved now, and most at one time.
    pub(crate) fn reserved(&self) -> (u64, u64) {
        let ledger = self.0.lock();
        (ledger.reserved(), ledger.most())
    }

    /// Changes the ledger; whoever waits for what comes of it goes on.
    fn with<R>(&self, change: impl FnOnce(&mut Ledger) -> R) -> R {
        let mut ledger = self.0.lock();
        let result = change(&mut ledger);
        if ledger.has_verdicts() {
            self.0.notify_all();
        }
        result
    }
}

/// An allocation for which there are too few bytes.
#[derive(Debug)]
pub(crate) struct Shortage<'l, M: Monitor = Threads>(&'l Limit<M>);

impl<M: Monitor> Drop for Shortage<'_, M> {
    fn drop(&mut self) {
        self.0.with(|ledger| ledger.count_short(false));
    }
}
