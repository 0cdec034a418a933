//! What is open when the next buffer is chosen.

use crate::instance::Item;

/// A buffer without an offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Open {
    /// The lowest offset that it may have.
    pub(super) lowest: i64,
    /// Its position in the order of preference.
    pub(super) position: usize,
    pub(super) item: Item,
}

/// What is open when the next buffer is chosen.
#[derive(Default)]
pub(super) struct Node {
    /// Ascending.
    pub(super) open: Vec<Open>,
    /// Where each ends if it lies as low as it may, ascending.
    pub(super) tops: Vec<(i64, Item)>,
    /// For each of `open`, once it was asked for: the lowest offset on top of another one, `None` where none meets it in time.
    pub(super) supports: Vec<Option<Option<i64>>>,
}
