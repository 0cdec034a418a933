//! `remat-opt place`: offsets for buffers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use remat::place::{BufferFile, read_csv, write_csv};
use remat::plan::{Blocks, PlacementCertificate, parse_bytes, parse_duration};
use remat::solver::SolveControl;
use remat::{Placed, PlacementError, place_buffers};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Arguments, GOAL, Inputs, OUTPUT, OutputPath, ReportArgs, SEARCH, Talk, named};
use crate::block::{exact, proof};
use crate::document::Body;
use crate::files::{Files, write};
use crate::{console, units};

#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Buffers, in MiniMalloc's form (`.csv`); `-` for stdin.
    ///
    /// A line for each buffer, columns by name: `id,lower,upper,size` and, if wanted, `alignment`, `gaps`, `offset` (pinned there) and
    /// `hint` (an offset to start from). `docs/placement.md` has the format.
    #[arg(value_name = "BUFFERS")]
    input: PathBuf,
    /// Find a placement in a block of this size, `256KiB` for instance; with commas, in several blocks.
    ///
    /// The first placement that fits is taken. Without this option, the lowest placement in one block is searched for.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = parse_bytes, help_heading = GOAL)]
    capacity: Vec<u64>,
    /// Time limit of the search; one pass over the buffers is always made.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, help_heading = SEARCH)]
    time_limit: Duration,
    /// Maximum number of offsets that are tried.
    ///
    /// With the same seed, and a time limit that is not reached, every run gives the same placement.
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    step_limit: Option<u64>,
    /// Seed of the random choices.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SEARCH)]
    seed: u64,
    /// Write the buffers with their offsets here, as CSV; `-` for stdout.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

/// Buffers that were placed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Number of buffers.
    buffers: usize,
    /// The largest sum of sizes that are needed at one time.
    load_bytes: u64,
    /// What is claimed about the placement; `height` and `bound` are in bytes.
    certificate: PlacementCertificate,
    /// How far the height lies above the bound, as a share of the bound.
    gap: Option<f64>,
    /// What each block holds; one block without a capacity where none is given.
    blocks: Vec<Block>,
    /// Where the buffers were written with their offsets.
    output: Option<PathBuf>,
    /// Time of the search.
    seconds: f64,
}

/// One block.
#[derive(Serialize, JsonSchema)]
struct Block {
    /// Its size, where it is given.
    capacity_bytes: Option<u64>,
    /// The end of the buffer that ends last in it; absent where nothing is placed.
    height_bytes: Option<u64>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-place/1";

    fn text(&self) -> String {
        let certificate = &self.certificate;
        let mut lines = vec![
            format!("buffers   {}", self.buffers),
            format!("load      {}", exact(self.load_bytes)),
        ];
        if let Some(height) = certificate.height {
            let above = units::percent(height, self.load_bytes) - 100.0;
            lines.push(format!("height    {}, {above:.2} % above the load", exact(height)));
        }
        let several = self.blocks.iter().enumerate().filter(|_| self.blocks.len() > 1);
        lines.extend(several.map(|(index, block)| {
            let used = block.height_bytes.map_or_else(|| "nothing".to_owned(), units::bytes);
            format!(
                "block {index}   {used} of {}",
                units::bytes(block.capacity_bytes.unwrap_or(0))
            )
        }));
        let is_lowest = self.blocks.iter().all(|block| block.capacity_bytes.is_none());
        lines.push(format!("proof     {}", proof(certificate, is_lowest)));
        lines.push(format!("time      {:.2} s", self.seconds));
        lines.extend(self.output.iter().map(|path| format!("written   {}", path.display())));
        lines.join("\n") + "\n"
    }
}

impl Arguments for PlaceArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs::one(&mut self.input)
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([(&mut self.output, "csv")])
    }

    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let mut files = Files::default();
        files.reads("the buffers", [self.input.as_path()])?;
        files.writes("the placement (`-o`)", self.output.as_deref())?;
        let text = remat::read_text(&self.input)?;
        let file = read_csv(&text)
            .map_err(PlacementError::from)
            .map_err(remat::Error::from)?;
        let blocks = match &self.capacity[..] {
            [] => Blocks::Lowest,
            sizes => Blocks::Given(sizes.to_vec()),
        };
        let started = Instant::now();
        let placed = place_buffers(&file, &blocks, &self.control())?;
        let took = started.elapsed();
        if let (Some(path), Some(placement)) = (&self.output, &placed.outcome.placement) {
            write(path, write_csv(&file.buffers, placement))?;
        }
        let outcome = placed.failure(&blocks).map_or(Ok(()), |error| Err(error.into()));
        console::report(&self.report, &Report::new(self, &file, &placed, &blocks, took), outcome)
    }
}

impl PlaceArgs {
    fn control(&self) -> SolveControl<'static> {
        let control = SolveControl::new().time_limit(self.time_limit).seed(self.seed);
        let mut control = control.cancel(crate::interrupt::flag());
        control.step_limit = self.step_limit;
        control
    }
}

impl Report {
    fn new(args: &PlaceArgs, file: &BufferFile, placed: &Placed, blocks: &Blocks, took: Duration) -> Self {
        let certificate = placed.outcome.certificate.clone();
        let capacities: Vec<Option<u64>> = match blocks {
            Blocks::Lowest => vec![None],
            Blocks::Given(sizes) => sizes.iter().copied().map(Some).collect(),
        };
        let height_of = |index: usize| Some(*placed.figures.as_ref()?.heights.get(index)?);
        let block = |(index, capacity_bytes)| Block {
            capacity_bytes,
            height_bytes: height_of(index),
        };
        let share = |height: u64| (height - certificate.bound) as f64 / certificate.bound.max(1) as f64;
        Self {
            buffers: file.buffers.len(),
            load_bytes: remat::place::load(&file.buffers),
            gap: certificate.height.map(share),
            blocks: capacities.into_iter().enumerate().map(block).collect(),
            output: args.output.clone().filter(|_| certificate.height.is_some()),
            seconds: took.as_secs_f64(),
            certificate,
        }
    }
}
