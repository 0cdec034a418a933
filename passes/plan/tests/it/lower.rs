//! Sequences become plans: views run on demand, storages are freed after their last use.

use remat_plan::{
    LowerError, OpId, Plan, PlanFile, Problem, StorageRole, Structure, TensorId, baseline, lower_sequence,
};
use remat_verify::replay;

use remat_testing::net::{Net, Place, example, kept, op, step, transient};

/// The plan of a sequence of op names.
fn lowered(problem: &Problem, sequence: &str) -> Result<Plan, LowerError> {
    let ops: Vec<OpId> = sequence.split(' ').map(|name| op(problem, name)).collect();
    lower_sequence(problem, &Structure::of(problem), ops)
}

/// A valid plan as text.
#[track_caller]
fn text(problem: &Problem, plan: &Plan) -> String {
    assert_eq!(replay(problem, plan).map(|_| ()), Ok(()));
    let records = PlanFile::records(problem, plan);
    let step = |record: &remat_plan::StepRecord| {
        let name = record.node.as_ref().or(record.tensor.as_ref()).unwrap();
        format!("{} {name}", format!("{:?}", record.op).to_lowercase())
    };
    records.iter().map(step).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_baseline_runs_every_op_once_and_frees_after_the_last_use() {
    let problem = example().done();
    insta::assert_snapshot!(text(&problem, &baseline(&problem)), @"compute conv, compute flat, compute gemm, compute relu, free b, compute add, free a, free c");
    assert_eq!(baseline(&Net::new().done()), Plan::default());
}

#[test]
fn a_view_is_run_again_once_what_it_looks_at_was() {
    let problem = example().done();
    let plan = lowered(&problem, "conv gemm relu conv add").unwrap();
    insta::assert_snapshot!(text(&problem, &plan), @"compute conv, compute flat, compute gemm, free a, compute relu, free b, recompute conv, recompute flat, compute add, free a, free c");
}

#[test]
fn chains_of_views_are_run_from_the_base_and_only_once_for_several_readers() {
    let problem = Net::new()
        .input("x")
        .op("a", 1, &["x"], &[("ta", transient(8))])
        .op("v", 0, &["ta"], &[("tv", Place::View("ta"))])
        .op("w", 0, &["tv"], &[("tw", Place::View("tv"))])
        .op("f", 1, &["tw"], &[("tf", transient(8))])
        .op("g", 1, &["tw", "tf"], &[("tg", kept(8))])
        .done();
    insta::assert_snapshot!(text(&problem, &lowered(&problem, "a f g").unwrap()), @"compute a, compute v, compute w, compute f, compute g, free ta, free tf");
    insta::assert_snapshot!(text(&problem, &lowered(&problem, "a f a g").unwrap()), @"compute a, compute v, compute w, compute f, free ta, recompute a, recompute v, recompute w, compute g, free ta, free tf");
}

#[test]
fn graph_outputs_are_never_freed_even_where_their_op_runs_again() {
    let problem = Net::new()
        .input("x")
        .op("fork", 4, &["x"], &[("y", kept(10)), ("t", transient(20))])
        .op("flat", 0, &["y"], &[("v", Place::View("y"))])
        .op("use", 1, &["t", "v"], &[("u", transient(5))])
        .op("late", 1, &["t", "u", "v"], &[("z", kept(1))])
        .done();
    insta::assert_snapshot!(text(&problem, &lowered(&problem, "fork use fork late").unwrap()), @"compute fork, compute flat, compute use, free t, recompute fork, compute late, free t, free u");
}

#[test]
fn results_that_nobody_reads_die_at_once_and_the_others_one_by_one() {
    let problem = Net::new()
        .input("x")
        .op(
            "split",
            1,
            &["x"],
            &[("p", transient(1)), ("q", transient(1)), ("r", transient(1))],
        )
        .op("f", 1, &["p"], &[("s", transient(1))])
        .op("g", 1, &["q", "s"], &[("y", kept(1))])
        .done();
    insta::assert_snapshot!(text(&problem, &lowered(&problem, "split f g").unwrap()), @"compute split, free r, compute f, free p, compute g, free q, free s");
    insta::assert_snapshot!(text(&problem, &lowered(&problem, "split f split g").unwrap()), @"compute split, free q, free r, compute f, free p, recompute split, free p, free r, compute g, free q, free s");
}

#[test]
fn views_of_inputs_and_views_that_nobody_reads_are_scheduled() {
    let problem = Net::new()
        .input("x")
        .op("of_input", 0, &["x"], &[("xv", Place::View("x"))])
        .op("a", 1, &["xv"], &[("ta", kept(1))])
        .op("unread", 0, &["ta"], &[("tv", Place::View("ta"))])
        .op("constant", 0, &[], &[("k", Place::New(StorageRole::External, 1))])
        .done();
    let structure = Structure::of(&problem);
    assert_eq!(structure.scheduled().count(), problem.ops.len());
    insta::assert_snapshot!(text(&problem, &baseline(&problem)), @"compute of_input, compute a, compute unread, compute constant");
}

#[test]
fn an_op_before_what_it_reads_is_an_error_even_through_a_view() {
    let problem = example().done();
    let not_computed = |op: &str, tensor: &str| {
        Err(LowerError::NotComputed {
            op: op.into(),
            tensor: tensor.into(),
        })
    };
    assert_eq!(lowered(&problem, "relu"), not_computed("relu", "b"));
    assert_eq!(lowered(&problem, "gemm"), not_computed("gemm", "a"));
}

#[test]
fn long_chains_of_views_do_not_overflow_the_stack() {
    const LENGTH: usize = 100_000;
    let mut net = Net::new().input("x").op("a", 1, &["x"], &[("t0", transient(8))]);
    // By ids: looking every name up would take quadratic time.
    for index in 1..=LENGTH {
        let last = TensorId::new(index);
        net.add(step(&format!("view{index}"), 0, vec![last]), [Place::View(last)]);
    }
    let end = net.add(step("end", 1, vec![TensorId::new(LENGTH + 1)]), []);
    let problem = net.done();
    let structure = Structure::of(&problem);
    assert_eq!(structure.scheduled().count(), 2);
    let plan = lower_sequence(&problem, &structure, [OpId::new(0), OpId::new(0), end]).unwrap();
    assert_eq!(plan.runs().count(), LENGTH + 3);
    assert!(replay(&problem, &plan).is_ok());
}
