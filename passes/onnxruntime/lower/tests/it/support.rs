//! Models of the project, rewritten under a tight plan.

use std::path::{Path, PathBuf};

use remat::ir::Graph;
use remat::onnx::OnnxModel;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{ErrorKind, LoadOptions, Model, SolveRequest};

pub(crate) fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test/models")
}

/// Models of a folder that need no further facts to be opened.
pub(crate) fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the models are part of the project");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    paths.sort();
    paths
}

/// A model and the graph of a tight plan.
pub(crate) struct Rewritten {
    pub(crate) model: Model,
    pub(crate) graph: Graph,
    pub(crate) recomputes: usize,
}

impl Rewritten {
    /// The lowest of a few budgets that has a plan; `None` where the model cannot be opened without further facts.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let model = Model::open(path, &LoadOptions::default()).ok()?;
        let control = SolveControl::new().step_limit(2_000);
        let solve = |percent: u32| {
            let budget: BudgetSpec = format!("{percent}%").parse().expect("a share is a budget");
            let request = SolveRequest {
                budget,
                max_overhead: None,
                solver: "search".to_owned(),
            };
            match remat::solve(&model, &request, &control) {
                Ok(solution) => Some(solution),
                Err(error) if matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit) => None,
                Err(error) => panic!("{percent}%: {error}"),
            }
        };
        let solution = [50, 60, 70, 80, 90, 100]
            .into_iter()
            .find_map(solve)
            .expect("the baseline is a plan");
        let graph = remat::rewrite(&model, &solution)
            .expect("the plan can be applied")
            .expect("there is a graph");
        Some(Self {
            recomputes: solution.plan.recomputes(),
            graph,
            model,
        })
    }

    pub(crate) fn onnx(&self) -> &OnnxModel {
        self.model.onnx().expect("it is an ONNX model")
    }
}
