//! Plans of subgraphs, by every command that plans.

use serde_json::Value;

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, stdout_of};

/// The second run takes the plans of subgraphs from the file of the first one, and `verify` accepts them.
#[test]
fn a_sweep_plans_subgraphs_for_each_budget_and_continues_with_them() {
    let folder = Folder::new();
    let run = || {
        let mut command = remat_opt(&format!(
            "sweep models/bodies/nested.onnx --baseline file --budgets 50%,min {SEARCH}"
        ));
        command.arg("-o").arg(folder.path("front.json"));
        let stdout = stdout_of(&mut command);
        let lines: Vec<_> = stdout.lines().filter(|line| !line.starts_with("time")).collect();
        (lines.join("\n"), folder.read("front.json"))
    };
    let (first, front) = run();
    assert_contains_all(
        &first,
        &[
            "min: with plans of subgraphs",
            "`if/then_branch`",
            "`if/then_branch/t.loop/body`",
        ],
    );
    let points = |front: &str| -> Vec<Value> {
        let front: Value = serde_json::from_str(front).expect("it is JSON");
        front["points"].as_array().expect("it has points").clone()
    };
    let steps = |front: &str| -> Vec<[Value; 2]> {
        let plans = points(front).into_iter().map(|point| point["in_bodies"].clone());
        let of_both = |plan: Value| {
            let inner = &plan["bodies"][0]["plan"]["bodies"][0]["plan"];
            assert!(inner["steps"].is_array(), "{plan}");
            [plan["steps"].clone(), inner["steps"].clone()]
        };
        plans.map(of_both).collect()
    };
    let (again, continued) = run();
    assert_eq!(again, first);
    assert_eq!(steps(&continued), steps(&front));
    for point in points(&front) {
        let plan = &point["in_bodies"];
        assert!(!plan["bodies"].as_array().expect("plans of subgraphs").is_empty());
        std::fs::write(folder.path("plan.json"), plan.to_string()).expect("it is written");
        let mut verify = remat_opt("verify models/bodies/nested.onnx");
        assert_contains_all(&stdout_of(verify.arg(folder.path("plan.json"))), &["valid: peak"]);
    }
}

#[test]
fn a_comparison_plans_subgraphs_once_for_all_solvers() {
    let line = "compare models/bodies/loop.onnx --baseline file --budgets 50% --solvers search,greedy --step-limit 20000 --threads 1";
    let stdout = stdout_of(&mut remat_opt(line));
    assert_contains_all(
        &stdout,
        &["50%: 1 subgraph planned once, by `auto`, for all solvers", "yes"],
    );
}

#[test]
fn an_output_without_words_for_plans_of_subgraphs_names_the_nodes() {
    let folder = Folder::new();
    for extension in ["sched", "remat", "dot"] {
        let mut command = remat_opt(&format!("models/bodies/loop.onnx --baseline file -b 99% {SEARCH}"));
        command.arg("-o").arg(folder.path(&format!("out.{extension}")));
        let output = command.output().expect("the program runs");
        let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
        let expected =
            format!("`.{extension}` files cannot represent plans of subgraphs: those of `loop` stay as they are");
        assert_contains_all(&message, &[&expected]);
    }
}
