//! Training steps from files, with a second memory.

use std::path::{Path, PathBuf};

use remat::plan::{Objective, PagingMode};
use remat::solver::{SolveControl, Solver};
use remat::verify::replay;
use remat::{LoadOptions, Model, SecondMemory};

/// Models of training steps in a folder, by name.
pub(crate) fn training_steps(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.to_string_lossy().ends_with("_train.onnx"));
    paths.sort();
    paths
}

/// Plans a model for a device with little memory within nine tenths of its peak and a hundredth more time.
pub(crate) fn assert_planned(path: &Path) {
    let options = LoadOptions {
        device: Some("mkr1000".to_owned()),
        second_memory: Some(SecondMemory::Used {
            mode: PagingMode::Sync,
            capacity: None,
        }),
        ..LoadOptions::default()
    };
    let model = Model::open(path, &options).expect("a model");
    let mut problem = model.problem().clone();
    problem.objective = Objective::Energy;
    problem.budget = Some(model.baseline().peak * 9 / 10);
    problem.deadline = Some(problem.total_duration() * 101 / 100);
    let outcome = remat::Auto.solve(&problem, &SolveControl::new().step_limit(5_000));
    let name = path.display();
    assert!(outcome.plan.is_some(), "no plan for `{name}`");
    let plan = outcome.plan.expect("looked at above");
    let found = replay(&problem, &plan).expect("a valid plan");
    assert!(found.energy < problem.total_energy() * 101 / 100, "{name}");
}
