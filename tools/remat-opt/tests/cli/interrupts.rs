//! Signals and time limits: how a run ends, what it leaves, and what becomes of the processes that it started. Linux only, where
//! processes can be looked at.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{PATIENCE, Run, left_in, with_signals};
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
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let status = i32::try_from(128 + number).expect("it is small");
        let folder = Folder::new();
        let graph = long_search(&folder);
        let line = format!("{graph} --budget 50% --time-limit 1h --format json -v -o");
        let run = Run::start(&mut with_signals(
            "--default-signal",
            remat_opt(&line).arg(folder.path("plan.json")),
        ));
        run.wait_for_handler(number);
        // Whether it has a plan by then is not asked.
        std::thread::sleep(Duration::from_secs(2));
        run.send(signal);
        let (output, temporary, took) = run.end();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert_contains_all(&stderr, &["interrupted"]);
        assert!(took < PATIENCE, "{took:?}");
        assert_eq!(left_in(&temporary), Vec::<String>::new());
        // What was checked is written whole; what was not is not written.
        if let Ok(plan) = std::fs::read_to_string(folder.path("plan.json")) {
            let plan: Value = serde_json::from_str(&plan).expect("it is whole");
            assert_ne!(plan["certificate"]["status"], "OPTIMAL");
            assert_ne!(plan["certificate"]["stop"], "proved");
        }
    }
}

/// What is written to a reader that waits longer than a program without a result may take to end.
#[test]
fn a_signal_while_the_result_is_written_does_not_cut_it_off() {
    let folder = Folder::new();
    let graph = long_search(&folder);
    let line = format!("{graph} --budget none --time-limit 1h --target plan -o -");
    let whole = remat_opt(&line).output().expect("it runs");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    assert!(whole.stdout.len() > 1 << 17, "more than a pipe holds");
    let mut run = Run::start(&mut remat_opt(&line));
    // The report is there before the result is handed on.
    let mut stderr = BufReader::new(run.child.stderr.take().expect("it is a pipe"));
    let mut said = String::new();
    while !said.contains("Written") {
        assert_ne!(stderr.read_line(&mut said).expect("it is text"), 0, "{said}");
    }
    run.send("-INT");
    std::thread::sleep(Duration::from_millis(1_500));
    let (output, temporary, _) = run.end();
    stderr.read_to_string(&mut said).expect("it is text");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_contains_all(&said, &["interrupted"]);
    let steps = |stdout: &[u8]| {
        let plan: Value = serde_json::from_slice(stdout).expect("it is whole");
        plan["steps"].clone()
    };
    assert_eq!(steps(&output.stdout), steps(&whole.stdout));
    assert_eq!(left_in(&temporary), Vec::<String>::new());
}

#[test]
fn a_terminal_that_hangs_up_does_not_end_what_ignores_it() {
    let folder = Folder::new();
    let graph = long_search(&folder);
    let line = format!("{graph} --budget 50% --time-limit 1h");
    let mut command = with_signals("--ignore-signal=HUP", &remat_opt(&line));
    let run = Run::start(command.current_dir(folder.path("")));
    run.wait_for_handler(15);
    run.send("-HUP");
    run.send("-TERM");
    let (output, _, _) = run.end();
    assert_eq!(
        output.status.code(),
        Some(143),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_folder_of_a_run_that_was_killed_is_removed_by_a_later_one_and_that_of_a_live_one_stays() {
    let folder = Folder::new();
    let graph = long_search(&folder);
    // What comes from stdin is kept in the folder.
    let search = remat_opt_reading(&graph, "- --input-format json --budget 50% --time-limit 1h");
    let locks_in = |temporary: &Folder| {
        let folders = left_in(temporary)
            .into_iter()
            .map(|name| temporary.path(&name).join(".lock"));
        folders.filter(|lock| lock.exists()).collect::<Vec<_>>()
    };
    // A folder counts as left behind only where its file is not young.
    let make_old = |lock: &Path| {
        let file = std::fs::File::options().write(true).open(lock).expect("it is there");
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3_600);
        file.set_modified(hour_ago).expect("its time can be set");
    };
    let until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut killed = Run::start(&mut search());
    until(&|| locks_in(&killed.temporary).len() == 1);
    killed.send("-KILL");
    killed.child.wait().expect("it is over");
    let dead = locks_in(&killed.temporary).remove(0);
    make_old(&dead);
    let live = Run::start_in(killed.temporary, &mut search());
    until(&|| !dead.exists() && locks_in(&live.temporary).len() == 1);
    let alive = locks_in(&live.temporary).remove(0);
    make_old(&alive);
    let mut inspect = remat_opt_reading(&graph, "inspect - --input-format json")();
    let inspect = inspect
        .env("TMPDIR", live.temporary.path(""))
        .output()
        .expect("it runs");
    assert!(inspect.status.success(), "{}", String::from_utf8_lossy(&inspect.stderr));
    assert!(alive.exists());
    live.wait_for_handler(15);
    live.send("-TERM");
    let (_, temporary, _) = live.end();
    assert_eq!(left_in(&temporary), Vec::<String>::new());
}

/// Makes the program with these arguments and a file for its stdin.
fn remat_opt_reading(stdin: &str, line: &str) -> impl Fn() -> Command {
    move || {
        let mut command = remat_opt(line);
        command.stdin(std::fs::File::open(stdin).expect("it is there"));
        command
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
