//! Fission: parts of tensors, computed by ops of their own.

use std::ops::Range;

/// What a result of an op holds after fission: a part of a tensor that the graph before fission computed whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Name of that tensor.
    pub of: String,
    /// By axis of the tensor: which rows, from `start` up to and without `end`; the box of the part.
    pub ranges: Vec<Range<u64>>,
    /// Rows of the result that are none of the tensor, because the kernel had too few rows around them: they are sliced off.
    pub spare: Option<Spare>,
}

/// Rows of a result that stand before and after a part of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// The axis.
    pub axis: usize,
    /// Rows before the part.
    pub before: u64,
    /// Rows after it.
    pub after: u64,
}

impl Part {
    /// The whole tensor of this name and these dimensions.
    #[must_use]
    pub fn whole(of: impl Into<String>, dims: &[u64]) -> Self {
        Self {
            of: of.into(),
            ranges: dims.iter().map(|&dim| 0..dim).collect(),
            spare: None,
        }
    }
}
