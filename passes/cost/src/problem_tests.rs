use remat_ir::{Dim, Effects, ElementType, GraphBuilder, OpSpec, Placement, ResultSpec, ValueType};

use super::*;
use crate::{Device, analytic, no_bodies};

fn floats(n: u64) -> ValueType {
    ValueType::tensor(ElementType::Float32, &[n])
}

/// `x -> a -> (view v) -> split into b, c; b is the output`, with a constant made by an op.
fn graph() -> Graph {
    let mut builder = GraphBuilder::new("small");
    let x = builder.input("x", floats(10)).unwrap();
    let mut constant = OpSpec::new("one", "Constant");
    constant.results.push(Some(ResultSpec {
        name: "k".into(),
        ty: floats(10),
        placement: Placement::Constant,
    }));
    let (_, k) = builder.op(constant).unwrap();
    let add = OpSpec::new("add", "Add")
        .reads(x)
        .reads(k[0].unwrap())
        .reads(x)
        .defines("a", floats(10));
    let (_, a) = builder.op(add).unwrap();
    let a = a[0].unwrap();
    let (_, v) = builder
        .op(OpSpec::new("flat", "Flatten").reads(a).views("v", floats(10), a))
        .unwrap();
    let split = OpSpec::new("split", "Split")
        .reads(v[0].unwrap())
        .defines("b", floats(4))
        .defines("c", floats(6));
    let (_, parts) = builder.op(split.effects(Effects::Random)).unwrap();
    builder.output(parts[0].unwrap());
    builder.finish()
}

fn built(accounting: Accounting) -> Problem {
    let graph = graph();
    let options = ProblemOptions {
        accounting,
        ..ProblemOptions::default()
    };
    problem(&graph, &analytic(&graph, &Device::default(), no_bodies), &options).unwrap()
}

fn storages(problem: &Problem) -> Vec<(&str, u64, StorageRole)> {
    let row = |(id, s): (StorageId, &ProblemStorage)| (problem.storage_name(id), s.bytes, s.role);
    problem.storages.iter_enumerated().map(row).collect()
}

#[test]
fn runtime_accounting_keeps_outputs_and_what_nobody_reads_and_aligns_sizes() {
    use StorageRole::{External, LiveOut, Transient};
    let problem = built(Accounting::Runtime);
    let expected = [
        ("x", 64, External),
        ("k", 64, External),
        ("a", 64, Transient),
        ("b", 64, LiveOut),
        ("c", 64, LiveOut),
    ];
    assert_eq!(storages(&problem), expected);
}

#[test]
fn paper_accounting_lets_outputs_die_at_their_true_size() {
    use StorageRole::{External, Transient};
    let problem = built(Accounting::Paper);
    let expected = [
        ("x", 40, External),
        ("k", 40, External),
        ("a", 40, Transient),
        ("b", 16, Transient),
        ("c", 24, Transient),
    ];
    assert_eq!(storages(&problem), expected);
}

#[test]
fn a_kept_view_keeps_the_storage_it_looks_into() {
    let mut builder = GraphBuilder::new("view");
    let x = builder.input("x", floats(4)).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("neg", "Neg").reads(x).defines("y", floats(4)))
        .unwrap();
    let y = y[0].unwrap();
    let (_, v) = builder
        .op(OpSpec::new("flat", "Flatten").reads(y).views("v", floats(4), y))
        .unwrap();
    builder.output(v[0].unwrap());
    builder.output(x);
    let graph = builder.finish();
    let problem = problem(
        &graph,
        &analytic(&graph, &Device::default(), no_bodies),
        &ProblemOptions::default(),
    )
    .unwrap();
    let roles: Vec<StorageRole> = problem.storages.iter().map(|s| s.role).collect();
    assert_eq!(roles, [StorageRole::External, StorageRole::LiveOut]);
}

#[test]
fn ops_keep_ids_read_each_tensor_once_and_constants_are_free() {
    let graph = graph();
    let problem = built(Accounting::Runtime);
    let names: Vec<&str> = problem.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["one", "add", "flat", "split"]);
    assert_eq!(problem.tensors.len(), graph.tensors.len());
    let [one, add, flat, split] = &problem.ops.raw[..] else {
        panic!("four ops");
    };
    assert_eq!(one.duration, 0);
    assert_eq!(add.reads.len(), 2);
    assert!(flat.duration > 0 && flat.duration < add.duration);
    assert!(!split.recomputable && add.recomputable);
    assert_eq!(split.defines.len(), 2);
}

#[test]
fn workspace_counts_in_runtime_accounting_only() {
    let mut builder = GraphBuilder::new("where");
    let c = builder
        .input("c", ValueType::tensor(ElementType::Bool, &[1000]))
        .unwrap();
    let x = builder.input("x", floats(1000)).unwrap();
    let spec = OpSpec::new("pick", "Where")
        .reads(c)
        .reads(x)
        .reads(x)
        .defines("y", floats(1000));
    builder.op(spec).unwrap();
    let graph = builder.finish();
    let workspace = |accounting, device: &str| {
        let options = ProblemOptions {
            accounting,
            ..ProblemOptions::default()
        };
        let profile = analytic(&graph, &Device::preset(device).unwrap(), no_bodies);
        problem(&graph, &profile, &options).unwrap().ops.raw[0].workspace
    };
    assert_eq!(workspace(Accounting::Runtime, "cpu"), 8_000);
    assert_eq!(workspace(Accounting::Paper, "cpu"), 0);
    assert_eq!(workspace(Accounting::Runtime, "a100"), 0);
}

