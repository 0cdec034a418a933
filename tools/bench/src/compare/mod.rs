//! `remat-bench compare`: all solvers side by side on the training graphs of a folder.
//!
//! The table is that of the Checkmate paper (Table 2: how many times the optimal cost each baseline takes, as the geometric mean over
//! budgets), with dynamic rematerialization and whatever else is registered among the rest.

mod ratios;

use std::path::PathBuf;

use anyhow::ensure;
use remat::CompareRequest;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;

use self::ratios::Compared;
use crate::files::{Order, graphs, stem};
use crate::measure::Effort;
use crate::table::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of node-link graphs, or one graph.
    #[arg(value_name = "GRAPHS")]
    graphs: PathBuf,
    /// Take only graphs of the folder with this in their names.
    #[arg(long, value_name = "TEXT", default_value = "train")]
    named: String,
    /// Budgets: shares and sizes.
    #[arg(
        long,
        value_name = "BUDGET,...",
        value_delimiter = ',',
        default_value = "95%,90%,85%,80%,75%,70%,65%,60%,55%,50%"
    )]
    budgets: Vec<BudgetSpec>,
    /// Solvers; those that cannot be used are skipped [default: all there are].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    solvers: Vec<String>,
    #[command(flatten)]
    effort: Effort,
    /// Whether first computes follow the order of the graph.
    #[arg(long, value_name = "MODE", default_value = "fixed")]
    order: Order,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let request = CompareRequest {
        budgets: args.budgets.clone(),
        solvers: args.solvers.clone(),
        time_per_run: Some(args.effort.time),
    };
    let control = SolveControl::new().threads(args.effort.threads).seed(args.effort.seed);
    let mut all = Vec::new();
    for path in chosen(args)? {
        let model = args.order.open(&path)?;
        let comparison = remat::compare(&model, &request, &control)?;
        if all.is_empty() {
            comparison.skipped.iter().for_each(|name| crate::console::skipped(name));
        }
        all.push(Compared {
            name: stem(&path),
            model,
            comparison,
        });
    }
    let budgets: Vec<_> = args.budgets.iter().map(ToString::to_string).collect();
    let (budgets, order) = (budgets.join(", "), args.order.word());
    let how = format!("Budgets {budgets}; at most {}, {order} order.\n\n", args.effort);
    args.output.give("ratios", &how, &ratios::table(&all))
}

/// The graph, or those of the folder that are asked for.
fn chosen(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = graphs(&args.graphs)?;
    if args.graphs.is_dir() {
        paths.retain(|path| stem(path).contains(&args.named));
    }
    ensure!(
        !paths.is_empty(),
        "no graph in `{}` has `{}` in its name",
        args.graphs.display(),
        args.named
    );
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layered::LayeredGraph;
    use crate::table::Form;

    #[test]
    fn the_table_is_written_for_the_graphs_that_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a_train", "b_train", "b_test"] {
            let path = folder.path().join(name).with_extension("json");
            let graph = LayeredGraph::new(30, 1).unwrap();
            graph.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
        }
        let document = folder.path().join("comparison.md");
        std::fs::write(&document, "<!-- bench: ratios -->\n<!-- /bench: ratios -->\n").unwrap();
        let args = |named: &str| Args {
            graphs: folder.path().to_owned(),
            named: named.to_owned(),
            budgets: vec![BudgetSpec::Share(950_000), BudgetSpec::Share(900_000)],
            solvers: ["search", "dtr", "oracle"].map(str::to_owned).into(),
            effort: Effort::LITTLE,
            order: Order::Fixed,
            output: Output {
                format: Form::Json,
                write: vec![document.clone()],
            },
        };
        run(&args("train")).unwrap();
        let text = std::fs::read_to_string(&document).unwrap();
        for words in ["| a_train | `search` |", "| b_train | `dtr`    |", "0.05 s for each"] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
        assert!(!text.contains("b_test"));
        assert!(run(&args("none")).is_err());
    }
}
