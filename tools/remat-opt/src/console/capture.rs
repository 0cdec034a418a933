//! Reports that are kept for a caller instead of printed.

use std::sync::{Mutex, PoisonError};

/// What would have been printed; nothing where it is printed.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// Keeps what is printed from now on; what is said on stderr is dropped.
pub(crate) fn capture() {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
}

/// What was kept. From now on, all is printed.
pub(crate) fn captured() -> String {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    kept.unwrap_or_default()
}

/// Whether all is kept.
pub(crate) fn is_captured() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Keeps a text, where all is kept.
pub(super) fn takes(text: &str) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_mut().map(|kept| kept.push_str(text)).is_some()
}
