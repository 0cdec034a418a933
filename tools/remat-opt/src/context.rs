//! What belongs to one command, of which several may run in one process: whether it is to end, what it printed, and how far it is.
//!
//! The thread of a call has its context at hand ([`current`]); every other thread has that of the process, which is that of the program.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use remat::solver::Profile;

use crate::progress::state::Shared;

/// What belongs to one command.
#[derive(Debug)]
pub(crate) struct Context {
    /// Raised where the command is to end, after `signal` is set.
    pub(crate) stop: AtomicBool,
    /// The number of the signal that said so; 0 before.
    pub(crate) signal: AtomicI32,
    /// Whether there is a result that the command ends with: where there is none, nobody waits for it after a signal.
    pub(crate) has_result: AtomicBool,
    /// What would have been printed; nothing where it is printed.
    kept: Mutex<Option<String>>,
    /// The line of progress that was started last.
    line: Mutex<Weak<Shared>>,
    /// Where the time of its searches goes.
    pub(crate) profile: Profile,
}

static PROCESS: Context = Context::new();

/// Contexts of calls that are over. Flags are lent to threads of foreign solvers that may outlive a call, so no context is ever freed; there are
/// as many as calls ran at one time.
static FREE: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

thread_local! {
    static CURRENT: Cell<&'static Context> = const { Cell::new(&PROCESS) };
}

/// The context of the command that runs in this thread.
pub(crate) fn current() -> &'static Context {
    CURRENT.get()
}

/// The context of the program, for what handles its signals.
#[cfg(unix)]
pub(crate) fn process() -> &'static Context {
    &PROCESS
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    const fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            signal: AtomicI32::new(0),
            has_result: AtomicBool::new(false),
            kept: Mutex::new(None),
            line: Mutex::new(Weak::new()),
            profile: Profile::new(),
        }
    }

    /// What is printed by the command from now on; nothing where it is printed.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Option<String>> {
        locked(&self.kept)
    }

    /// The line of progress that was started last.
    pub(crate) fn line(&self) -> MutexGuard<'_, Weak<Shared>> {
        locked(&self.line)
    }
}

/// A context that nobody else has, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease(&'static Context);

impl Lease {
    pub(crate) fn take() -> Self {
        let free = locked(&FREE).pop();
        Self(free.unwrap_or_else(|| Box::leak(Box::new(Context::new()))))
    }

    /// Does `work` in this context, in this thread.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _back = Back(CURRENT.replace(self.0));
        work()
    }
}

impl Deref for Lease {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.stop.store(false, Ordering::SeqCst);
        self.0.signal.store(0, Ordering::SeqCst);
        self.0.has_result.store(false, Ordering::SeqCst);
        *self.0.kept() = None;
        *self.0.line() = Weak::new();
        self.0.profile.clear();
        locked(&FREE).push(self.0);
    }
}

/// Goes back to the context before.
struct Back(&'static Context);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
