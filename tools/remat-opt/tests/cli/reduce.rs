//! `remat-opt reduce`: the smallest input on which a command still fails.

use std::process::Output;

use remat::plan::Problem;

use crate::{Folder, assert_contains_all, remat_opt};

/// Fails with status 7 exactly on files that have both words.
const BOTH: &str = r#"grep -q "$1" "$3" && grep -q "$2" "$3" && echo "both are there" >&2 && exit 7; exit 0"#;

/// A chain of 60 ops with links over three of them, sizes and times.
fn chain() -> String {
    let (mut ops, mut tensors, mut storages) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..60_u64 {
        let reads: Vec<u64> = [1, 3].into_iter().filter_map(|back| id.checked_sub(back)).collect();
        ops.push(format!(
            r#"{{"name": "op-{id}-", "duration": {}, "workspace": 64, "reads": {reads:?}, "defines": [{id}]}}"#,
            100 + id
        ));
        tensors.push(format!(r#"{{"name": "t{id}", "storage": {id}, "producer": {id}}}"#));
        storages.push(format!(
            r#"{{"root": {id}, "bytes": {}, "role": "transient"}}"#,
            4096 * (id + 1)
        ));
    }
    let lists = [("ops", ops), ("tensors", tensors), ("storages", storages)];
    let lists = lists.map(|(key, list)| format!(", \"{key}\": [\n{}\n]", list.join(",\n")));
    let head = r#"{"name": "chain", "accounting": "paper", "order": "fixed", "budget": 9, "max_computes": 3"#;
    format!("{head}{}}}\n", lists.concat())
}

/// Runs `reduce` on a file in the folder, with a shell script as the command.
fn reduce(folder: &Folder, input: &str, output: &str, options: &str, script: &[&str]) -> Output {
    let mut command = remat_opt("reduce");
    command.arg(folder.path(input)).arg("-o").arg(folder.path(output));
    command.args(options.split_whitespace()).args(["--", "sh", "-c"]);
    command.arg(script[0]).arg("sh").args(&script[1..]).arg("{}");
    command.output().expect("the program runs")
}

fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fails(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_problem_of_sixty_ops_shrinks_to_the_two_that_matter() {
    let folder = Folder::new();
    std::fs::write(folder.path("chain.json"), chain()).unwrap();
    let report = succeeds(&reduce(
        &folder,
        "chain.json",
        "small.json",
        "",
        &[BOTH, "op-17-", "op-42-"],
    ));
    assert_contains_all(
        &report,
        &[
            "ops           60 -> 2",
            "operands      116 -> 0",
            "limits        2 -> 0",
        ],
    );
    let small = Problem::from_json(&folder.read("small.json")).unwrap();
    let names: Vec<&str> = small.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["op-17-", "op-42-"]);
    assert!(
        small
            .ops
            .iter()
            .all(|op| op.duration == 0 && op.workspace == 0 && op.reads.is_empty())
    );
    assert!(small.tensors.is_empty() && small.storages.is_empty());
    // The same again: what is tried follows from the input alone.
    let again = succeeds(&reduce(
        &folder,
        "chain.json",
        "again.json",
        "",
        &[BOTH, "op-17-", "op-42-"],
    ));
    assert_eq!(again.replace("again.json", "small.json"), report);
    assert_eq!(folder.read("again.json"), folder.read("small.json"));
}

#[test]
fn numbers_that_matter_stay_and_others_go() {
    let folder = Folder::new();
    std::fs::write(folder.path("chain.json"), chain()).unwrap();
    let script = r#"grep -q '"bytes": [0-9]\{5,\}' "$1" && exit 9; exit 0"#;
    succeeds(&reduce(&folder, "chain.json", "small.json", "--status 9", &[script]));
    let small = Problem::from_json(&folder.read("small.json")).unwrap();
    let bytes: Vec<u64> = small.storages.iter().map(|storage| storage.bytes).collect();
    assert_eq!(bytes, [10_000]);
}

#[test]
fn what_is_read_from_an_op_that_is_left_out_comes_from_outside_and_candidates_stay_valid() {
    let folder = Folder::new();
    let case = std::fs::read_to_string(crate::workspace().join("test/plans/valid/page_out_and_in.json")).unwrap();
    let case: serde_json::Value = serde_json::from_str(&case).unwrap();
    std::fs::write(folder.path("net.json"), case["problem"].to_string()).unwrap();
    // Fails where the program reads the problem and `add` has two operands.
    let program = insta_cmd::get_cargo_bin("remat-opt");
    let script = format!(
        r#"tr -d ' \n' <"$1" | grep -q '"add"[^]]*"reads":\[[0-9]*,[0-9]*\]' && {} inspect "$1" >"$1.out" && exit 5; exit 0"#,
        program.display()
    );
    let report = succeeds(&reduce(&folder, "net.json", "small.json", "", &[&script]));
    assert_contains_all(&report, &["ops           5 -> 1", "operands      6 -> 2"]);
    let small = Problem::from_json(&folder.read("small.json")).unwrap();
    // `v`, which `add` reads, was a view: what it looked at stands in its place.
    let names: Vec<&str> = small.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn graphs_of_every_form_shrink() {
    let folder = Folder::new();
    let test = crate::workspace().join("test");
    for (input, name, words, parts) in [
        ("cli/training_chain.json", "chain.json", ["\"f2\"", "\"f5\""], "nodes"),
        (
            "fuzz/text/residual_step.ir",
            "step.ir",
            ["@fc2 ", "@fc1.dw"],
            "ops           11 -> 2",
        ),
        (
            "models/features/if_captures.onnx",
            "if.onnx",
            ["then_branch", "else_branch"],
            "nodes",
        ),
    ] {
        std::fs::copy(test.join(input), folder.path(name)).unwrap();
        let small = format!("small-{name}");
        let report = succeeds(&reduce(
            &folder,
            name,
            &small,
            "--stderr both",
            &[BOTH, words[0], words[1]],
        ));
        assert!(report.contains(parts), "{report}");
        let size = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
        assert!(size(&small) < size(name), "{report}");
    }
    let step: Result<remat::ir::Graph, _> = folder.read("small-step.ir").parse();
    assert_eq!(step.unwrap().ops.len(), 2);
}

#[test]
fn the_folder_of_a_rejected_plan_is_an_input() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("bug")).unwrap();
    std::fs::write(folder.path("bug/remat-bug-0.problem.json"), chain()).unwrap();
    std::fs::write(folder.path("bug/remat-bug-0.steps.json"), "[]").unwrap();
    let report = succeeds(&reduce(
        &folder,
        "bug",
        "small.json",
        "--max-runs 20",
        &[BOTH, "op-17-", "op-42-"],
    ));
    assert_contains_all(&report, &["runs          20", "stopped by a limit"]);
    assert!(Problem::from_json(&folder.read("small.json")).unwrap().ops.len() < 60);
}

#[test]
fn a_command_that_hangs_is_stopped_and_counts() {
    let folder = Folder::new();
    std::fs::write(folder.path("chain.json"), chain()).unwrap();
    let script = r#"grep -q op-17- "$1" && exec sleep 30; exit 0"#;
    let options = "--run-limit 200ms --max-runs 12";
    let report = succeeds(&reduce(&folder, "chain.json", "small.json", options, &[script]));
    assert_contains_all(&report, &["runs          12"]);
}

#[test]
fn a_failure_that_is_not_there_is_told() {
    let folder = Folder::new();
    std::fs::write(folder.path("chain.json"), chain()).unwrap();
    let none = fails(&reduce(&folder, "chain.json", "small.json", "", &["exit 0"]));
    assert!(
        none.contains("succeeds on") && none.contains("there is no failure to keep"),
        "{none}"
    );
    let other = fails(&reduce(&folder, "chain.json", "small.json", "--status 3", &["exit 4"]));
    assert!(other.contains("it ends with exit status 4"), "{other}");
    let words = fails(&reduce(
        &folder,
        "chain.json",
        "small.json",
        "--stderr panicked",
        &["exit 4"],
    ));
    assert!(words.contains("`panicked` is not on stderr"), "{words}");
    let mut command = remat_opt("reduce -o out.json");
    let nowhere = fails(
        &command
            .arg(folder.path("chain.json"))
            .args(["--", "true"])
            .output()
            .unwrap(),
    );
    assert!(
        nowhere.contains("write `{}` where the candidate is to stand"),
        "{nowhere}"
    );
    assert!(!folder.path("small.json").exists());
}

#[test]
fn the_report_is_an_object_too() {
    let folder = Folder::new();
    std::fs::write(folder.path("chain.json"), chain()).unwrap();
    let options = "--format json --max-runs 3";
    let report = succeeds(&reduce(&folder, "chain.json", "small.json", options, &["exit 3"]));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["format"], "remat-reduce/1");
    assert_eq!(
        report["parts"][0],
        serde_json::json!({"kind": "ops", "before": 60, "after": 0})
    );
    assert_eq!((&report["runs"], &report["is_smallest"]), (&3.into(), &false.into()));
}
