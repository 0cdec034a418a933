//! `remat-opt simulate`, and logs as an input.

#[test]
fn one_replay_of_a_log_is_one_object() {
    assert_run!("simulate dtr-logs/training_step.log --ratio 0.8");
}

#[test]
fn several_replays_of_a_log_are_a_table() {
    let log = "dtr-logs/training_step.log";
    assert_run!("simulate {log} --heuristic all --ratio 1,0.8,50% --trials 3");
    assert_run!("simulate {log} --budgets 12kB --runtime banish --format text");
    assert_run!("simulate {log} --ratio 0.9,0.7 --format json");
}

#[test]
fn a_broken_log_is_refused_with_its_line() {
    assert_run!("simulate dtr-logs/invalid/alias_missing.log");
    assert_run!("dtr-logs/invalid/alias_missing.log");
}

#[test]
fn an_unknown_heuristic_lists_what_exists() {
    assert_run!("simulate dtr-logs/training_step.log --heuristic oracle");
}

#[test]
fn a_log_is_planned_like_a_model() {
    assert_run!("dtr-logs/training_step.log --solver dtr:eq --budget 70%");
}
