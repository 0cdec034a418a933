//! The arguments of `remat-opt verify`, whatever it verifies.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use remat::plan::parse_duration;

use crate::args::{INPUT, LoadArgs, OUTPUT, PageArgs, RUNTIME, ReportArgs, SessionArgs};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Model (`.onnx`), node-link graph (`.json`) or saved problem (`.json`); `-` for stdin.
    #[arg(value_name = "MODEL")]
    pub(super) input: PathBuf,
    /// Plan to replay (`.json`, `.sched`), or rewritten model to run (`.onnx`); `-` for stdin.
    ///
    /// A plan is replayed under its own accounting and budget. With a rewritten model, both models run in ONNX Runtime on the same inputs:
    /// their outputs are compared bit by bit, and memory and time are measured.
    #[arg(value_name = "PLAN|REWRITTEN")]
    pub(super) plan: PathBuf,
    /// Also write the report here, as JSON.
    #[arg(short, long, value_name = "REPORT", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
    /// For plans: also draw runs, transfers and memory over time here, as SVG.
    #[arg(long, value_name = "CHART", help_heading = OUTPUT)]
    pub(super) svg: Option<PathBuf>,
    /// For plans with offsets: also draw their block over the steps here, as SVG.
    #[arg(long, value_name = "CHART", help_heading = OUTPUT)]
    pub(super) block_svg: Option<PathBuf>,
    #[command(flatten)]
    pub(super) load: LoadArgs,
    /// For `.sched` files of models in tiles: the plan (`--emit-plan`) that states the tiles of each fused chain.
    #[arg(long, value_name = "PLAN", help_heading = INPUT, hide_short_help = true)]
    pub(super) tiles_from: Option<PathBuf>,
    /// For models: the outputs of the rewritten one may round otherwise, as after `--fission close`.
    ///
    /// They run on inputs of several kinds, too. Outputs may differ by this share of their largest magnitude on ordinary ones.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "0.001", value_parser = share, help_heading = RUNTIME)]
    pub(super) close: Option<f64>,
    #[command(flatten)]
    pub(super) page: PageArgs,
    #[command(flatten)]
    pub(super) report: ReportArgs,
    #[command(flatten)]
    pub(super) session: SessionArgs,
    /// Warm runs of each model.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = RUNTIME)]
    pub(super) runs: u32,
    /// Time limit of each process that runs the models.
    ///
    /// The process of the second model also ends after a multiple of the time of the first one.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration, help_heading = RUNTIME)]
    pub(super) time_limit: Duration,
    /// Seed of the first inputs.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RUNTIME)]
    pub(super) seed: u64,
    /// How many seeds to compare outputs for, counted up from the first.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..), help_heading = RUNTIME)]
    pub(super) seeds: u32,
}

/// A share above 0 and below 1.
fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "a number is expected".to_owned())?;
    match share > 0.0 && share < 1.0 {
        true => Ok(share),
        false => Err("a share lies between 0 and 1".to_owned()),
    }
}
