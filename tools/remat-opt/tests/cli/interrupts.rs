//! Signals and time limits: how a run ends, what it leaves, and what becomes of the processes that it started. Linux only, where
//! processes can be looked at.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{PATIENCE, Run};
use crate::{Folder, assert_contains_all, remat_opt};

/// A problem that no search is done with soon: many layers, each read again much later.
fn long_search(folder: &Folder) -> String {
    const OPS: usize = 2_000;
    let op = |index: usize| {
        let inputs: Vec<String> = [
            index.checked_sub(1),
            (2 * OPS).checked_sub(index + 1).filter(|&duplicate| duplicate < index),
        ]
        .into_iter()
        .flatten()
        .map(|input| format!("t{input}"))
        .collect();
        (index, inputs)
    };
    let nodes: Vec<Value> = (0..2 * OPS)
        .map(|index| json!({ "id": index, "cost_cpu": 1 + index * 7 % 13, "cost_ram": 100 + index * 31 % 97, "backward": index >= OPS }))
        .collect();
    let links: Vec<Value> = (0..2 * OPS)
        .map(op)
        .flat_map(|(index, inputs)| {
            inputs
                .into_iter()
                .map(move |input| json!({ "source": input[1..].parse::<usize>().expect("a number"), "target": index }))
        })
        .collect();
    let graph = json!({ "directed": true, "multigraph": false, "graph": {}, "nodes": nodes, "links": links });
    let path = folder.path("long.json");
    std::fs::write(&path, graph.to_string()).expect("it can be written");
    path.display().to_string()
}

#[test]
fn a_signal_ends_a_search_with_the_best_plan_and_the_status_of_the_signal() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        let graph = long_search(&folder);
        let line = format!("{graph} --budget 50% --time-limit 1h --format json -v -o");
        let run = Run::start(remat_opt(&line).arg(folder.path("plan.json")));
        std::thread::sleep(Duration::from_secs(4));
        run.send(signal);
        let (output, _, took) = run.end();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert_contains_all(&stderr, &["interrupted"]);
        assert!(took < PATIENCE, "{took:?}");
        // What was checked is written whole; what was not is not written.
        if let Ok(plan) = std::fs::read_to_string(folder.path("plan.json")) {
            let plan: Value = serde_json::from_str(&plan).expect("it is whole");
            assert_ne!(plan["certificate"]["status"], "OPTIMAL");
            assert_ne!(plan["certificate"]["stop"], "proved");
        }
    }
}

#[test]
fn parts_of_the_work_are_told_where_there_is_no_terminal() {
    let folder = Folder::new();
    let graph = long_search(&folder);
    let line = format!("{graph} --budget 50% --time-limit 4s");
    let output = remat_opt(&line).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_contains_all(&stderr, &["of 4 s: plan"]);
    let quiet = remat_opt(&line).arg("--quiet").output().expect("it runs");
    assert!(!String::from_utf8_lossy(&quiet.stderr).contains("of 4 s"));
}
