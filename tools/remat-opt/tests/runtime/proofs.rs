//! Proofs, by the library that the program finds.

use std::process::Command;

use remat::solver::Domain;
use serde_json::json;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of};

const CHAIN: &str = "cli/training_chain.json";

/// The command line, which looks for OR-Tools where it does without being told.
fn with_ortools(line: &str) -> Command {
    let mut command = remat_opt(line);
    match std::env::var_os("REMAT_ORTOOLS_LIBRARY") {
        Some(library) => command.env("REMAT_ORTOOLS_LIBRARY", library),
        None => command.env_remove("REMAT_ORTOOLS_LIBRARY"),
    };
    command
}

/// A training step of so many layers: more ops than are solved without a library.
fn long_chain(layers: u64) -> String {
    let node = |id: String, cost: u64| json!({ "id": id, "cost_cpu": cost, "cost_ram": 1 << 20 });
    let forward = (1..=layers).map(|layer| node(format!("f{layer}"), 100 * layer));
    let backward = (1..=layers).rev().map(|layer| node(format!("b{layer}"), 200 * layer));
    let edge = |source: String, target: String| json!({ "source": source, "target": target });
    let mut edges = vec![edge(format!("f{layers}"), format!("b{layers}"))];
    for layer in 2..=layers {
        edges.push(edge(format!("f{}", layer - 1), format!("f{layer}")));
        edges.push(edge(format!("f{}", layer - 1), format!("b{layer}")));
        edges.push(edge(format!("f{}", layer - 1), format!("b{}", layer - 1)));
        edges.push(edge(format!("b{layer}"), format!("b{}", layer - 1)));
    }
    let nodes: Vec<_> = forward.chain(backward).collect();
    json!({ "directed": true, "multigraph": false, "graph": {}, "nodes": nodes, "links": edges }).to_string()
}

pub(crate) fn a_plan_is_proved_where_or_tools_is_found() {
    let folder = Folder::new();
    let chain = folder.path("chain.json");
    std::fs::write(&chain, long_chain(16)).expect("a file can be written");
    let line = format!("{} --order fixed -b 70% --time-limit 60s -q", chain.display());
    let proved = stdout_of(&mut with_ortools(&line));
    assert_contains_all(&proved, &["optimal: no plan"]);
    let searched = stdout_of(&mut remat_opt(&line.replace("60s", "2s")));
    assert!(!searched.contains("optimal: no plan"), "{searched}");
}

pub(crate) fn every_solver_takes_part_in_a_comparison() {
    let line = format!("compare {CHAIN} --budgets 70% --time-limit 5s -q");
    let text = stdout_of(&mut with_ortools(&line));
    for solver in remat::solvers().filter(|solver| solver.external().is_some() && solver.domain() == Domain::Time) {
        assert_contains_all(&text, &[solver.name()]);
    }
}
