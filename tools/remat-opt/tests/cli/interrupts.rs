//! Signals and time limits: how a run ends, what it leaves, and what becomes of the processes that it started. Linux only, where
//! processes can be looked at.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::runtime::with_runtime;
use crate::{Folder, assert_contains_all, remat_opt};

const ENDLESS: &str = "cli/infinite_loop.onnx";
/// A machine under load is slow, a run that does not end is forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run under way, with a folder of its own for temporary files.
struct Run {
    child: Child,
    temporary: Folder,
}

impl Run {
    fn start(command: &mut Command) -> Self {
        let temporary = Folder::new();
        let child = command
            .env("TMPDIR", temporary.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self { child, temporary }
    }

    fn send(&self, signal: &str) {
        let number = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &number]).status();
        assert!(status.expect("there is `kill`").success());
    }

    /// Waits for the end; the output and how long it took.
    fn end(self) -> (Output, Folder, Duration) {
        let started = Instant::now();
        let output = self.child.wait_with_output().expect("it ends");
        (output, self.temporary, started.elapsed())
    }

    /// Waits until the process exists that runs a model.
    fn wait_for_child(&self) {
        until("a process runs the model", || {
            let numbers = processes_with(&self.temporary.path(""));
            numbers.iter().any(|&number| number != self.child.id())
        });
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes whose folder for temporary files is this one, or lies in it.
fn processes_with(temporary: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("this is Linux");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let variable = format!("TMPDIR={}", temporary.display());
    let is_ours = |number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| entry.starts_with(variable.as_bytes()))
    };
    numbers.filter(is_ours).collect()
}

fn left_in(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).expect("it is there");
    entries
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// A problem that no search is done with soon: many layers, each read again much later.
fn long_search(folder: &Folder) -> String {
    const OPS: usize = 2_000;
    let op = |index: usize| {
        let inputs: Vec<String> = [
            index.checked_sub(1),
            (2 * OPS).checked_sub(index + 1).filter(|&twin| twin < index),
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
fn a_signal_while_a_model_is_measured_leaves_no_process_and_no_file() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        let Some(mut command) = with_runtime(&format!("{ENDLESS} --time-limit 1h")) else {
            return;
        };
        let run = Run::start(command.arg("-o").arg(folder.path("out.onnx")));
        // Past the process that says which version the library has.
        std::thread::sleep(Duration::from_secs(2));
        run.wait_for_child();
        run.send(signal);
        let (output, temporary, took) = run.end();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert_contains_all(&stderr, &["interrupted"]);
        assert!(took < PATIENCE, "{took:?}");
        assert_eq!(left_in(&temporary), Vec::<String>::new());
        assert!(processes_with(&temporary.path("")).is_empty());
        assert_eq!(left_in(&folder), Vec::<String>::new(), "nothing was verified");
    }
}

#[test]
fn a_process_that_runs_a_model_dies_with_the_program() {
    let Some(mut command) = with_runtime(&format!("verify {ENDLESS} {ENDLESS}")) else {
        return;
    };
    let mut run = Run::start(&mut command);
    std::thread::sleep(Duration::from_secs(2));
    run.wait_for_child();
    run.send("-KILL");
    run.child.wait().expect("it is over");
    until("the process is gone", || {
        processes_with(&run.temporary.path("")).is_empty()
    });
}

#[test]
fn a_model_that_never_ends_reaches_the_limit_and_is_named() {
    let Some(mut command) = with_runtime(&format!("verify {ENDLESS} {ENDLESS} --time-limit 2s")) else {
        return;
    };
    let (output, temporary, _) = Run::start(&mut command).end();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert_contains_all(&stderr, &["infinite_loop.onnx` did not finish within 2 s"]);
    assert_eq!(left_in(&temporary), Vec::<String>::new());
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
