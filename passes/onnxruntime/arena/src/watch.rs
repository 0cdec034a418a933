//! A thread that gives back what sessions left whose end nothing else shows. It is there only while there are blocks of such sessions.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::session::Session;

/// A block goes that nobody used from one look to the next.
const LOOK: Duration = Duration::from_millis(500);

/// The process in which the thread runs: that of a parent is not there after a fork.
static RUNS_IN: Mutex<Option<u32>> = Mutex::new(None);

/// Looks after idle blocks from now on. Where no thread can be started, they stay until another session loads.
pub(crate) fn start() {
    let mut runs_in = RUNS_IN.lock().unwrap_or_else(PoisonError::into_inner);
    let this = Some(std::process::id());
    if *runs_in != this
        && std::thread::Builder::new()
            .name("remat-arena".to_owned())
            .spawn(watch)
            .is_ok()
    {
        *runs_in = this;
    }
}

fn watch() {
    loop {
        std::thread::sleep(LOOK);
        // Who asks for a thread meanwhile waits, and finds that there is one or that it is gone.
        let mut runs_in = RUNS_IN.lock().unwrap_or_else(PoisonError::into_inner);
        let remaining = Session::all()
            .iter()
            .filter(|session| session.state().blocks.look())
            .count();
        if remaining == 0 {
            *runs_in = None;
            return;
        }
    }
}
