//! `remat-bench training`: order, recomputes and offsets on a set of training graphs, beside the best known plans (`docs/training-graphs.md`).
//!
//! The known plans lie beside the graphs, and so do plans that other systems made of the same graphs. All of them are replayed here: a row is what
//! the checker found, not what a file says of itself.

mod known;

use std::path::{Path, PathBuf};

use remat::plan::BudgetSpec;
use remat::{Model, Solution};

use self::known::Known;
use crate::files::{Order, graphs, stem};
use crate::measure::{Effort, Run, measure, usable};
use crate::table::{Output, Table};

const HEADER: &[&str] = &[
    "graph",
    "budget",
    "plan",
    "peak MB",
    "overhead %",
    "best known %",
    "bound %",
    "block above peak %",
    "s",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the graphs, with the best known plans in `best` and those of other systems in `others`; or one graph.
    #[arg(value_name = "GRAPHS", default_value = "test/graphs/training")]
    graphs: PathBuf,
    /// Budgets: shares and sizes, and `min`.
    #[arg(
        long,
        value_name = "BUDGET,...",
        value_delimiter = ',',
        default_value = "min,40%,50%,60%,70%,80%"
    )]
    budgets: Vec<BudgetSpec>,
    /// Solvers; those that cannot be used are skipped.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "auto,list:peak,moccasin,checkmate:ilp,checkmate:lp"
    )]
    solvers: Vec<String>,
    #[command(flatten)]
    effort: Effort,
    /// Keep plans that are better than the best known ones, and their bounds, beside the graphs.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

/// Where the plans of a graph lie.
struct Place<'a> {
    folder: &'a Path,
    graph: String,
}

impl Place<'_> {
    fn best(&self, budget: BudgetSpec) -> PathBuf {
        let budget = budget.to_string();
        let name = format!("{}.{}.json", self.graph, budget.trim_end_matches('%'));
        self.folder.join("best").join(name)
    }

    /// Plans of other systems, by name.
    fn others(&self) -> anyhow::Result<Vec<(String, PathBuf)>> {
        let folder = self.folder.join("others");
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for path in graphs(&folder)? {
            let stem = stem(&path);
            if let Some(system) = stem.strip_prefix(&self.graph).and_then(|rest| rest.strip_prefix('.')) {
                found.push((system.to_owned(), path.clone()));
            }
        }
        found.sort();
        Ok(found)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = if args.graphs.is_dir() {
        args.graphs.as_path()
    } else {
        args.graphs.parent().unwrap_or(Path::new("."))
    };
    let solvers = usable(&args.solvers);
    let mut rows = Vec::new();
    for path in graphs(&args.graphs)? {
        let model = Order::Free.open(&path)?;
        let graph = stem(&path);
        let place = Place { folder, graph };
        for &budget in &args.budgets {
            rows.extend(of_budget(args, &model, &place, budget, &solvers)?);
        }
        for (system, path) in place.others()? {
            rows.extend(with_reference_row(args, &model, &place, &system, &path)?);
        }
    }
    let how = format!("At most {}, free order.\n\n", args.effort);
    args.output.give("training", &how, &Table::new(3, HEADER, rows))
}

/// The rows of one budget: one for each solver. The lowest peak is sought by the same search whoever goes on from there: one row.
fn of_budget(
    args: &Args,
    model: &Model,
    place: &Place<'_>,
    budget: BudgetSpec,
    solvers: &[String],
) -> anyhow::Result<Vec<Vec<String>>> {
    let path = place.best(budget);
    let mut known = Known::read(model, &path)?;
    let mut runs = Vec::new();
    let solvers = if budget == BudgetSpec::Min {
        &solvers[..solvers.len().min(1)]
    } else {
        solvers
    };
    for solver in solvers {
        let mut run = measure(model, budget, solver, args.effort)?;
        if let Ok(found) = &mut run.result {
            found.place(model, &args.effort.control())?;
            known.learn(found, budget);
        }
        runs.push(run);
    }
    let rows = runs
        .iter()
        .map(|run| of_run([&place.graph, &budget.to_string()], model, run, &known))
        .collect();
    if args.keep && known.is_news() {
        known.write(model, &path)?;
    }
    Ok(rows)
}

/// A plan of another system, and ours within the peak that it takes.
fn with_reference_row(
    args: &Args,
    model: &Model,
    place: &Place<'_>,
    system: &str,
    path: &Path,
) -> anyhow::Result<Vec<Vec<String>>> {
    let mut theirs = known::replayed(model, path)?;
    theirs.place(model, &args.effort.control())?;
    let budget = BudgetSpec::Bytes(theirs.replay.peak);
    let mut known = Known::default();
    let mut run = measure(model, budget, "auto", args.effort)?;
    if let Ok(found) = &mut run.result {
        found.place(model, &args.effort.control())?;
        known.learn(found, budget);
    }
    let head = [&place.graph, "as there"];
    Ok(vec![
        row([head[0], head[1], system], model, &theirs, &known, ""),
        of_run(head, model, &run, &known),
    ])
}

/// The row of a solver of ours.
fn of_run([graph, budget]: [&str; 2], model: &Model, run: &Run, known: &Known) -> Vec<String> {
    let head = [graph, budget, &format!("`{}`", run.solver)];
    let seconds = run.improvements.last().map(|last| format!("{:.1}", last.seconds));
    match &run.result {
        Ok(found) => row(head, model, found, known, &seconds.unwrap_or_default()),
        Err(why) => head.into_iter().chain(["", why.as_str()]).map(str::to_owned).collect(),
    }
}

