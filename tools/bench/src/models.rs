//! `remat-bench models`: models before and after, and the time of everything around the solver.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use remat::plan::{BudgetSpec, parse_duration};
use remat::solver::SolveControl;
use remat::{Error, LoadOptions, Model, SolveError, SolveRequest};

use crate::table::{Form, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Models, or folders of models.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Budgets, as on the command line of remat-opt.
    #[arg(
        long,
        value_name = "BUDGET,...",
        value_delimiter = ',',
        default_value = "80%,60%,auto,min"
    )]
    budgets: Vec<BudgetSpec>,
    /// Time to search; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Keep the rewritten models in this folder, named after model and budget.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
}

const HEADER: &[&str] = &[
    "model",
    "ops",
    "budget",
    "before MB",
    "after MB",
    "%",
    "overhead %",
    "recomputes",
    "search s",
    "else s",
];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scratch = std::env::temp_dir().join(format!("remat-bench-{}", std::process::id()));
    let folder = args.keep.as_ref().unwrap_or(&scratch);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let mut rows = Vec::new();
    for path in models(&args.models)? {
        for &budget in &args.budgets {
            rows.push(measure(&path, budget, folder, args)?);
        }
    }
    if args.keep.is_none() {
        std::fs::remove_dir_all(&scratch)?;
    }
    let table = Table {
        text_columns: 1,
        header: HEADER,
        rows,
    };
    table.print(args.format);
    Ok(())
}

/// The models that were named, and those in folders that were named.
pub(crate) fn models(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in named {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        let mut inside: Vec<PathBuf> = std::fs::read_dir(path)?
            .map(|e| Ok(e?.path()))
            .collect::<std::io::Result<_>>()?;
        inside.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
        inside.sort();
        paths.extend(inside);
    }
    Ok(paths)
}

fn measure(path: &Path, budget: BudgetSpec, folder: &Path, args: &Args) -> anyhow::Result<Vec<String>> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("model");
    let started = Instant::now();
    let model = Model::open(path, &LoadOptions::default())?;
    let mut other = started.elapsed();
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let before = model.baseline().peak;
    let mut row = vec![
        stem.to_owned(),
        model.problem().ops.len().to_string(),
        budget.to_string(),
        megabytes(before),
    ];
    let request = SolveRequest {
        budget,
        max_overhead: None,
        solver: "auto".to_owned(),
    };
    let control = SolveControl::new().time_limit(args.time);
    let started = Instant::now();
    let result = remat::solve(&model, &request, &control);
    let search = started.elapsed();
    let solution = match result {
        Ok(solution) => solution,
        Err(error) => {
            let (after, why) = match error {
                Error::Solve(SolveError::Infeasible(infeasible)) => {
                    (format!(">= {}", megabytes(infeasible.need)), "impossible")
                }
                Error::Solve(SolveError::ProvedInfeasible { .. }) => (String::new(), "impossible"),
                Error::Solve(SolveError::NoPlan { reached, .. }) => (format!("({})", megabytes(reached)), "none"),
                Error::Solve(SolveError::NoPlanOfItsKind { .. }) => (String::new(), "none"),
                error => return Err(error.into()),
            };
            row.extend([after, why.to_owned()]);
            return Ok(row);
        }
    };
    let out = folder.join(format!("{stem}.{}.onnx", budget.to_string().trim_end_matches('%')));
    let started = Instant::now();
    remat::save(&model, &solution, &remat::Target::Onnx, &out)?;
    other += started.elapsed();
    let after = solution.replay.peak;
    row.push(megabytes(after));
    row.push(format!("{:.1}", 100.0 * after as f64 / before.max(1) as f64));
    row.push(format!("{:+.2}", solution.overhead.percent()));
    row.push(solution.plan.recomputes().to_string());
    row.push(format!("{:.2}", search.as_secs_f64()));
    row.push(format!("{:.3}", other.as_secs_f64()));
    Ok(row)
}
