//! Pruning drops the runs that nobody profits from, and no other.

use remat_plan::{OpId, Problem, Structure, lower_sequence, prune_sequence};
use remat_verify::replay;

use remat_testing::net::{Net, example, kept, op, transient};

fn pruned(problem: &Problem, sequence: &str) -> String {
    let structure = Structure::of(problem);
    let sequence: Vec<OpId> = sequence.split(' ').map(|name| op(problem, name)).collect();
    let useful = prune_sequence(problem, &structure, &sequence);
    let mut free = problem.clone();
    free.order = remat_plan::OrderMode::Free;
    let figures = |sequence: Vec<OpId>| replay(&free, &lower_sequence(&free, &structure, sequence).unwrap()).unwrap();
    let (before, after) = (figures(sequence), figures(useful.clone()));
    assert!(after.peak <= before.peak && after.duration <= before.duration);
    useful
        .iter()
        .map(|&id| problem.ops[id].name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_run_whose_result_is_made_again_unread_is_dropped() {
    let problem = chain();
    assert_eq!(pruned(&problem, "a b c a d"), "b c a d");
}

#[test]
fn what_only_a_dropped_run_needed_is_dropped_too() {
    let problem = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(8))])
        .op("b", 1, &["ta"], &[("tb", transient(8))])
        .op("c", 1, &["x"], &[("tc", transient(8))])
        .op("d", 1, &["tb", "tc"], &[("td", kept(8))])
        .done();
    assert_eq!(pruned(&problem, "a b c a b d"), "c a b d");
}

#[test]
fn runs_that_are_read_stay_and_so_does_the_last_run_of_an_op() {
    let problem = example().done();
    assert_eq!(pruned(&problem, "conv gemm relu conv add"), "conv gemm relu conv add");
    let unread = Net::new().input("x").op("a", 1, &["x"], &[("ta", transient(8))]).done();
    assert_eq!(pruned(&unread, "a"), "a");
}

#[test]
fn the_run_that_makes_a_graph_output_stays() {
    let problem = Net::new()
        .input("x")
        .op("fork", 4, &["x"], &[("y", kept(10)), ("t", transient(20))])
        .op("other", 1, &["x"], &[("o", transient(5))])
        .op("use", 1, &["t", "o"], &[("u", kept(5))])
        .done();
    assert_eq!(pruned(&problem, "fork other fork use"), "fork other fork use");
}

/// `a` is read by `d` only.
fn chain() -> Problem {
    Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(8))])
        .op("b", 1, &["x"], &[("tb", transient(8))])
        .op("c", 1, &["tb"], &[("tc", transient(8))])
        .op("d", 1, &["ta", "tc"], &[("td", kept(8))])
        .done()
}
