//! Rewritten graphs as a person reads them.

use remat_ir::{Effects, Graph, GraphBuilder, OpSpec, Placement, ResultSpec};
use remat_plan::{Accounting, Step, baseline};
use remat_rewrite::rewrite;

use crate::support::{RECOMPUTING, example, plan, problem, vector};

fn rewritten(graph: &Graph, steps: &str) -> Graph {
    with_reserved(graph, steps, &|_| false)
}

/// Rewrites by a plan that the checker accepts.
fn with_reserved(graph: &Graph, steps: &str, reserved: &dyn Fn(&str) -> bool) -> Graph {
    let problem = problem(graph, Accounting::Runtime, |_| 0);
    let plan = plan(&problem, steps);
    assert_eq!(remat_verify::replay(&problem, &plan).map(|_| ()), Ok(()));
    rewrite(graph, &problem, &plan, reserved).unwrap()
}

#[test]
fn a_recompute_repeats_the_op_and_its_view_with_attributes_and_source() {
    insta::assert_snapshot!(rewritten(&example(), RECOMPUTING));
}

#[test]
fn what_is_paged_out_comes_back_with_its_views() {
    let steps = "compute conv, compute flat, compute gemm, page_out a, compute relu, free b, page_in a, compute add, free a, free c";
    insta::assert_snapshot!(rewritten(&example(), steps));
}

#[test]
fn what_is_made_again_while_it_is_out_is_another_instance() {
    let steps = "compute conv, compute flat, compute gemm, page_out a, compute relu, free b, recompute conv, recompute flat, \
                 page_out a, page_in a, compute add, free a, free c";
    insta::assert_snapshot!(rewritten(&example(), steps));
}

#[test]
fn without_recompute_the_graph_stays_but_for_deallocs() {
    let graph = example();
    let problem = problem(&graph, Accounting::Runtime, |_| 0);
    let new = rewrite(&graph, &problem, &baseline(&problem), &|_| false).unwrap();
    insta::assert_snapshot!(new);
    let mut without_frees = baseline(&problem);
    without_frees.steps.retain(|step| !matches!(step, Step::Free(_)));
    assert_eq!(rewrite(&graph, &problem, &without_frees, &|_| false), Ok(graph));
}

#[test]
fn names_that_are_taken_or_reserved_are_avoided() {
    let steps = "compute conv, compute flat, free a, recompute conv, recompute flat, compute gemm, compute relu, \
                 free a, recompute conv, recompute flat, compute add";
    let mut graph = example();
    graph.ops[remat_ir::OpId::new(2)].name = "conv__remat1".into();
    let steps = steps.replace("gemm", "conv__remat1");
    let reserved = |name: &str| matches!(name, "a__remat1" | "a__remat1_1" | "flat__remat2");
    insta::assert_snapshot!(with_reserved(&graph, &steps, &reserved));
}

/// Two results, one a graph output; a captured value; an optional result left out.
fn fork() -> Graph {
    let mut builder = GraphBuilder::new("fork");
    let x = builder.input("x", vector(8)).unwrap();
    let mut spec = OpSpec::new("fork", "Split").reads(x).defines("y", vector(8));
    spec.results.push(None);
    spec = spec.defines("t", vector(4));
    let (_, results) = builder.op(spec).unwrap();
    let (y, t) = (results[0].unwrap(), results[2].unwrap());
    let mut branch = OpSpec::new("branch", "If")
        .reads(t)
        .defines("u", vector(1))
        .effects(Effects::ControlFlow);
    branch.captures = vec![y];
    let (_, u) = builder.op(branch).unwrap();
    let mut late = OpSpec::new("late", "Sum").reads(u[0].unwrap()).defines("z", vector(1));
    late.captures = vec![t, y];
    let (_, z) = builder.op(late).unwrap();
    builder.output(y);
    builder.output(z[0].unwrap());
    builder.finish()
}

#[test]
fn the_twin_of_a_resident_result_is_deallocated_at_once_and_readers_keep_the_resident_one() {
    insta::assert_snapshot!(rewritten(
        &fork(),
        "compute fork, compute branch, free t, recompute fork, compute late, free t, free u"
    ));
}

#[test]
fn constants_that_ops_make_are_made_anew_but_read_from_the_first() {
    let mut builder = GraphBuilder::new("constant");
    let mut spec = OpSpec::new("k", "Constant");
    spec.results.push(Some(ResultSpec {
        name: "k".into(),
        ty: vector(2),
        placement: Placement::Constant,
    }));
    let (_, k) = builder.op(spec).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("neg", "Neg").reads(k[0].unwrap()).defines("y", vector(2)))
        .unwrap();
    builder.output(y[0].unwrap());
    insta::assert_snapshot!(rewritten(&builder.finish(), "compute k, recompute k, compute neg"));
}

#[test]
fn sizes_that_types_leave_open_are_copied() {
    let mut builder = GraphBuilder::new("open");
    let (_, a) = builder
        .op(OpSpec::new("a", "Make").defines("a", remat_ir::ValueType::Unknown))
        .unwrap();
    let a = a[0].unwrap();
    builder.set_bytes(builder.graph().tensors[a].storage, 4096);
    let (_, y) = builder
        .op(OpSpec::new("use", "Use").reads(a).defines("y", vector(1)))
        .unwrap();
    builder.output(y[0].unwrap());
    let new = rewritten(&builder.finish(), "compute a, free a, recompute a, compute use");
    let bytes: Vec<_> = new.storages.iter().map(|storage| storage.bytes).collect();
    assert_eq!(bytes, [Some(4096), Some(4096), Some(4)]);
}

#[test]
fn in_paper_accounting_graph_outputs_are_not_deallocated_and_stay_the_original_ones() {
    let mut builder = GraphBuilder::new("paper");
    let x = builder.input("x", vector(8)).unwrap();
    let (_, y) = builder
        .op(OpSpec::new("a", "Relu").reads(x).defines("y", vector(8)))
        .unwrap();
    let (_, z) = builder
        .op(OpSpec::new("b", "Neg").reads(y[0].unwrap()).defines("z", vector(8)))
        .unwrap();
    builder.output(y[0].unwrap());
    builder.output(z[0].unwrap());
    let graph = builder.finish();
    let problem = problem(&graph, Accounting::Paper, |_| 0);
    let plan = plan(&problem, "compute a, free y, recompute a, compute b, free y, free z");
    assert!(remat_verify::replay(&problem, &plan).is_ok());
    insta::assert_snapshot!(rewrite(&graph, &problem, &plan, &|_| false).unwrap());
}
