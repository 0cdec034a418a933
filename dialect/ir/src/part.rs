//! Fission: parts of tensors, computed by ops of their own.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use crate::text::Name;

/// What a result of an op holds after fission: a part of a tensor that the graph before fission computed whole, or what an op finds over such
/// a part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Name of that tensor.
    pub of: String,
    /// By axis of the tensor: which rows, from `start` up to and without `end`; the box of the part.
    pub ranges: Vec<Range<u64>>,
    /// Rows of the result that are none of the tensor, because the kernel had too few rows around them: they are sliced off.
    pub spare: Option<Spare>,
    /// Whether the result is not the part itself, but what its op sums up over it, as the maximum of these rows.
    pub is_sum: bool,
}

/// Rows of a result that stand before and after a part of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
            is_sum: false,
        }
    }

    /// The dimensions of a result that holds the part, spare rows included; those of what is summed up over it do not follow from it. `None` if one does not fit 64 bits, or if spare rows lie on an
    /// axis that the part does not have.
    #[must_use]
    pub fn dims(&self) -> Option<Vec<u64>> {
        let mut dims: Vec<u64> = self
            .ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start))
            .collect();
        if let Some(Spare { axis, before, after }) = self.spare {
            let dim = dims.get_mut(axis)?;
            *dim = dim.checked_add(before)?.checked_add(after)?;
        }
        Some(dims)
    }
}

/// For people, and as the textual form writes it: `y[0:1, 0:64, 8:16]`, `y[0:4] spare 0 before 1 after 1`, `over x[0:4]`.
impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let over = if self.is_sum { "over " } else { "" };
        write!(f, "{over}{}[", Name(&self.of))?;
        for (i, range) in self.ranges.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}:{}", range.start, range.end)?;
        }
        f.write_str("]")?;
        match self.spare {
            Some(Spare { axis, before, after }) => write!(f, " spare {axis} before {before} after {after}"),
            None => Ok(()),
        }
    }
}
