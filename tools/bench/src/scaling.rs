//! `remat-bench scaling`: time and memory on generated graphs of growing size.
//!
//! Each graph has a process of its own, so that the most memory it took is its own, too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use remat::plan::BudgetSpec;
use remat::{LoadOptions, Model};
use remat_files::OutputFile;
use serde::{Deserialize, Serialize};

use crate::console;
use crate::layered::{LayeredGraph, SKIPPED};
use crate::measure::{Effort, measure};
use crate::table::{Output, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of nodes.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1000,3000,10000,30000,100000,300000,1000000"
    )]
    nodes: Vec<usize>,
    /// Budget.
    #[arg(long, value_name = "BUDGET", default_value = "90%")]
    budget: BudgetSpec,
    /// Solver.
    #[arg(long, value_name = "NAME", default_value = "search")]
    solver: String,
    #[command(flatten)]
    effort: Effort,
    /// Seed of the graphs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    graph_seed: u64,
    #[command(flatten)]
    output: Output,
    /// Measure this graph in this process, and print what was found for the process that asked.
    #[arg(long, value_name = "GRAPH", hide = true)]
    one: Option<PathBuf>,
}

const HEADER: &[&str] = &[
    "nodes",
    "edges",
    "read s",
    "first s",
    "best s",
    "increase %",
    "peak %",
    "gap %",
    "memory MB",
];

/// What one process found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Point {
    nodes: usize,
    edges: usize,
    /// Reading the graph and replaying its baseline.
    read: f64,
    /// Until the first plan and until the best; absent where there is none.
    first: Option<f64>,
    best: Option<f64>,
    increase: Option<f64>,
    peak: Option<f64>,
    gap: Option<f64>,
    /// The most memory the process took, in bytes; absent where the system does not tell.
    memory: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(path) = &args.one {
        return one(path, args);
    }
    let path = std::env::temp_dir().join(format!("remat-bench-scaling-{}.json", std::process::id()));
    let points = args
        .nodes
        .iter()
        .map(|&nodes| in_own_process(nodes, &path, args))
        .collect::<anyhow::Result<Vec<_>>>();
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    let points = points?;
    let how = format!(
        "`{}`, budget {}, {}; graphs of seed {}, skips geometric:{SKIPPED}.\n\n{}\n\n",
        args.solver,
        args.budget,
        args.effort,
        args.graph_seed,
        describe_fit(&points)
    );
    print_line(&how);
    let rows = points.iter().map(row).collect();
    args.output.give("scaling", &how, &Table::new(0, HEADER, rows))
}

fn print_line(text: &str) {
    console::print(&format!("{text}\n"));
}

/// Makes the graph and has another process measure it.
fn in_own_process(nodes: usize, path: &Path, args: &Args) -> anyhow::Result<Point> {
    let graph = LayeredGraph::new(nodes, args.graph_seed)?;
    let written = || format!("cannot write `{}`", path.display());
    let mut out = OutputFile::create(path).with_context(written)?;
    graph
        .write(&mut out)
        .and_then(|()| out.commit())
        .with_context(written)?;
    drop(graph);
    let Effort { time, threads, seed } = args.effort;
    let time = time.as_secs_f64();
    let output = Command::new(std::env::current_exe()?)
        .arg("scaling")
        .arg("--one")
        .arg(path)
        .args(["--budget", &args.budget.to_string(), "--solver", &args.solver])
        .args(["--time", &time.to_string(), "--threads", &threads.to_string()])
        .args(["--seed", &seed.to_string()])
        .output()?;
    ensure!(
        output.status.success(),
        "measuring {nodes} nodes failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn one(path: &Path, args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let model = Model::open(path, &LoadOptions::default())?;
    let read = started.elapsed().as_secs_f64();
    let run = measure(&model, args.budget, &args.solver, args.effort)?;
    let solution = run.result.as_ref().ok();
    let certificate = solution.and_then(|solution| solution.certificate.as_ref());
    let baseline = model.baseline().peak.max(1) as f64;
    let point = Point {
        nodes: model.problem().ops.len(),
        edges: model.problem().ops.iter().map(|op| op.reads.len()).sum(),
        read,
        first: run.improvements.first().map(|improvement| improvement.seconds),
        best: run.improvements.last().map(|improvement| improvement.seconds),
        increase: solution.map(|solution| solution.overhead.percent()),
        peak: solution.map(|solution| 100.0 * solution.replay.peak as f64 / baseline),
        gap: certificate
            .and_then(|certificate| certificate.gap)
            .map(|gap| 100.0 * gap),
        memory: std::fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| most_memory(&status)),
    };
    print_line(&serde_json::to_string(&point)?);
    Ok(())
}