fn row(head: [&str; 3], model: &Model, found: &Solution, known: &Known, seconds: &str) -> Vec<String> {
    let over = |duration: u64| {
        let baseline = model.baseline().duration;
        format!("{:.2}", remat::Overhead { duration, baseline }.percent())
    };
    let peak = found.replay.peak;
    let above = found
        .placement
        .as_ref()
        .map(|placed| placed.block() as f64 / placed.load.max(1) as f64 - 1.0);
    let mut row: Vec<String> = head.map(str::to_owned).into();
    row.extend([
        format!("{:.2}", peak as f64 / 1e6),
        over(found.replay.duration),
        known.duration().map(over).unwrap_or_default(),
        known.bound().map(over).unwrap_or_default(),
        above.map(|above| format!("{:.2}", 100.0 * above)).unwrap_or_default(),
        seconds.to_owned(),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::table::Form;

    fn args(folder: &Path, solvers: &[&str]) -> Args {
        Args {
            graphs: folder.to_owned(),
            budgets: vec![BudgetSpec::Min, BudgetSpec::Share(800_000)],
            solvers: solvers.iter().map(|&name| name.to_owned()).collect(),
            effort: Effort {
                time: Duration::from_millis(200),
                ..Effort::LITTLE
            },
            keep: true,
            output: Output {
                format: Form::Json,
                write: vec![folder.join("page.md")],
            },
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let graph = crate::layered::LayeredGraph::new(30, 1).unwrap();
        let mut file = std::fs::File::create(folder.path().join("a.json")).unwrap();
        graph.write(&mut file).unwrap();
        let marks = "<!-- bench: training -->\n<!-- /bench: training -->\n";
        std::fs::write(folder.path().join("page.md"), marks).unwrap();
        folder
    }

    fn best(folder: &Path, budget: &str) -> remat::plan::PlanFile {
        let text = std::fs::read_to_string(folder.join(format!("best/a.{budget}.json"))).unwrap();
        remat::plan::PlanFile::from_json(&text).unwrap()
    }

    #[test]
    fn better_plans_are_kept_with_offsets_and_bounds() {
        let folder = folder();
        let model = Order::Free.open(&folder.path().join("a.json")).unwrap();
        let once = Solution::baseline(&model).unwrap();
        std::fs::create_dir(folder.path().join("best")).unwrap();
        let path = folder.path().join("best/a.min.json");
        std::fs::write(&path, once.plan_file(&model).to_json()).unwrap();
        run(&args(folder.path(), &["search"])).unwrap();
        let kept = best(folder.path(), "min");
        assert!(kept.block.is_some());
        assert!(kept.peak_bytes < once.replay.peak);
        let page = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
        assert!(page.contains("| a     | 80%    | `search` |"), "{page}");
        // What is no better changes nothing.
        run(&args(folder.path(), &["list:peak"])).unwrap();
        let figures = |file: &remat::plan::PlanFile| (file.peak_bytes, file.duration);
        let later = best(folder.path(), "min");
        assert!(figures(&later) <= figures(&kept));
    }

    #[test]
    fn plans_of_other_systems_are_replayed_and_stand_beside_ours() {
        let folder = folder();
        run(&args(folder.path(), &["list:peak"])).unwrap();
        std::fs::create_dir(folder.path().join("others")).unwrap();
        let theirs = folder.path().join("others/a.theirs.json");
        std::fs::copy(folder.path().join("best/a.min.json"), &theirs).unwrap();
        run(&args(folder.path(), &["list:peak"])).unwrap();
        let page = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
        assert!(page.contains("| a     | as there | theirs"), "{page}");
        let mut file = best(folder.path(), "min");
        file.steps.pop();
        file.steps.remove(0);
        std::fs::write(&theirs, file.to_json()).unwrap();
        let error = run(&args(folder.path(), &["list:peak"])).unwrap_err();
        assert!(format!("{error:#}").contains("a.theirs.json"), "{error:#}");
    }

    #[test]
    fn the_plans_of_the_repository_pass_the_checker_and_contradict_no_bound() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/graphs/training");
        let mut plans = 0;
        for path in graphs(&folder).unwrap() {
            let model = Order::Free.open(&path).unwrap();
            let graph = stem(&path);
            let place = Place { folder: &folder, graph };
            let budgets = ["min", "40%", "50%", "60%", "70%", "80%"];
            let mut found = Vec::new();
            for budget in budgets.map(|budget| budget.parse().unwrap()) {
                let path = place.best(budget);
                assert!(path.exists(), "`{}` is missing", path.display());
                found.push(known::replayed(&model, &path).unwrap());
            }
            let others = place.others().unwrap();
            assert_eq!(others.len(), 3, "{others:?}");
            found.extend(others.iter().map(|(_, path)| known::replayed(&model, path).unwrap()));
            for (one, other) in found.iter().flat_map(|one| found.iter().map(move |other| (one, other))) {
                let budget = one.problem.budget.unwrap_or(u64::MAX);
                if other.replay.peak <= budget {
                    assert!(one.bound_on_all_plans(one.problem.order) <= other.replay.duration);
                }
            }
            plans += found.len();
        }
        assert_eq!(plans, 6 * 9);
    }
}
