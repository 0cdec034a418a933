//! `remat-bench truth`: every solver on tiny problems of all magnitudes, each answer held against the best there is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use remat::solver::{SolveControl, Solver};
use remat_truth::judge::{Audit, audit};
use remat_truth::problems::problem;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many problems.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    problems: u64,
    /// Number of the first one: each number stands for one problem.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Problems at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Longest time of one solver on one problem, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    time_per_run: u64,
    /// Most steps of one solver on one problem.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    step_limit: u64,
    /// Only solvers of these names.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    solvers: Vec<String>,
    /// Write problems of which something false was claimed into this folder.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

/// Prints how much was asked and what was false; fails if anything was.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(folder) = &args.save {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    }
    let next = AtomicU64::new(args.first);
    let total = Mutex::new(Audit::default());
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= args.first.saturating_add(args.problems) {
                        break;
                    }
                    let found = one(args, number);
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    total.answers += found.answers;
                    total.plans += found.plans;
                    total.proofs += found.proofs;
                    if let Err(error) = tell(args, number, &found) {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                    total.false_claims.extend(found.false_claims);
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    print(&format!(
        "{} problems from number {}: {} answers, {} plans, {} proofs, {} of them false",
        args.problems,
        args.first,
        total.answers,
        total.plans,
        total.proofs,
        total.false_claims.len(),
    ));
    ensure!(total.false_claims.is_empty(), "something false was claimed");
    Ok(())
}

fn one(args: &Args, number: u64) -> Audit {
    let chosen =
        |solver: &&'static dyn Solver| args.solvers.is_empty() || args.solvers.iter().any(|name| name == solver.name());
    let control = |_: &dyn Solver| {
        SolveControl::new()
            .step_limit(args.step_limit)
            .time_limit(Duration::from_millis(args.time_per_run))
    };
    let solvers = remat::solvers()
        .filter(chosen)
        .filter(|solver| solver.missing().is_none());
    audit(&problem(number), solvers, control)
}

fn tell(args: &Args, number: u64, found: &Audit) -> anyhow::Result<()> {
    for falsehood in &found.false_claims {
        print(&format!("problem {number}, `{}`: {}", falsehood.solver, falsehood.what));
    }
    if let Some(folder) = args.save.as_ref().filter(|_| !found.false_claims.is_empty()) {
        let path = folder.join(format!("tiny-{number}.problem.json"));
        remat_files::write(&path, problem(number).to_json())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result")]
fn print(line: &str) {
    println!("{line}");
}
