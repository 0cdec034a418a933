//! Whether and how fused chains of a model run tile by tile.

use clap::Args;
use remat::FissionRequest;
use remat::fission::{Axis, Exactness};

use super::{Choice, GOAL};

/// Whether fused chains run tile by tile, and which bits they may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fission {
    /// None does.
    Off,
    /// Where every bit stays.
    Exact,
    /// Where sums may be split, too, and are rounded otherwise.
    Close,
}

const FISSION: Choice<Fission> = Choice(&[
    ("off", Fission::Off, "Ops run whole"),
    ("exact", Fission::Exact, "With bit-identical outputs"),
    ("close", Fission::Close, "Sums may be split and rounded otherwise"),
]);

/// What may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    /// One axis.
    Along(Axis),
    /// Rows, and each tile of them along columns.
    Grid,
}

const AXES: Choice<Cut> = Choice(&[
    ("rows", Cut::Along(Axis::Rows), "Rows of images"),
    ("columns", Cut::Along(Axis::Columns), "Columns of images"),
    ("channels", Cut::Along(Axis::Channels), "Channels of images"),
    ("batch", Cut::Along(Axis::Batch), "Members of a batch"),
    ("heads", Cut::Along(Axis::Heads), "Heads of an attention"),
    ("query-rows", Cut::Along(Axis::QueryRows), "Rows of scores"),
    ("tokens", Cut::Along(Axis::Tokens), "Tokens of a text"),
    (
        "rows+columns",
        Cut::Grid,
        "Rows of images, each tile of them along columns",
    ),
]);

#[derive(Debug, Args)]
pub(crate) struct FissionArgs {
    /// Whether large ops may run tile by tile: `off`, `exact`, `close`.
    ///
    /// By default `exact` for ONNX Runtime, else `off`. `exact` keeps outputs bit-identical: with up to `--exact-threads` threads, kernels of ONNX Runtime add up tiles in the order of the whole op. `close` may
    /// split sums and take other kernels, which round otherwise; how far outputs lie apart is measured on inputs of several kinds.
    #[arg(long, value_name = "HOW", value_parser = FISSION, hide_possible_values = true, help_heading = GOAL, hide_short_help = true)]
    fission: Option<Fission>,
    /// Number of threads within an op (`intra_op_num_threads`) up to which `--fission exact` keeps outputs bit-identical: that of the largest machine that runs the model. Fewer permit more tiles. On processors with two kinds of cores each thread counts as four.
    #[arg(long, value_name = "N", default_value_t = FissionRequest::EXACT_THREADS, value_parser = clap::value_parser!(u32).range(1..=128), help_heading = GOAL, hide_short_help = true)]
    exact_threads: u32,
    /// Numbers of tiles to try.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..), help_heading = GOAL, hide_short_help = true)]
    tiles: Vec<u32>,
    /// Axes that may be cut: `rows`, `columns`, `channels`, `batch`, `heads`, `query-rows`, `tokens`; all of these unless given. `rows+columns`: both at once, a grid.
    #[arg(long, value_name = "AXIS,..", value_delimiter = ',', value_parser = AXES, hide_possible_values = true, help_heading = GOAL, hide_short_help = true)]
    axis: Vec<Cut>,
}

impl FissionArgs {
    /// Whether outputs may be rounded otherwise.
    pub(crate) fn permits_other_bits(&self) -> bool {
        self.fission == Some(Fission::Close)
    }

    /// With up to how many threads tiles keep every bit that are chosen to do so.
    pub(crate) fn exact_threads(&self) -> u32 {
        match self.fission {
            Some(Fission::Close) => FissionRequest::EXACT_THREADS,
            _ => self.exact_threads,
        }
    }

    /// What the command line says of it, for another command.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(name) = self.fission.and_then(|fission| FISSION.name_of(fission)) {
            add("--fission", name.to_owned());
        }
        if self.exact_threads != FissionRequest::EXACT_THREADS {
            add("--exact-threads", self.exact_threads.to_string());
        }
        if !self.tiles.is_empty() {
            let tiles: Vec<String> = self.tiles.iter().map(u32::to_string).collect();
            add("--tiles", tiles.join(","));
        }
        let axes: Vec<&str> = self.axis.iter().filter_map(|&cut| AXES.name_of(cut)).collect();
        if !axes.is_empty() {
            add("--axis", axes.join(","));
        }
        words
    }

    /// What is asked of fission; `None` where nothing may be tiled. Where nothing is said, that depends on whether the model is made for ONNX
    /// Runtime, whose kernels add up in a known order.
    pub(crate) fn request(&self, is_for_runtime: bool) -> Option<FissionRequest> {
        let by_default = if is_for_runtime { Fission::Exact } else { Fission::Off };
        let exactness = match self.fission.unwrap_or(by_default) {
            Fission::Off => return None,
            Fission::Exact => Exactness::Exact {
                threads: self.exact_threads,
                blocks: false,
            },
            Fission::Close => Exactness::Close,
        };
        let mut axes = Vec::new();
        for &cut in &self.axis {
            let axis = match cut {
                Cut::Along(axis) => axis,
                Cut::Grid => Axis::Rows,
            };
            if !axes.contains(&axis) {
                axes.push(axis);
            }
        }
        Some(FissionRequest {
            exactness,
            tiles: self.tiles.clone(),
            axes,
            grids: self.axis.contains(&Cut::Grid),
            two_passes: false,
            op_bytes: 0,
        })
    }
}
