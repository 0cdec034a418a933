//! Lowering strategies as data: the ways to write a model for the runtime, from the one that gains most to the one that changes least.

use std::fmt;

use remat::Model;
use schemars::JsonSchema;
use serde::Serialize;

/// How plans say that the runtime laid the model out, after its name.
pub(crate) const LAID_OUT: &str = ", laid out for this machine";

/// Whether plans that name this runtime are for what it lays out.
pub(crate) fn is_laid_out(by: &str) -> bool {
    by.ends_with(LAID_OUT)
}

/// How plans say that what the runtime would take apart was written for two passes before it fused nodes, after its name.
pub(crate) const FOR_TWO_PASSES: &str = ", written for two passes";

/// Whether plans that name this runtime are for such models.
pub(crate) fn is_for_two_passes(by: &str) -> bool {
    by.strip_suffix(LAID_OUT).unwrap_or(by).ends_with(FOR_TWO_PASSES)
}

/// How plans say that the runtime optimized a model in half precision to the end before it was planned, but for layouts, after its name.
pub(crate) const OPTIMIZED: &str = ", optimized to the end";

/// Whether plans that name this runtime are for such models.
pub(crate) fn is_optimized(by: &str) -> bool {
    by.contains(OPTIMIZED)
}

/// The runtime that made this model of the input.
pub(crate) fn runtime_of(model: &Model) -> Option<&str> {
    model.setup()?.fused_by.as_deref()
}

/// A way to write a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The runtime fuses what it can first; fused chains of the result run tile by tile; order, clones and shapes are fixed in it.
    Tiled,
    /// The runtime fuses what it can and lays images out in blocks first; order, clones and shapes are fixed such that it does so again.
    LaidOut,
    /// The runtime fuses what it can first; order, clones and shapes are fixed in the result.
    Fused,
    /// The model's own nodes; order, clones and shapes are fixed.
    Plain,
    /// The model's own nodes; order and clones are fixed, shapes are left to the runtime, which reuses buffers.
    #[serde(rename = "static-shapes")]
    StaticShapes,
    /// As it came. Only where no budget asks for more.
    Untouched,
}

/// What a strategy does to the model.
#[derive(Debug)]
pub(crate) struct Recipe {
    strategy: Strategy,
    words: &'static str,
    /// The runtime fuses nodes, and the result is planned on.
    pub(crate) fuses: bool,
    /// The runtime lays out images in blocks, and what runs then is planned on.
    pub(crate) lays_out: bool,
    /// Stretches run tile by tile, and the tiles are planned on.
    pub(crate) tiles: bool,
    /// A plan is made and written down; else the model stays as it came.
    pub(crate) rewrites: bool,
    /// Shapes are made dynamic, so that the runtime does not reuse buffers.
    pub(crate) dynamic_shapes: bool,
}

/// What strategies share that rewrite the model's own nodes.
const PLAIN: Recipe = Recipe {
    strategy: Strategy::Plain,
    words: "the model's own nodes",
    fuses: false,
    lays_out: false,
    tiles: false,
    rewrites: true,
    dynamic_shapes: true,
};

/// What strategies share for which the runtime fuses nodes first.
const FUSED: Recipe = Recipe {
    strategy: Strategy::Fused,
    words: "fused by the runtime first",
    fuses: true,
    ..PLAIN
};

/// All strategies, in the order in which they are tried.
const RECIPES: [Recipe; 6] = [
    Recipe {
        strategy: Strategy::Tiled,
        words: "fused by the runtime first, large fused chains tile by tile",
        tiles: true,
        ..FUSED
    },
    Recipe {
        strategy: Strategy::LaidOut,
        words: "fused and laid out by the runtime first",
        lays_out: true,
        ..FUSED
    },
    FUSED,
    PLAIN,
    Recipe {
        strategy: Strategy::StaticShapes,
        words: "the model's own nodes, static shapes",
        dynamic_shapes: false,
        ..PLAIN
    },
    Recipe {
        strategy: Strategy::Untouched,
        words: "unchanged",
        rewrites: false,
        dynamic_shapes: false,
        ..PLAIN
    },
];

impl Strategy {
    /// All of them, in the order in which they are tried. Tiles come first under every budget: they are tried where they are estimated to take
    /// less than plans of whole ops, or under a budget, less time.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        RECIPES.iter().map(|recipe| recipe.strategy)
    }

    /// Whether nothing is in another order each time that the runtime loads the file: where it lays out a model by itself, copies for one node may be.
    #[must_use]
    pub fn fixes_copies(self) -> bool {
        self.recipe().dynamic_shapes
    }

    /// What it does.
    pub(crate) fn recipe(self) -> &'static Recipe {
        &RECIPES[self as usize]
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.recipe().words)
    }
}

#[cfg(test)]
#[path = "strategy_tests.rs"]
mod tests;
