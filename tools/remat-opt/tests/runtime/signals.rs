//! Signals and time limits while a model runs.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{PATIENCE, Run, left_in, with_signals};
use crate::{Folder, assert_contains_all, with_runtime};

const ENDLESS: &str = "cli/infinite_loop.onnx";

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

/// Waits until the process exists that runs a model.
fn wait_for_child(run: &Run) {
    until("a process runs the model", || {
        let numbers = processes_with(&run.temporary.path(""));
        numbers.iter().any(|&number| number != run.child.id())
    });
}

pub(crate) fn a_signal_while_a_model_is_measured_leaves_no_process_and_no_file() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let folder = Folder::new();
        let mut command = with_runtime(&format!("{ENDLESS} --time-limit 1h"));
        command.arg("-o").arg(folder.path("out.onnx"));
        let run = Run::start(&mut with_signals("--default-signal", &command));
        run.wait_for_handler(15);
        // Past the process that says which version the library has.
        std::thread::sleep(Duration::from_secs(2));
        wait_for_child(&run);
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

pub(crate) fn a_process_that_runs_a_model_dies_with_the_program() {
    let mut command = with_runtime(&format!("verify {ENDLESS} {ENDLESS}"));
    let mut run = Run::start(&mut command);
    std::thread::sleep(Duration::from_secs(2));
    wait_for_child(&run);
    run.send("-KILL");
    run.child.wait().expect("it is over");
    until("the process is gone", || {
        processes_with(&run.temporary.path("")).is_empty()
    });
}

pub(crate) fn a_model_that_never_ends_reaches_the_limit_and_is_named() {
    let mut command = with_runtime(&format!("verify {ENDLESS} {ENDLESS} --time-limit 2s"));
    let (output, temporary, _) = Run::start(&mut command).end();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert_contains_all(&stderr, &["infinite_loop.onnx` did not finish within 2 s"]);
    assert_eq!(left_in(&temporary), Vec::<String>::new());
}
