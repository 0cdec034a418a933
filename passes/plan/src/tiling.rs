//! What is computed in tiles: a value that names ops, so that it can stand in a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which normalizations and the like of a graph run in two passes, which ops run earlier, which fused chains run again before a later op, and which run tile
/// by tile.
///
/// Each is of the graph after all before it. Fused chains do not overlap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tiling {
    /// Normalizations that run in two passes, by the name of their last op, which the second pass has. The op that finds the statistics of
    /// their operand stands right behind what makes that, and has the name and `_moments`; the one that makes factors of them stands before the
    /// second pass, and has the name and `_normalizer`. Softmaxes, too, alone or with the product that each is the left operand of: right before
    /// the last op stands one with the name and `_exponentials`. And ops that find the largest or smallest elements along an axis: before the one of
    /// their name stands one with the name and `_best`, and, where both results are read, one with the name and `_values`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streamed: Vec<String>,
    /// Ops that run earlier, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    /// Fused chains that run a second time, in this order.
    #[serde(default)]
    pub again: Vec<Again>,
    /// Fused chains that run tile by tile.
    pub fused_chains: Vec<FusedChain>,
    /// Whether it was chosen where outputs may round otherwise: sums may be split, and whoever writes it may take other kernels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
    /// Where images are laid out in blocks of channels: the results, without tiles, of convolutions that stay in the usual layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<String>,
}

impl Tiling {
    /// Whether ops run tile by tile, or again: without, only kernels are others.
    #[must_use]
    pub fn has_tiles(&self) -> bool {
        !(self.fused_chains.is_empty() && self.again.is_empty() && self.streamed.is_empty())
    }
}

/// An op that runs right before an earlier one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// The op.
    pub op: String,
    /// The op that it stands before now.
    pub before: String,
}

/// A fused chain of ops that runs a second time, right before a later op: that op and all after it read the new results. Ops of the
/// fused chain that none of them needs do not. The clone of an op has its name and `_again`, then a number where that is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// The first op, in reference order.
    pub first: String,
    /// The last op.
    pub last: String,
    /// The op before which the clones stand.
    pub before: String,
}

/// A fused chain of ops that runs tile by tile: tile `t` runs all ops of the fused chain before tile `t + 1`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FusedChain {
    /// The first op, in reference order.
    pub first: String,
    /// The last op.
    pub last: String,
    /// The number of tiles, at least 2.
    pub tiles: u32,
    /// The axis along which results that leave the fused chain are cut; for all others it follows.
    pub axis: Axis,
    /// What happens to rows that two tiles need.
    pub mode: Mode,
    /// How each tile runs in tiles itself: a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
}

/// Tiles of a tile, along another axis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The number of tiles, at least 2.
    pub tiles: u32,
    /// The axis along which results that leave the fused chain are cut.
    pub axis: Axis,
    /// What happens to rows of that axis that two tiles of one tile need.
    pub mode: Mode,
}

/// An axis of results, by their rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The first axis of an image: 2; of a matrix in a batch: 1; of a matrix: 0.
    Rows,
    /// The axis after the rows: 3, 2 or 1.
    Columns,
    /// Axis 1, where images have their channels.
    Channels,
    /// Axis 0.
    Batch,
    /// Heads of an attention: 1 of four axes, else 0.
    Heads,
    /// Rows of scores: the last axis but one.
    QueryRows,
    /// Axis 1, of a matrix 0: where texts have their tokens, and images with channels last their rows.
    Tokens,
}

/// What happens to rows that two tiles need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every row is computed once. Rows that a later tile needs are sliced off at once: a line buffer.
    LineBuffer,
    /// Every tile computes all rows that it needs.
    Recompute,
    /// As `line-buffer` for results that are smaller than what they are computed from, as `recompute` for all others: between the wide results within blocks of
    /// a network, only the narrow ones at their ends are kept.
    Hybrid,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Self; 7] = [
        Self::Rows,
        Self::Columns,
        Self::Channels,
        Self::Batch,
        Self::Heads,
        Self::QueryRows,
        Self::Tokens,
    ];

    /// The axis of a result of this rank, if it has one of this kind.
    #[must_use]
    pub fn of_rank(self, rank: usize) -> Option<usize> {
        let axis = match (self, rank) {
            (_, 0) => return None,
            (Self::Batch, _) => 0,
            (Self::Rows, 4..) => 2,
            (Self::Columns, 4..) => 3,
            (Self::Rows | Self::QueryRows, _) => rank.checked_sub(2)?,
            (Self::Columns, _) => rank - 1,
            (Self::Channels, 2..) => 1,
            (Self::Heads, 4..) => 1,
            (Self::Tokens, 3..) => 1,
            (Self::Heads | Self::Tokens, _) => 0,
            (Self::Channels, _) => return None,
        };
        (axis < rank).then_some(axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_stand_where_layouts_have_them() {
        let of = |axis: Axis| [1, 2, 3, 4, 5].map(|rank| axis.of_rank(rank));
        assert_eq!(of(Axis::Rows), [None, Some(0), Some(1), Some(2), Some(2)]);
        assert_eq!(of(Axis::Columns), [Some(0), Some(1), Some(2), Some(3), Some(3)]);
        assert_eq!(of(Axis::Channels), [None, Some(1), Some(1), Some(1), Some(1)]);
        assert_eq!(of(Axis::Batch), [Some(0); 5]);
        assert_eq!(of(Axis::Heads), [Some(0), Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(of(Axis::QueryRows), [None, Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(of(Axis::Tokens), [Some(0), Some(0), Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn a_tiling_is_read_as_it_was_written() {
        let tiling = Tiling {
            again: vec![Again {
                first: "a".into(),
                last: "b".into(),
                before: "c".into(),
            }],
            fused_chains: vec![FusedChain {
                first: "a_again".into(),
                last: "d".into(),
                tiles: 4,
                axis: Axis::QueryRows,
                mode: Mode::LineBuffer,
                within: None,
            }],
            ..Tiling::default()
        };
        let text = serde_json::to_string(&tiling).unwrap();
        assert!(
            text.contains("\"query-rows\"")
                && !text.contains("within")
                && !text.contains("streamed")
                && !text.contains("moved")
                && !text.contains("close"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Tiling>(&text).unwrap(), tiling);
    }
}
