//! What the program does with files: it destroys none, and leaves none behind.

use std::path::Path;
use std::process::{Command, Output};

use crate::{Folder, assert_contains_all, remat_opt, workspace};

/// A folder with a graph, its plan, a model with weights in another file, and a link to each of the first two.
fn folder() -> Folder {
    let folder = Folder::new();
    let test = workspace().join("test");
    for (from, to) in [
        ("cli/training_chain.json", "graph.json"),
        ("models/features/external_data.onnx", "model.onnx"),
        ("models/features/external_data.bin", "external_data.bin"),
    ] {
        std::fs::copy(test.join(from), folder.path(to)).expect("it can be copied");
    }
    let output = run(&folder, "graph.json --budget none --step-limit 10 -o plan.json");
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::write(folder.path("profile.json"), "{}").expect("it can be written");
    std::fs::write(folder.path("devices.toml"), "").expect("it can be written");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("graph.json", folder.path("link.json")).expect("it can be made");
        std::fs::hard_link(folder.path("graph.json"), folder.path("hard.json")).expect("it can be made");
    }
    folder
}

fn run(folder: &Folder, line: &str) -> Output {
    let mut command = remat_opt(line);
    let command: &mut Command = command.current_dir(folder.0.path());
    command.output().expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Names and contents of all files of a folder.
fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.0.path()).expect("it is there");
    let content = |path: &Path| std::fs::read(path).unwrap_or_default();
    let mut all: Vec<_> = entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), content(&entry.path())))
        .collect();
    all.sort();
    all
}

#[test]
fn no_input_is_written_over() {
    let folder = folder();
    let before = contents(&folder);
    let steps = "--step-limit 10";
    for line in [
        format!("graph.json -o graph.json {steps}"),
        format!("graph.json --emit-plan graph.json {steps}"),
        format!("graph.json --emit-plan ./../{}/graph.json {steps}", name(&folder)),
        "graph.json --plan plan.json --emit-plan plan.json".to_owned(),
        format!("model.onnx --target onnx --emit-plan model.onnx {steps}"),
        format!("model.onnx --target onnx --emit-plan external_data.bin {steps}"),
        format!("model.onnx --target onnx --profile profile.json --emit-plan profile.json {steps}"),
        format!("model.onnx --target onnx --device-file devices.toml --emit-plan devices.toml {steps}"),
        format!("compare graph.json --svg graph.json --solvers search {steps}"),
        format!("compare graph.json -o graph.json --solvers search {steps}"),
        format!("sweep graph.json --svg graph.json {steps}"),
        format!("sweep graph.json -o graph.json {steps}"),
        "profile model.onnx -o model.onnx".to_owned(),
        "profile model.onnx -o external_data.bin".to_owned(),
        "verify graph.json plan.json --svg plan.json".to_owned(),
        "verify graph.json plan.json --svg graph.json".to_owned(),
        "verify model.onnx model.onnx -o model.onnx".to_owned(),
        "verify model.onnx model.onnx -o external_data.bin".to_owned(),
    ] {
        refused(&folder, &line, "refusing to write");
        assert!(contents(&folder) == before, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn no_input_is_written_over_by_another_name() {
    let folder = folder();
    let before = contents(&folder);
    for other in ["link.json", "hard.json"] {
        refused(&folder, &format!("graph.json --emit-plan {other}"), "refusing to write");
        refused(&folder, &format!("{other} --emit-plan graph.json"), "refusing to write");
    }
    assert!(contents(&folder) == before);
}

#[test]
fn outputs_must_differ() {
    let folder = folder();
    let before = contents(&folder);
    for line in [
        "graph.json -o out.json --emit-plan out.json",
        "graph.json -o out.json --emit-plan ./out.json",
        "compare graph.json -o out.json --svg out.json",
        "sweep graph.json -o out.json --svg out.json",
        "verify graph.json plan.json --svg out.svg -o out.svg",
    ] {
        refused(&folder, line, "give each a file of its own");
    }
    assert!(contents(&folder) == before);
}

#[test]
fn a_plan_does_not_take_the_place_of_weights_that_were_written() {
    let folder = folder();
    std::fs::create_dir(folder.path("out")).expect("it can be made");
    let line = "model.onnx --target onnx -o out/model.onnx --emit-plan out/external_data.bin --step-limit 10";
    refused(&folder, line, "a data file of the written model");
    let weights = std::fs::read(folder.path("out/external_data.bin")).expect("it was written");
    assert_eq!(
        weights,
        std::fs::read(folder.path("external_data.bin")).expect("it is there")
    );
}

#[cfg(unix)]
#[test]
fn special_files_are_refused_and_links_written_through() {
    let folder = folder();
    for (path, what) in [
        ("/dev/null", "a device"),
        (".", "it names no file"),
        ("sub", "a folder"),
    ] {
        std::fs::create_dir_all(folder.path("sub")).expect("it can be made");
        refused(&folder, &format!("graph.json --emit-plan {path}"), what);
    }
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    refused(&folder, "compare graph.json --svg pipe", "a pipe");
    std::os::unix::fs::symlink("sub/plan.json", folder.path("latest.json")).expect("it can be made");
    let output = run(&folder, "graph.json --step-limit 10 --emit-plan latest.json");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.read("sub/plan.json").contains("remat-plan"));
    assert!(folder.path("latest.json").is_symlink());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    // A limit on the size of files stands for a full disk: what is written fails in the middle.
    let folder = folder();
    let before = contents(&folder);
    let program = remat_opt("");
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" graph.json --step-limit 10 -o out.dot --emit-plan plan.json";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(program.get_program())
        .current_dir(folder.0.path())
        .output()
        .expect("bash runs");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_contains_all(&stderr(&output), &["cannot write", "out.dot"]);
    assert!(contents(&folder) == before);
}

fn name(folder: &Folder) -> String {
    let name = folder.0.path().file_name().expect("it has a name");
    name.to_string_lossy().into_owned()
}

/// The run ends with the status for wrong usage, and says why.
fn refused(folder: &Folder, line: &str, why: &str) {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
    // Long lines are wrapped.
    let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("│ ", "");
    assert!(text.contains(why), "{line}: {text}");
}
