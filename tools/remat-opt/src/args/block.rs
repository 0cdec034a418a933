//! The block of a plan, on the command line.

use std::path::PathBuf;

use clap::Args;
use remat::plan::Bound;

use super::{Choice, GOAL, OUTPUT};

const BOUNDS: Choice<Bound> = Choice(&[
    ("load", Bound::Load, "What is needed at once"),
    ("block", Bound::Block, "The block that everything lies in"),
]);

/// Whether a plan gets offsets, and what the budget bounds.
#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// Give every buffer of the plan an offset in one block of memory.
    ///
    /// The block is as small as is found, with graph outputs at its beginning. It stands in the report and the plan (`.json`, `.sched`, `.remat`,
    /// `--emit-plan`). ONNX Runtime places results itself: for its models the block shows what one block would take.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    place: bool,
    /// What the budget bounds: `load`, the most bytes that are needed at once, or `block`, the block that they lie in.
    ///
    /// `block` implies `--place`. If a block does not fit, a plan with a lower load is searched for and placed, until the limits of the
    /// search are reached. Use a size or a share as budget; `auto` and `min` minimize the load.
    #[arg(long, value_name = "WHAT", value_parser = BOUNDS, default_value = "load", hide_possible_values = true, conflicts_with = "plan", help_heading = GOAL, hide_short_help = true)]
    pub(crate) bound: Bound,
    /// Draw the block over the steps of the plan here, as SVG; implies `--place`.
    #[arg(long, value_name = "CHART", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) block_svg: Option<PathBuf>,
}

impl BlockArgs {
    /// Whether everything gets an offset.
    pub(crate) fn places(&self) -> bool {
        self.place || self.bound == Bound::Block || self.block_svg.is_some()
    }
}
