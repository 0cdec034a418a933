//! All sessions of which something is counted, by the numbers that programs know them by.

use std::sync::{Mutex, PoisonError};

use crate::counts::{AllocationCounts, RecordedEvent};

/// The sessions of one set of options.
pub(crate) trait Counted: Sync {
    /// What is known of its allocations.
    fn figures(&self) -> AllocationCounts;
    /// Up to so many recorded events, the oldest first; they are forgotten then.
    fn take_events(&self, most: usize) -> Vec<RecordedEvent>;
}

static ALL: Mutex<Vec<&dyn Counted>> = Mutex::new(Vec::new());

/// Gives one a number, from 0.
pub(crate) fn add(one: &'static dyn Counted) -> usize {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(one);
    all.len() - 1
}

/// All of them, in the order of their numbers.
pub(crate) fn all() -> Vec<&'static dyn Counted> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
