//! The moment in which a session takes its allocator from the environment, for one session at a time.
//!
//! The environment has one allocator for the processor. A session says in the log that it is about to take it, and takes it then; what is
//! registered in between would be taken in its place. So a thread keeps others from registering from that message on until anything shows
//! that it has taken its own: the next message, or an allocation. A session that shows nothing, because it failed, holds them up for a moment only.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ledger::Thread;

/// Longest time that a session takes from its message to its allocator; it takes microseconds.
const LONGEST: Duration = Duration::from_millis(200);

/// Who registers.
#[derive(Debug)]
pub(crate) struct Gate {
    holder: Mutex<Option<(Thread, Instant)>>,
    left: Condvar,
}

/// That of the process, which has one environment.
pub(crate) static GATE: Gate = Gate::new();

impl Gate {
    const fn new() -> Self {
        Self {
            holder: Mutex::new(None),
            left: Condvar::new(),
        }
    }

    fn holder(&self) -> MutexGuard<'_, Option<(Thread, Instant)>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread is in, or was for too long; then this one is.
    pub(crate) fn enter(&self, thread: Thread) {
        let mut holder = self.holder();
        while let Some((_, since)) = holder.filter(|&(other, _)| other != thread) {
            let left = LONGEST.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.left.wait_timeout(holder, left);
            holder = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *holder = Some((thread, Instant::now()));
    }

    /// This thread is out, if it was in.
    pub(crate) fn leave(&self, thread: Thread) {
        let mut holder = self.holder();
        if holder.is_some_and(|(other, _)| other == thread) {
            *holder = None;
            self.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn one_thread_at_a_time_registers_and_takes() {
        let (gate, registered) = (Gate::new(), AtomicU64::new(0));
        let work = |thread: u64| {
            for _ in 0..200 {
                gate.enter(thread);
                registered.store(thread, Ordering::SeqCst);
                std::thread::yield_now();
                assert_eq!(registered.load(Ordering::SeqCst), thread);
                gate.leave(thread);
            }
        };
        std::thread::scope(|scope| (1..5).for_each(|thread| _ = scope.spawn(move || work(thread))));
    }

    #[test]
    fn a_thread_that_never_leaves_holds_others_up_for_a_moment() {
        let gate = Gate::new();
        gate.enter(1);
        gate.enter(1);
        gate.leave(2);
        let start = Instant::now();
        gate.enter(2);
        assert!(start.elapsed() >= LONGEST / 2, "{:?}", start.elapsed());
        // Only against waiting for ever.
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }
}
