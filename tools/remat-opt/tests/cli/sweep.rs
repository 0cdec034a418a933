//! `remat-opt sweep`.

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, stdout_of};

#[test]
fn a_sweep_prints_the_front_and_what_is_impossible() {
    assert_run!("sweep cli/training_chain.json --budgets 90%..70%:10%,4MiB,50%,min {SEARCH}");
}

#[test]
fn plans_of_a_sweep_are_bounded_for_all_stated_shapes() {
    assert_run!(
        "sweep models/features/dynamic_batch.onnx --shapes batch=1..64 --baseline file --budgets 90%,min {SEARCH}"
    );
}

#[test]
fn a_sweep_is_json_on_request() {
    assert_run!("sweep cli/training_chain.json --budgets 80%,1% {SEARCH} --format json");
}

#[test]
fn a_sweep_without_any_plan_is_a_finding() {
    assert_run!("sweep cli/training_chain.json --budgets 1%,2%");
}

#[test]
fn a_sweep_refuses_budgets_without_bytes() {
    assert_run!("sweep cli/training_chain.json --budgets 90%,auto");
}

#[test]
fn a_sweep_refuses_to_continue_what_is_no_front() {
    assert_run!("sweep cli/training_chain.json -o cli/wrong_plan.json");
}

#[test]
fn the_search_says_where_its_time_went() {
    let line = format!("sweep cli/training_chain.json --budgets 80% {SEARCH} --search-profile");
    let said = remat_opt(&line).output().expect("the program runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let table = String::from_utf8(said.stderr).expect("UTF-8");
    let steps = |round: &str| {
        let mut row = table.lines().map(str::split_whitespace);
        let mut row = row.find_map(|mut row| (row.next() == Some(round)).then_some(row))?;
        row.nth(1)?.parse::<u64>().ok()
    };
    assert_contains_all(&table, &["better plans", "time saved"]);
    assert!(steps("repair") > Some(0), "{table}");
    assert!(steps("lns") > Some(0), "{table}");
}

/// The second run takes everything from the file of the first one; the chart shows the floor and what is impossible.
#[test]
fn a_sweep_is_continued_and_drawn() {
    let folder = Folder::new();
    let run = || {
        let mut command = remat_opt(&format!("sweep cli/training_chain.json --budgets 80%,60%,1% {SEARCH}"));
        command.arg("-o").arg(folder.path("front.json"));
        command.arg("--svg").arg(folder.path("front.svg"));
        let stdout = stdout_of(&mut command);
        let table: Vec<_> = stdout.lines().filter(|line| !line.starts_with("time")).collect();
        (table.join("\n"), folder.read("front.json"))
    };
    let first = run();
    assert_eq!(run(), first);
    assert_contains_all(
        &folder.read("front.svg"),
        &[
            "<svg",
            "floor, 57.1 %",
            "impossible",
            "plans of `search`",
            "training_chain: memory against time",
        ],
    );
}
