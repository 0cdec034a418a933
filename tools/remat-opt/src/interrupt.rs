//! SIGINT, SIGTERM and SIGHUP: everything stops, and the best that was checked is used. Where there is nothing yet, the program ends within a
//! second.
//!
//! The first signal raises a flag, which searches and processes that run models look at; the command then ends as it would at the end of
//! its time. What does not look at the flag in time (reading a large file, a foreign solver) is cut off: after [`GRACE`], where there is no
//! result that is written and reported meanwhile, or at a second signal, the program ends where it is. Temporary files go in either case.

use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::time::Duration;

use crate::context::{self, Context};

/// How long a command has to end by itself.
#[cfg(unix)]
const GRACE: Duration = Duration::from_millis(700);
/// How often is looked then whether there still is a result to wait for.
#[cfg(unix)]
const LOOK: Duration = Duration::from_millis(20);

/// The number of SIGINT.
const INTERRUPT: i32 = 2;

/// What the first signal raises, or whoever cancels the call that runs in this thread.
pub(crate) fn flag() -> &'static AtomicBool {
    &context::current().stop
}

/// As if a signal had come that asks a command to end; what is cut off is the caller's to decide.
pub(crate) fn raise(command: &Context) {
    command.signal.store(INTERRUPT, Ordering::SeqCst);
    command.stop.store(true, Ordering::SeqCst);
}

/// The exit status where the command of this thread was told to end: 128 and the number of the signal.
pub(crate) fn status() -> Option<u8> {
    let signal = context::current().signal.load(Ordering::SeqCst);
    (signal != 0).then(|| status_of(signal))
}

fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Handles signals from now on. Where that is not possible, they end the program as they always do.
#[cfg(unix)]
pub(crate) fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    // `nohup` has it ignored, and so it stays.
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    match signal_hook::iterator::Signals::new(signals) {
        Ok(signals) => _ = std::thread::spawn(move || handle(signals)),
        Err(error) => tracing::warn!("a signal will end the run without a plan: {error}"),
    }
}

/// Whether a signal is ignored in this process; `true` where the system does not say.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Where there are no such signals, Ctrl-C ends the program.
#[cfg(not(unix))]
pub(crate) fn install() {}

#[cfg(unix)]
fn handle(mut signals: signal_hook::iterator::Signals) {
    for signal in signals.forever() {
        let program = context::process();
        if program.signal.swap(signal, Ordering::SeqCst) != 0 {
            end();
        }
        program.stop.store(true, Ordering::SeqCst);
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            wait_for_result();
            end();
        });
    }
}

/// Waits as long as there is a result that is written and reported; the program ends meanwhile, unless the result turns out to be none.
#[cfg(unix)]
fn wait_for_result() {
    let has_result = || context::process().has_result.load(Ordering::SeqCst);
    if has_result() {
        crate::progress::clear();
        crate::console::write_stderr(
            "interrupted: what is there is written and reported; a second signal ends at once\n",
        );
    }
    while has_result() {
        std::thread::sleep(LOOK);
    }
}

/// Ends the program where it is.
#[cfg(unix)]
fn end() -> ! {
    crate::progress::clear();
    let has_result = context::process().has_result.load(Ordering::SeqCst);
    let what = if has_result { "" } else { ": there is no result yet" };
    crate::console::write_stderr(&format!("interrupted{what}\n"));
    leave()
}

/// Ends the program after a signal, without waiting for threads of foreign solvers that do not stop.
#[cfg(unix)]
pub(crate) fn leave() -> ! {
    remat_files::remove_pending();
    crate::scratch::remove();
    let signal = context::process().signal.load(Ordering::SeqCst);
    signal_hook::low_level::exit(status_of(signal).into())
}
