//! What nodes take for their subgraphs, by hand: every large tensor is one unit.

use remat_ir::{
    Attribute, Body, Effects, ElementType, Graph, GraphBuilder, OpId, OpSpec, Placement, ResultSpec, TensorId,
    ValueType,
};
use remat_onnxruntime_sim::{
    ArenaSettings, Growth, Program, Settings, allocate, arena, body_bytes, default_order, heap,
};

/// Bytes of a large tensor.
const UNIT: u64 = 1 << 20;

/// Tables of the runtime, which no test counts.
const TABLES: u64 = 20_000;

fn large() -> ValueType {
    ValueType::tensor(ElementType::Float32, &[UNIT / 4])
}

fn scalar() -> ValueType {
    ValueType::tensor(ElementType::Int64, &[])
}

/// A subgraph under construction, whose values are large.
struct Net {
    builder: GraphBuilder,
    formals: usize,
}

impl Net {
    /// With these inputs, of which the first `formals` come from the node.
    fn new(inputs: &[(&str, ValueType)], formals: usize) -> (Self, Vec<TensorId>) {
        let mut builder = GraphBuilder::new("body");
        let ids = inputs
            .iter()
            .map(|(name, ty)| builder.input(*name, ty.clone()).unwrap());
        let ids = ids.collect();
        (Self { builder, formals }, ids)
    }

    fn op(&mut self, kind: &str, reads: &[TensorId], makes: &str) -> TensorId {
        let spec = reads
            .iter()
            .fold(OpSpec::new(makes, kind), |spec, &tensor| spec.reads(tensor));
        let (_, results) = self.builder.op(spec.defines(makes, large())).unwrap();
        results[0].unwrap()
    }

    fn body(mut self, name: &str, outputs: &[TensorId], trips: Option<u64>) -> Body {
        outputs.iter().for_each(|&output| self.builder.output(output));
        Body {
            name: name.to_owned(),
            graph: self.builder.finish(),
            formals: self.formals,
            trips,
        }
    }
}

/// A branch that makes one tensor after the other from a captured one, none over its operand.
fn branch(name: &str, ops: usize) -> Body {
    let (mut net, inputs) = Net::new(&[("captured", large())], 0);
    let mut last = inputs[0];
    for index in 0..ops {
        last = net.op("Exp", &[last], &format!("{name}.{index}"));
    }
    net.body(name, &[last], None)
}

/// Carries one tensor and collects another; in between it makes one more.
fn iteration(trips: Option<u64>) -> Body {
    let (mut net, inputs) = Net::new(&[("turn", scalar()), ("go", scalar()), ("state", large())], 3);
    let between = net.op("Exp", &[inputs[2]], "between");
    let next = net.op("Neg", &[between], "next");
    let row = net.op("Abs", &[between], "row");
    net.body("body", &[inputs[1], next, row], trips)
}

/// A graph of one node that runs subgraphs, with these results, and what it takes on top of operands and results.
fn graph_of(kind: &str, bodies: Vec<Body>, results: &[ValueType], attributes: &[(&str, Attribute)]) -> Graph {
    let mut builder = GraphBuilder::new("main");
    let input = builder.input("x", large()).unwrap();
    let mut spec = OpSpec::new("node", kind).reads(input).effects(Effects::ControlFlow);
    spec.attributes = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    spec.bodies = bodies;
    for (index, ty) in results.iter().enumerate() {
        spec.results.push(Some(ResultSpec {
            name: format!("result.{index}"),
            ty: ty.clone(),
            placement: Placement::New,
        }));
    }
    builder.op(spec).unwrap();
    builder.finish()
}

/// In units; that no more than tables come on top is part of it.
fn units(graph: &Graph) -> u64 {
    let bytes = body_bytes(graph, OpId::new(0), &|_, _| 0).unwrap();
    assert!(bytes % UNIT < TABLES, "{bytes}");
    bytes / UNIT
}

#[test]
fn the_branch_that_takes_more_counts_without_its_output() {
    for (then, other, expected) in [(1, 1, 0), (2, 1, 1), (1, 2, 1), (3, 1, 2), (3, 9, 2)] {
        let branches = vec![branch("then_branch", then), branch("else_branch", other)];
        let graph = graph_of("If", branches, &[large()], &[]);
        assert_eq!(units(&graph), expected, "{then} and {other} ops");
    }
}

#[test]
fn what_a_branch_makes_before_a_result_of_open_shape_is_gone_when_that_comes() {
    let open = ValueType::Tensor {
        element: ElementType::Float32,
        shape: None,
    };
    let mut last = branch("then_branch", 3);
    let output = last.graph.outputs[0];
    last.graph.tensors[output].ty = open;
    let graph = graph_of("If", vec![last], &[large()], &[]);
    assert_eq!(units(&graph), 1);
}

#[test]
fn a_loop_holds_what_it_carries_twice_and_all_that_it_collects() {
    let collected = |trips: u64| ValueType::tensor(ElementType::Float32, &[trips, UNIT / 4]);
    // At the end: both iterations' states where there are two, and all rows, beside the results.
    for (trips, expected) in [(0, 0), (1, 1 + 1), (2, 2 + 2), (5, 2 + 5), (300, 2 + 300)] {
        let graph = graph_of("Loop", vec![iteration(Some(trips))], &[large(), collected(trips)], &[]);
        assert_eq!(units(&graph), expected, "{trips} iterations");
        let graph = graph_of("Loop", vec![iteration(None)], &[large(), collected(trips)], &[]);
        assert_eq!(units(&graph), expected, "{trips} iterations, as its result says");
    }
}

