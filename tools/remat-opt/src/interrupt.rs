//! Ctrl-C: the search stops, and the best so far is used.

use std::sync::atomic::{AtomicBool, Ordering};

/// Raised by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// The flag that Ctrl-C raises from now on; a second Ctrl-C ends the program at once. Where no handler can be set, the default one
/// does so the first time.
pub(crate) fn flag() -> &'static AtomicBool {
    let handler = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::abort();
        }
    });
    if let Err(error) = handler {
        tracing::warn!("Ctrl-C will end the run without a plan: {error}");
    }
    &STOP
}
