//! Reports that are kept for a caller instead of printed.

use crate::context;

/// Keeps what the command of this thread prints from now on; what is said on stderr is dropped.
pub(crate) fn capture() {
    *context::current().kept() = Some(String::new());
}

/// What was kept. From now on, all is printed.
pub(crate) fn captured() -> String {
    context::current().kept().take().unwrap_or_default()
}

/// Whether all is kept.
pub(crate) fn is_captured() -> bool {
    context::current().kept().is_some()
}

/// Keeps a text, where all is kept.
pub(super) fn takes(text: &str) -> bool {
    let mut kept = context::current().kept();
    kept.as_mut().map(|kept| kept.push_str(text)).is_some()
}