#[test]
fn a_scan_writes_to_its_results_and_carries_in_two_buffers() {
    let slices = |trips: u64| ValueType::tensor(ElementType::Float32, &[trips, UNIT / 4]);
    let step = |trips| {
        let (mut net, inputs) = Net::new(&[("state", large()), ("row", large())], 2);
        let between = net.op("Add", &inputs, "between");
        let next = net.op("Exp", &[between], "next");
        let row = net.op("Neg", &[between], "out");
        net.body("body", &[next, row], Some(trips))
    };
    let axis = |axis| Attribute::Ints(vec![axis]);
    let one = ("num_scan_inputs", Attribute::Int(1));
    for (trips, expected) in [(1, 1), (2, 2), (3, 3), (100, 3)] {
        let graph = graph_of(
            "Scan",
            vec![step(trips)],
            &[large(), slices(trips)],
            std::slice::from_ref(&one),
        );
        assert_eq!(units(&graph), expected, "{trips} slices");
        let turned = [one.clone(), ("scan_output_axes", axis(1))];
        let graph = graph_of("Scan", vec![step(trips)], &[large(), slices(trips)], &turned);
        // The copy is there with the result only when the slices are through.
        assert_eq!(
            units(&graph),
            trips + trips.saturating_sub(1).min(2),
            "{trips} slices, turned"
        );
    }
}

#[test]
fn a_loop_in_a_branch_counts_with_the_branch() {
    let (mut net, inputs) = Net::new(&[("captured", large())], 0);
    let held = net.op("Exp", &[inputs[0]], "held");
    let mut spec = OpSpec::new("inner", "Loop").reads(held).reads(held).reads(held);
    spec.effects = Effects::ControlFlow;
    spec.bodies = vec![iteration(Some(4))];
    let rows = ValueType::tensor(ElementType::Float32, &[4, UNIT / 4]);
    let spec = spec.defines("last", large()).defines("rows", rows);
    let (_, results) = net.builder.op(spec).unwrap();
    let output = net.op("Add", &[held, results[0].unwrap()], "output");
    let graph = graph_of("If", vec![net.body("then_branch", &[output], None)], &[large()], &[]);
    // `held`, the loop's own six, its result and its four rows.
    assert_eq!(units(&graph), 1 + 6 + 1 + 4);
}

#[test]
fn loops_in_loops_end_and_are_named_where_they_unfold_to_too_much() {
    let mut inner = iteration(Some(8));
    for depth in 0..40 {
        let (mut net, inputs) = Net::new(&[("turn", scalar()), ("go", scalar()), ("state", large())], 3);
        let mut spec = OpSpec::new(format!("loop{depth}"), "Loop").effects(Effects::ControlFlow);
        spec.inputs = vec![None, None, Some(inputs[2])];
        spec.bodies = vec![inner];
        let (_, results) = net.builder.op(spec.defines("next", large())).unwrap();
        inner = net.body("body", &[inputs[1], results[0].unwrap()], Some(8));
    }
    let graph = graph_of("Loop", vec![inner], &[large()], &[]);
    let program = Program::from_graph(&graph, &|_, _| 0);
    let order = default_order(&program);
    let trace = heap(&program, &order, &allocate(&program, &order, &Settings::default()));
    assert_eq!(trace.open_nodes, order);
}

#[test]
fn the_heap_has_what_a_node_takes_and_names_those_that_are_not_known() {
    let peak = |bodies| {
        let graph = graph_of("If", bodies, &[large()], &[]);
        let program = Program::from_graph(&graph, &|_, _| 0);
        let order = default_order(&program);
        let trace = heap(&program, &order, &allocate(&program, &order, &Settings::default()));
        (trace.peak / UNIT, trace.open_nodes.len())
    };
    assert_eq!(peak(vec![branch("then_branch", 3)]), (3, 0));
    assert_eq!(peak(Vec::new()), (1, 1));
    let mut open = branch("then_branch", 3);
    let first = open.graph.ops[OpId::new(0)].results().next().unwrap();
    open.graph.tensors[first].ty = ValueType::Unknown;
    open.graph.storages[open.graph.tensors[first].storage].bytes = None;
    assert_eq!(peak(vec![open]), (2, 1));
}

#[test]
fn later_runs_take_a_block_for_a_branch_where_the_memory_pattern_is_on() {
    let graph = graph_of("If", vec![branch("then_branch", 4)], &[large()], &[]);
    let program = Program::from_graph(&graph, &|_, _| 0);
    let order = default_order(&program);
    let allocation = allocate(&program, &order, &Settings::default());
    let trace = |pattern| {
        let settings = ArenaSettings {
            pattern,
            growth: Growth::SameAsRequested,
            initial_bytes: 1,
            ..ArenaSettings::default()
        };
        arena(&program, &order, &allocation, &settings)
    };
    // A region each for the result and for the two results of the branch that are there at once. As one block the latter fit into neither.
    let (off, on) = (trace(false), trace(true));
    let regions = |bytes: u64| bytes / UNIT;
    assert_eq!((regions(off.first_run), regions(off.steady)), (3, 3));
    assert_eq!((regions(on.first_run), regions(on.steady)), (3, 5));
}
