//! What a rule answers.

use std::collections::BTreeMap;
use std::ops::Range;

use remat_ir::Attribute;

/// What a part of a result needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cut {
    /// By operand.
    pub needs: Vec<Need>,
    /// Attributes of the clone that differ from the original's.
    pub attributes: BTreeMap<String, Attribute>,
    /// Operands of the clone that are new constants.
    pub integers: BTreeMap<usize, Integers>,
    /// Rows of the clone's result before and after those asked for; 0 for most.
    pub spare: (u64, u64),
}

/// What a clone reads of an operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// All of it.
    Whole,
    /// Rows of one axis.
    Rows {
        /// The axis of the operand.
        axis: usize,
        /// The rows.
        rows: Range<u64>,
    },
}

/// A new constant of 64-bit integers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Integers {
    /// Its dimensions.
    pub dims: Vec<u64>,
    /// Its elements in row-major order.
    pub elements: Vec<i64>,
}

impl Integers {
    /// A list of integers.
    #[must_use]
    pub fn list(elements: Vec<i64>) -> Self {
        Self {
            dims: vec![elements.len() as u64],
            elements,
        }
    }
}