#[test]
fn unknown_sizes_are_an_error_where_they_count() {
    let open = ValueType::Tensor {
        element: ElementType::Float32,
        shape: Some(vec![Dim::Symbol("N".into())]),
    };
    let mut builder = GraphBuilder::new("open");
    let x = builder.input("x", open.clone()).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("neg", "Neg").reads(x).defines("y", open.clone()))
        .unwrap();
    builder
        .op(OpSpec::new("abs", "Abs").reads(y[0].unwrap()).defines("z", open))
        .unwrap();
    let graph = builder.finish();
    let error = problem(
        &graph,
        &analytic(&graph, &Device::default(), no_bodies),
        &ProblemOptions::default(),
    )
    .unwrap_err();
    insta::assert_snapshot!(error, @"the sizes of 2 tensors are not known: `y`, `z`");
}

#[test]
fn a_rewritten_graph_is_rejected() {
    let mut builder = GraphBuilder::new("rewritten");
    let x = builder.input("x", floats(4)).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("neg", "Neg").reads(x).defines("y", floats(4)))
        .unwrap();
    builder.dealloc(y[0].unwrap());
    let graph = builder.finish();
    let error = problem(
        &graph,
        &analytic(&graph, &Device::default(), no_bodies),
        &ProblemOptions::default(),
    )
    .unwrap_err();
    assert_eq!(error, ProblemBuildError::AlreadyRewritten("dealloc y".into()));
}

#[test]
fn a_profile_of_another_graph_is_rejected() {
    let other = GraphBuilder::new("empty").finish();
    let profile = analytic(&other, &Device::default(), no_bodies);
    let error = problem(&graph(), &profile, &ProblemOptions::default()).unwrap_err();
    assert_eq!(error, ProblemBuildError::OpCount { profile: 0, graph: 4 });
    assert!(paper_problem(&graph(), &TiVec::new()).is_err());
}

#[test]
fn sizes_that_overflow_once_aligned_or_summed_are_an_error() {
    let mut builder = GraphBuilder::new("huge");
    let x = builder.input("x", floats(1)).unwrap();
    builder
        .op(OpSpec::new("neg", "Neg").reads(x).defines("y", floats(1)))
        .unwrap();
    let y = StorageId::new(1);
    builder.set_bytes(y, u64::MAX);
    let graph = builder.clone().finish();
    let profile = analytic(&graph, &Device::default(), no_bodies);
    let error = problem(&graph, &profile, &ProblemOptions::default()).unwrap_err();
    assert_eq!(error, ProblemBuildError::Overflow("y".into()));
    builder.set_bytes(y, u64::MAX - 63);
    let error = problem(&builder.finish(), &profile, &ProblemOptions::default()).unwrap_err();
    assert!(matches!(error, ProblemBuildError::Invalid(ProblemError::Overflow(_))));
}

#[test]
fn paper_problems_take_the_durations_they_are_given() {
    let graph = graph();
    let problem = paper_problem(&graph, &TiVec::from(vec![9, 2, 3, 4])).unwrap();
    let durations: Vec<u64> = problem.ops.iter().map(|op| op.duration).collect();
    assert_eq!(durations, [0, 2, 3, 4]);
    assert_eq!(
        (problem.accounting, problem.order),
        (Accounting::Paper, OrderMode::Fixed)
    );
    assert!(problem.ops.iter().all(|op| op.workspace == 0));
}

#[test]
fn what_reads_a_parameter_never_runs_after_the_op_that_updates_it() {
    let mut builder = GraphBuilder::new("step");
    let [x, rate, w, other] = ["x", "rate", "w", "other"].map(|name| builder.input(name, floats(10)).unwrap());
    let mut op = |name: &str, op_type: &str, reads: &[remat_ir::TensorId]| {
        let spec = reads
            .iter()
            .fold(OpSpec::new(name, op_type), |spec, &read| spec.reads(read));
        let (_, made) = builder.op(spec.defines(name, floats(10))).unwrap();
        made[0].unwrap()
    };
    let forward = op("forward", "Mul", &[x, w]);
    let unrelated = op("unrelated", "Mul", &[x, other]);
    let back = op("back", "Mul", &[w, forward, w]);
    let gradient = op("gradient", "Mul", &[x, back]);
    let update = OpSpec::new("update", "SGDOptimizer").effects(Effects::Stateful);
    let mut update = update.reads(rate).reads(w).reads(gradient).defines("new", floats(10));
    update.domain = "com.microsoft".to_owned();
    let again = OpSpec {
        name: "again".to_owned(),
        ..update.clone()
    };
    builder.op(update).unwrap();
    let mut again = again;
    again.results.clear();
    builder.op(again.defines("newer", floats(10))).unwrap();
    let (_, last) = builder
        .op(OpSpec::new("behind", "Mul")
            .reads(w)
            .reads(unrelated)
            .defines("y", floats(10)))
        .unwrap();
    builder.output(last[0].unwrap());
    let graph = builder.finish();
    let costs = analytic(&graph, &Device::default(), no_bodies);
    let problem = problem(&graph, &costs, &ProblemOptions::default()).unwrap();
    let name = |op: OpId| problem.ops[op].name.as_str();
    let pairs: Vec<_> = problem
        .anti_dependences
        .iter()
        .map(|pair| (name(pair.before), name(pair.after)))
        .collect();
    assert_eq!(pairs, [("forward", "update"), ("back", "update"), ("update", "again")]);
}
