//! What is open when the next buffer is chosen, and the way there.

use alloc::vec;
use alloc::vec::Vec;

use crate::place::instance::{Item, Span};

/// What became of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Every buffer has an offset.
    Placed,
    /// Every canonical placement was tried, so there is none at all.
    Impossible,
    /// The tries are used up.
    Stopped,
}

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

/// One of the buffers of a node is tried.
pub(super) struct Choice {
    pub(super) node: Node,
    pub(super) sections: Span,
    /// None before this one is tried: the one that was placed last in the same part.
    pub(super) after: Option<Open>,
    /// The load of the fullest section.
    pub(super) fullest: i64,
    /// Which of `node.open` is tried.
    pub(super) at: usize,
    /// What placing it raised stands in the trail from there on.
    pub(super) mark: usize,
    /// Whether any open one meets it in time.
    pub(super) has_neighbours: bool,
    /// Whether the others fall into parts that are placed apart.
    pub(super) is_split: bool,
}

/// Open buffers that are connected in time.
pub(super) struct Part {
    pub(super) sections: Span,
    pub(super) items: Vec<Item>,
    /// What the fullest section has left.
    pub(super) slack: i64,
}

/// Parts that are placed one after the other.
pub(super) struct Split {
    /// Those to come.
    pub(super) rest: vec::IntoIter<Part>,
    /// What stands for the one that is being placed.
    pub(super) key: u128,
}

/// A step on the way down.
pub(super) enum Frame {
    Choice(Choice),
    Split(Split),
}

/// Where the search goes next.
pub(super) enum Next {
    /// Further down.
    Down(Frame),
    /// Back up, with what came of it.
    Up(Answer),
}
