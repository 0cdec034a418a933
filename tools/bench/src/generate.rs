//! `remat-bench generate`: a random layered graph of any size.

use std::path::PathBuf;

use anyhow::Context;
use remat_files::OutputFile;

use crate::layered::{Layered, Skips};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of nodes, first and last included.
    #[arg(long, value_name = "N")]
    nodes: usize,
    /// Most nodes in a level [default: 7/4 of the mean].
    #[arg(long, value_name = "W")]
    width: Option<usize>,
    /// Number of levels, first and last included [default: such that levels have 20 nodes, or fewer below 1,000 nodes].
    #[arg(long, value_name = "L")]
    levels: Option<usize>,
    /// Probability that a node reads a given node of the level before; one is read anyway.
    #[arg(long, value_name = "P", default_value_t = 0.2)]
    density: f64,
    /// Share of the edges that skip levels.
    #[arg(long, value_name = "SHARE", default_value_t = 0.14)]
    skip_share: f64,
    /// How far they reach: `uniform` or `geometric:MEAN`.
    #[arg(long, value_name = "DIST", default_value_t = Skips::Uniform)]
    skips: Skips,
    /// Seed of the random choices.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Where to write the networkx node-link JSON.
    #[arg(short, long, value_name = "GRAPH")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let shape = Layered {
        density: args.density,
        skip_share: args.skip_share,
        skips: args.skips,
        ..Layered::new(args.nodes, args.levels, args.width, args.seed)
    };
    let graph = shape.generate()?;
    let written = || format!("cannot write `{}`", args.output.display());
    let mut out = OutputFile::create(&args.output).with_context(written)?;
    graph
        .write(&mut out)
        .and_then(|()| out.commit())
        .with_context(written)?;
    crate::console::print(&format!(
        "{}: {} nodes, {} edges, {} levels\n",
        graph.name,
        args.nodes,
        graph.edges(),
        shape.levels
    ));
    Ok(())
}