/// `VmHWM` of a process in bytes, from what Linux tells about it.
fn most_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

fn row(point: &Point) -> Vec<String> {
    let figure =
        |value: Option<f64>, digits: usize| value.map_or_else(String::new, |value| format!("{value:.digits$}"));
    vec![
        point.nodes.to_string(),
        point.edges.to_string(),
        format!("{:.2}", point.read),
        figure(point.first, 2),
        figure(point.best, 2),
        figure(point.increase, 2),
        figure(point.peak, 1),
        figure(point.gap, 2),
        figure(point.memory.map(|bytes| bytes as f64 / 1e6), 0),
    ]
}

/// How the time until the first plan and the memory of the process grow: the factor of `n log n`, and the exponent of `n` alone.
fn describe_fit(points: &[Point]) -> String {
    let describe = |what: &str, unit: &str, scale: f64, figure: &dyn Fn(&Point) -> Option<f64>| {
        let known = points
            .iter()
            .filter_map(|point| Some((point.nodes as f64, figure(point).filter(|&known| known > 0.0)?)));
        let Some((factor, spread, exponent)) = fit(&known.collect::<Vec<_>>()) else {
            return format!("too few graphs for a fit of the {what}");
        };
        format!(
            "{what}: {:.0} {unit} times n log2 n, within a factor of {spread:.1} for every graph; as a power of n: n^{exponent:.2}",
            scale * factor
        )
    };
    let time = describe("time to the first plan", "ns", 1e9, &|point| point.first);
    let memory = describe("memory", "bytes", 1.0, &|point| point.memory.map(|bytes| bytes as f64));
    format!("{time}\n\n{memory}")
}

/// Fits `seconds = factor * n log2 n` in the mean of logarithms: the factor, the largest ratio of a point to it or of it to a point, and the
/// slope of log seconds over log n. `None` for fewer than two sizes.
fn fit(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let count = points.len() as f64;
    let mean = |value: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let log_factor = |&(n, seconds): &(f64, f64)| (seconds / (n * n.log2())).ln();
    let center = mean(&log_factor);
    let spread = points
        .iter()
        .map(|point| (log_factor(point) - center).abs())
        .fold(0.0, f64::max);
    let (x, y) = (mean(&|point| point.0.ln()), mean(&|point| point.1.ln()));
    let variance = mean(&|point| (point.0.ln() - x).powi(2));
    let covariance = mean(&|point| (point.0.ln() - x) * (point.1.ln() - y));
    (points.len() >= 2 && variance > 0.0).then(|| (center.exp(), spread.exp(), covariance / variance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_log_n_is_recognised() {
        let points = [1e3, 1e4, 1e5].map(|n: f64| (n, 2e-9 * n * n.log2()));
        let (factor, spread, exponent) = fit(&points).unwrap();
        assert!((factor - 2e-9).abs() < 1e-15 && (spread - 1.0).abs() < 1e-9);
        assert!((1.0..1.2).contains(&exponent), "{exponent}");
        let square = [1e3, 1e4, 1e5].map(|n: f64| (n, 1e-9 * n * n));
        let (_, spread, exponent) = fit(&square).unwrap();
        assert!((exponent - 2.0).abs() < 1e-9 && spread > 5.0, "{spread}");
    }

    #[test]
    fn one_size_is_no_fit() {
        assert_eq!(fit(&[(1e3, 1.0)]), None);
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn the_most_memory_is_read_in_bytes() {
        assert_eq!(
            most_memory("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(most_memory("Name:\tx\n"), None);
    }
}
