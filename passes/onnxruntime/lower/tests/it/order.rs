//! Under the runtime's own orders, as they are simulated, nodes run as the plan has them.

use std::collections::{HashMap, HashSet};

use remat::ir::ValueType;
use remat::onnx::proto::ModelProto;
use remat::onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_lower::{Layout, LoweringOptions, OrderHint, Shapes, lower};
use remat_onnxruntime_sim::{NodeIndex, Program, default_order, priority_order};

use crate::support::{Rewritten, models, paths};

/// First results of the nodes in the order in which they run, of those that stand in `plan`.
fn executed(program: &Program, order: &[NodeIndex], plan: &[String]) -> Vec<String> {
    let wanted: HashSet<&String> = plan.iter().collect();
    let results = order.iter().filter_map(|&node| program.nodes[node].results().next());
    let names = results.map(|value| program.values[value].name.clone());
    names.filter(|name| wanted.contains(name)).collect()
}

/// First results in the order of the plan, of those that something can ask for. Constants do not run.
fn planned(rewritten: &Rewritten) -> Vec<String> {
    let graph = &rewritten.graph;
    let ops = graph
        .ops
        .iter()
        .filter(|op| op.kind.is_run() && op.op_type != "Constant");
    let results = ops
        .filter_map(|op| op.results().next())
        .map(|result| &graph.tensors[result]);
    let readable = results.filter(|tensor| matches!(tensor.ty, ValueType::Tensor { .. } | ValueType::Sequence(_)));
    readable.map(|tensor| tensor.name.clone()).collect()
}

/// Shapes are dynamic in what is written.
fn as_written() -> ImportOptions {
    ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    }
}

fn assert_sorted(proto: &ModelProto, what: &str) {
    let graph = proto.graph.get_or_default();
    let produced: HashSet<&str> = graph
        .node
        .iter()
        .flat_map(|node| node.output.iter().map(String::as_str))
        .collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for node in &graph.node {
        for name in node
            .input
            .iter()
            .filter(|name| !name.is_empty() && produced.contains(name.as_str()))
        {
            assert!(
                seen.contains(name.as_str()),
                "{what}: `{}` reads `{name}` too early",
                node.name
            );
        }
        seen.extend(node.output.iter().map(String::as_str));
    }
}

/// Bytes of a value whose shape is known.
fn known_bytes(ty: &ValueType) -> u64 {
    ty.bytes().ok().flatten().unwrap_or(0)
}

/// Values of the plan, at least so large, whose shape can be known at load.
fn shown(rewritten: &Rewritten, proto: &ModelProto, at_least: u64) -> Vec<String> {
    let written = OnnxModel::from_proto(proto.clone(), &as_written()).expect("it can be read back");
    let graph = written.graph();
    let stated: HashSet<&str> = graph
        .outputs
        .iter()
        .map(|&output| graph.tensors[output].name.as_str())
        .collect();
    let sizes: HashMap<&str, u64> = graph
        .tensors
        .iter()
        .map(|t| (t.name.as_str(), known_bytes(&t.ty)))
        .collect();
    let results = rewritten
        .graph
        .tensors
        .iter()
        .filter(|tensor| tensor.producer.is_some());
    let large = results.filter(|tensor| sizes.get(tensor.name.as_str()).is_some_and(|&bytes| bytes >= at_least));
    large
        .filter(|tensor| !stated.contains(tensor.name.as_str()))
        .map(|tensor| tensor.name.clone())
        .collect()
}

#[test]
fn all_models_run_in_the_order_of_the_plan() {
    let mut recomputes = 0;
    for path in paths(&models()).into_iter().chain(paths(&models().join("features"))) {
        let what = path.display().to_string();
        let Some(rewritten) = Rewritten::open(&path) else {
            continue;
        };
        recomputes += rewritten.recomputes;
        for shapes in [Shapes::StaticInPlace, Shapes::Dynamic, Shapes::Static] {
            let options = LoweringOptions {
                order: OrderHint::Any,
                shapes,
                reserve: 1 << 20,
                waits_for_pages: false,
            };
            let lowered =
                lower(rewritten.onnx(), &rewritten.graph, &options, &Layout::default()).expect("it can be written");
            assert_sorted(&lowered.proto, &what);
            let written = OnnxModel::from_proto(lowered.proto.clone(), &as_written());
            let written = written.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(written.graph().inputs.len(), rewritten.graph.inputs.len(), "{what}");
            let program = Program::from_graph(written.graph(), &|_, _| 0);
            let plan = planned(&rewritten);
            assert_eq!(
                executed(&program, &default_order(&program), &plan),
                plan,
                "{what}, default order"
            );
            assert_eq!(
                executed(&program, &priority_order(&program), &plan),
                plan,
                "{what}, priority order"
            );
        }
    }
    assert!(recomputes > 50, "only {recomputes} recomputes: the test shows little");
}

#[test]
fn no_large_shape_is_known_at_load() {
    let mut hidden = 0;
    for path in paths(&models()).into_iter().chain(paths(&models().join("features"))) {
        let Some(rewritten) = Rewritten::open(&path) else {
            continue;
        };
        let before = shown(
            &rewritten,
            &rewritten.onnx().export_proto(&rewritten.graph).expect("it exports"),
            16 << 10,
        );
        let lowered = lower(
            rewritten.onnx(),
            &rewritten.graph,
            &LoweringOptions::default(),
            &Layout::default(),
        )
        .expect("it can be written");
        if !lowered.report.hides_shapes {
            continue;
        }
        let after = shown(&rewritten, &lowered.proto, 16 << 10);
        assert_eq!(after, Vec::<String>::new(), "{}", path.display());
        hidden += before.len();
    }
    assert!(hidden > 100, "only {hidden} large values: the test shows little");
}
