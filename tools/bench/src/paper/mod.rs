//! `remat-bench paper`: the tables of the Moccasin paper, for any folder of graphs.

mod published;
mod results;
mod sizes;

use std::num::NonZeroU64;
use std::path::PathBuf;

use remat::plan::{BudgetSpec, Problem};

use crate::files::{Order, graphs, stem};
use crate::measure::{Effort, Run, measure, usable};
use crate::table::Output;

/// The name under which the paper's own figures are asked for.
const PAPER: &str = "paper";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of node-link graphs, or one graph.
    #[arg(value_name = "GRAPHS")]
    graphs: PathBuf,
    /// Budgets.
    #[arg(long, value_name = "BUDGET,...", value_delimiter = ',', default_value = "90%,80%")]
    budgets: Vec<BudgetSpec>,
    /// `paper` for the published figures, and solvers; those that this build lacks are skipped [default: all there are].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    solvers: Vec<String>,
    #[command(flatten)]
    effort: Effort,
    /// So many seeds, one after the other: a row is that of the median run, beside what the best and the worst one found.
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: NonZeroU64,
    /// Whether first computes follow the order of the graph.
    #[arg(long, value_name = "MODE", default_value = "fixed")]
    order: Order,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let solvers = solvers(&args.solvers);
    let published = args.solvers.is_empty() || args.solvers.iter().any(|name| name == PAPER);
    let (mut size_rows, mut result_rows) = (Vec::new(), Vec::new());
    for path in graphs(&args.graphs)? {
        let model = args.order.open(&path)?;
        let (nodes, edges) = (model.problem().ops.len(), edges(model.problem()));
        let stem = stem(&path);
        let name = published::name(nodes, edges).unwrap_or(&stem);
        if let Some(&budget) = args.budgets.first() {
            let mut problem = model.problem().clone();
            problem.budget = budget.bytes(model.baseline().peak);
            size_rows.extend(sizes::rows(name, &problem, edges));
        }
        for &budget in &args.budgets {
            let text = budget.to_string();
            let row = percent(budget).and_then(|percent| published::find(nodes, edges, percent));
            let row = row.as_ref().filter(|_| published);
            result_rows.extend(row.map(|row| results::published(name, &text, row)).unwrap_or_default());
            for solver in &solvers {
                let seeds = (0..args.seeds.get()).map(|more| Effort {
                    seed: args.effort.seed.wrapping_add(more),
                    ..args.effort
                });
                let runs: Result<Vec<Run>, _> = seeds.map(|effort| measure(&model, budget, solver, effort)).collect();
                result_rows.push(results::measured(name, &text, &model, runs?, row));
            }
        }
    }
    let more = match args.seeds.get() - 1 {
        0 => String::new(),
        more => format!(" and the next {more}"),
    };
    let how = format!("{}{more}, {} order.\n\n", args.effort, args.order.word());
    let results = results::table(result_rows);
    // The papers have figures for fixed order only; free order has a table of its own.
    if args.order == Order::Free {
        return args.output.give("results in free order", &how, &results);
    }
    args.output.give("sizes", "", &sizes::table(size_rows))?;
    args.output.give("results", &how, &results)
}

/// The solvers among what was asked for; all that can be used where nothing was.
fn solvers(wanted: &[String]) -> Vec<String> {
    let named: Vec<String> = wanted.iter().filter(|name| *name != PAPER).cloned().collect();
    if named.is_empty() && !wanted.is_empty() {
        return Vec::new();
    }
    usable(&named)
}

fn edges(problem: &Problem) -> usize {
    problem.ops.iter().map(|op| op.reads.len()).sum()
}

/// A budget that is a whole number of per cent.
fn percent(budget: BudgetSpec) -> Option<u64> {
    match budget {
        BudgetSpec::Share(millionths) if millionths % 10_000 == 0 => Some(millionths / 10_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Form;

    #[test]
    fn solvers_that_are_not_there_are_skipped() {
        let wanted = ["paper", "search", "oracle"].map(str::to_owned);
        assert_eq!(solvers(&wanted), ["search"]);
        assert!(solvers(&[]).contains(&"search".to_owned()));
    }

    #[test]
    fn tables_are_written_for_any_graph() {
        let folder = tempfile::tempdir().unwrap();
        let graph = crate::layered::LayeredGraph::new(40, 1).unwrap();
        let path = folder.path().join("small.json");
        graph.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
        let document = folder.path().join("tables.md");
        let marks = |name: &str| format!("<!-- bench: {name} -->\n<!-- /bench: {name} -->\n");
        std::fs::write(&document, marks("sizes") + &marks("results")).unwrap();
        let args = Args {
            graphs: path,
            budgets: vec![BudgetSpec::Share(900_000), BudgetSpec::Share(10_000)],
            solvers: vec!["search".to_owned()],
            effort: Effort::LITTLE,
            seeds: NonZeroU64::new(2).unwrap(),
            order: Order::Fixed,
            output: Output {
                format: Form::Json,
                write: vec![document.clone()],
            },
        };
        run(&args).unwrap();
        let text = std::fs::read_to_string(document).unwrap();
        for words in [
            "| small | paper: Checkmate",
            "| small | 90%    | `search`",
            "impossible",
            "0.05 s for each, 1 thread(s), seed 0 and the next 1,",
        ] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
    }

    #[test]
    fn the_published_budgets_are_whole_per_cents() {
        assert_eq!(percent(BudgetSpec::Share(900_000)), Some(90));
        assert_eq!(percent(BudgetSpec::Share(905_000)), None);
        assert_eq!(percent(BudgetSpec::Min), None);
    }
}
