//! `remat-bench compare`: all solvers side by side on the training graphs of a folder.
//!
//! The table is that of the Checkmate paper (Table 2: how many times the optimal cost each baseline takes, as the geometric mean over
//! budgets), with dynamic rematerialization and whatever else is registered among the rest.

mod ratios;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use remat::CompareRequest;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;

use self::ratios::Compared;
use crate::document::replace_in;
use crate::graphs::{Order, graphs};
use crate::measure::Effort;
use crate::table::Form;

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
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Also write the table into this document, between its marks.
    #[arg(long, value_name = "DOCUMENT")]
    write: Option<PathBuf>,
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
            tell(&comparison.skipped);
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        all.push(Compared {
            name: stem.to_owned(),
            model,
            comparison,
        });
    }
    let table = ratios::table(&all);
    table.print(args.format);
    if let Some(document) = &args.write {
        let Effort { time, threads, seed } = args.effort;
        let time = time.as_secs_f64();
        let budgets: Vec<_> = args.budgets.iter().map(ToString::to_string).collect();
        let how = format!(
            "Budgets {}; at most {time} s for each, {threads} thread(s), seed {seed}, {} order.\n\n",
            budgets.join(", "),
            args.order.word()
        );
        replace_in(document, "ratios", &(how + &table.render(Form::Markdown)))?;
    }
    Ok(())
}

/// The graph, or those of the folder that are asked for.
fn chosen(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = graphs(&args.graphs)?;
    if args.graphs.is_dir() {
        let name = |path: &Path| {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        paths.retain(|path| name(path).contains(&args.named));
    }
    ensure!(
        !paths.is_empty(),
        "no graph in `{}` has `{}` in its name",
        args.graphs.display(),
        args.named
    );
    Ok(paths)
}

fn tell(skipped: &[String]) {
    skipped.iter().for_each(|name| crate::console::skipped(name));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_table_is_written_for_the_graphs_that_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a_train", "b_train", "b_test"] {
            let graph = crate::layered::Layered::new(30, None, None, 1).generate().unwrap();
            let path = folder.path().join(name).with_extension("json");
            graph.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
        }
        let document = folder.path().join("comparison.md");
        let marks = |name: &str| format!("<!-- bench: {name} -->\n<!-- /bench: {name} -->\n");
        std::fs::write(&document, marks("ratios")).unwrap();
        let args = Args {
            graphs: folder.path().to_owned(),
            named: "train".to_owned(),
            budgets: vec![BudgetSpec::Share(950_000), BudgetSpec::Share(900_000)],
            solvers: vec!["search".to_owned(), "dtr".to_owned(), "oracle".to_owned()],
            effort: Effort {
                time: Duration::from_millis(50),
                threads: 1,
                seed: 0,
            },
            order: Order::Fixed,
            format: Form::Json,
            write: Some(document.clone()),
        };
        run(&args).unwrap();
        let text = std::fs::read_to_string(document).unwrap();
        for words in ["| a_train | `search` |", "| b_train | `dtr`    |", "0.05 s for each"] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
        assert!(!text.contains("b_test"));
    }

    #[test]
    fn a_folder_without_such_graphs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.json"), "{}").unwrap();
        let args = Args {
            graphs: folder.path().to_owned(),
            named: "train".to_owned(),
            budgets: Vec::new(),
            solvers: Vec::new(),
            effort: Effort {
                time: Duration::from_millis(50),
                threads: 1,
                seed: 0,
            },
            order: Order::Fixed,
            format: Form::Text,
            write: None,
        };
        assert!(run(&args).is_err());
    }
}
