//! `remat-bench solver`: the solver on graphs of the papers.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use remat::plan::{BudgetSpec, Plan, Problem};
use remat::solver::{Observer, Progress, SolveControl};
use remat::{Error, LoadOptions, Model, SolveRequest};

use crate::paper;
use crate::table::{self, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of node-link graphs.
    #[arg(long, value_name = "DIR")]
    graphs: PathBuf,
    /// Budgets in per cent of the baseline peak.
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_value = "90,80")]
    percent: Vec<u32>,
    /// Seconds to search.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    time: f64,
    /// Threads to search with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Seed of the search.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Solver to use.
    #[arg(long, value_name = "NAME", default_value = "search")]
    solver: String,
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
}

const HEADER: [&str; 12] = [
    "graph",
    "nodes",
    "edges",
    "budget",
    "paper %",
    "paper s",
    "%",
    "peak",
    "first s",
    "best s",
    "recomputes",
    "gap %",
];

/// Remembers when plans were found.
#[derive(Default)]
struct Times(Mutex<Option<(Duration, Duration)>>);

impl Observer for Times {
    fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = times.map_or(progress.elapsed, |(first, _)| first);
        *times = Some((first, progress.elapsed));
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for path in graphs(&args.graphs)? {
        let model = Model::open(&path, &LoadOptions::default())?;
        for &percent in &args.percent {
            rows.push(measure(&path, &model, percent, args)?);
        }
    }
    table::print(&HEADER, &rows, args.format);
    Ok(())
}

/// The graphs of a folder, small ones first.
fn graphs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort_by_key(|path| (std::fs::metadata(path).map_or(0, |data| data.len()), path.clone()));
    Ok(paths)
}

fn edges(problem: &Problem) -> usize {
    problem.ops.iter().map(|op| op.reads.len()).sum()
}

fn measure(path: &Path, model: &Model, percent: u32, args: &Args) -> anyhow::Result<Vec<String>> {
    let problem = model.problem();
    let (nodes, edges) = (problem.ops.len(), edges(problem));
    let paper = paper::row(nodes, edges, percent);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = paper.map_or(stem, |row| row.name).to_owned();
    let budget = BudgetSpec::Share(u64::from(percent) * 10_000);
    let mut row = vec![name, nodes.to_string(), edges.to_string()];
    row.push(budget.bytes(model.baseline().peak).unwrap_or(0).to_string());
    row.push(paper.map_or_else(String::new, |row| format!("{:.1}", row.increase)));
    row.push(paper.map_or_else(String::new, |row| format!("{:.1}", row.seconds)));
    let times = Times::default();
    let control = SolveControl::new()
        .time_limit(Duration::from_secs_f64(args.time))
        .threads(args.threads)
        .seed(args.seed)
        .observer(&times);
    let request = SolveRequest {
        budget,
        max_overhead: 0,
        solver: args.solver.clone(),
    };
    let started = Instant::now();
    match remat::solve(model, &request, &control) {
        Ok(solution) => {
            let took = started.elapsed();
            let (first, best) = times.0.into_inner().unwrap_or_default().unwrap_or((took, took));
            row.push(format!("{:.3}", solution.overhead.percent()));
            row.push(solution.replay.peak.to_string());
            row.push(format!("{:.3}", first.as_secs_f64()));
            row.push(format!("{:.3}", best.as_secs_f64()));
            row.push(solution.plan.recomputes().to_string());
            let gap = solution
                .certificate
                .and_then(|certificate| certificate.gap)
                .unwrap_or(0.0);
            row.push(format!("{:.3}", 100.0 * gap));
        }
        Err(Error::Infeasible(infeasible)) => {
            row.push("impossible".to_owned());
            row.push(format!(">= {}", infeasible.need));
            row.resize(HEADER.len(), String::new());
        }
        Err(Error::ProvedInfeasible { .. }) => {
            row.push("impossible".to_owned());
            row.resize(HEADER.len(), String::new());
        }
        Err(Error::NoPlan { reached, .. }) => {
            row.push("none".to_owned());
            row.push(format!("({reached})"));
            row.resize(HEADER.len(), String::new());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(row)
}
