//! Ways to write a model for the runtime, from the one that gains most to the one that changes least.

use std::fmt;

use remat_onnxruntime_lower::{LoweringOptions, OrderHint};
use schemars::JsonSchema;
use serde::Serialize;

/// How a model is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The runtime fuses what it can first; order, clones and shapes are fixed in the result.
    Fused,
    /// The model's own nodes; order, clones and shapes are fixed.
    Plain,
    /// The model's own nodes; order and clones are fixed, shapes are left to the runtime, which reuses buffers.
    ShapesShown,
    /// As it came. Only where no budget asks for more.
    Untouched,
}

impl Variant {
    /// All of them, in the order in which they are tried.
    pub(crate) const ALL: [Self; 4] = [Self::Fused, Self::Plain, Self::ShapesShown, Self::Untouched];

    /// What is written, without a reserve.
    pub(crate) fn options(self, order: OrderHint) -> LoweringOptions {
        LoweringOptions {
            order,
            hide_shapes: self != Self::ShapesShown,
            reserve: 0,
        }
    }

    /// Whether the runtime goes over the model first.
    pub(crate) fn is_fused(self) -> bool {
        self == Self::Fused
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fused => "fused by the runtime first",
            Self::Plain => "the model's own nodes",
            Self::ShapesShown => "the model's own nodes, static shapes",
            Self::Untouched => "unchanged",
        })
    }
}

/// A variant that was tried and given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Abandoned {
    /// The variant.
    pub variant: Variant,
    /// What was wrong with it.
    pub why: String,
}
