use proptest::prelude::*;
use remat_ir::{Graph, Op, StorageClass, TensorId};
use remat_onnx::proto::{GraphProto, ModelProto, NodeProto};
use remat_onnxruntime_sim::{NodeIndex, Program, default_order};
use remat_testing::onnx::{self, BOOL, FLOAT, INT64, NodeExt, tensor_type, value};

use super::apply::result_bytes;
use super::*;

/// So many elements has every tensor of a subgraph.
const ELEMENTS: &str = "4096";

/// A node of a random subgraph: whether it adds two values, and which of those before it.
type Made = (bool, usize, usize);

fn node(kind: &str, inputs: &[&str], output: &str) -> NodeProto {
    onnx::node(kind, inputs, &[output]).named(output)
}

/// A subgraph that reads `x` from outside, makes `made`, and gives the sum of what nobody reads.
fn body(prefix: &str, made: &[Made]) -> GraphProto {
    let name = |place: usize| {
        if place == 0 {
            "x".to_owned()
        } else {
            format!("{prefix}{place}")
        }
    };
    let mut unread = vec![true; made.len() + 1];
    let mut nodes = Vec::new();
    for (place, &(is_sum, first, second)) in made.iter().enumerate() {
        let [first, second] = [first, second].map(|before| before % (place + 1));
        unread[first] = false;
        let output = name(place + 1);
        nodes.push(if is_sum {
            unread[second] = false;
            node("Add", &[&name(first), &name(second)], &output)
        } else {
            node("Exp", &[&name(first)], &output)
        });
    }
    let mut last = name(made.len());
    for (place, _) in unread
        .iter()
        .enumerate()
        .take(made.len())
        .filter(|(_, unread)| **unread)
    {
        let sum = format!("{prefix}sum{place}");
        nodes.push(node("Add", &[&last, &name(place)], &sum));
        last = sum;
    }
    let result = format!("{prefix}result");
    nodes.push(node("Neg", &[&last], &result));
    let mut graph = onnx::graph(&[], nodes, &[]);
    graph.name = format!("{prefix}body");
    graph.output = vec![value(&result, Some(tensor_type(FLOAT, ELEMENTS)))];
    graph
}

/// An If of two random branches, or a Loop whose subgraph is the first.
fn model(is_loop: bool, made: [&[Made]; 2]) -> ModelProto {
    let run = if is_loop {
        let mut body = body("b", made[0]);
        let input = |name, element| value(name, Some(tensor_type(element, "")));
        body.input = vec![input("i", INT64), input("go", BOOL)];
        body.node.push(node("Identity", &["go"], "on"));
        body.output.insert(0, input("on", BOOL));
        node("Loop", &["count", "yes"], "y").graph("body", body)
    } else {
        let run = node("If", &["yes"], "y").graph("then_branch", body("t", made[0]));
        run.graph("else_branch", body("e", made[1]))
    };
    let vector = tensor_type(FLOAT, ELEMENTS);
    let mut inputs = vec![("x", vector.clone()), ("yes", tensor_type(BOOL, ""))];
    let mut nodes = vec![run.named("run")];
    let mut result = value("y", Some(vector));
    if is_loop {
        inputs.push(("count", tensor_type(INT64, "")));
        // Data decides how often it runs; what becomes of all results is small and known.
        nodes.push(node("Size", &["y"], "size"));
        result = value("size", Some(tensor_type(INT64, "")));
    }
    let mut graph = onnx::graph(&inputs, nodes, &[]);
    graph.output = vec![result];
    onnx::model(graph)
}

/// The most bytes of results alive in a subgraph that runs in the runtime's order, by their readers alone; its outputs where `with_outputs`.
fn plainly(graph: &Graph, with_outputs: bool) -> u64 {
    let program = Program::from_graph(graph, &|_, _| 0);
    let order = default_order(&program);
    let run = |node: &NodeIndex| graph.ops.iter().find(|op| op.name == program.nodes[*node].name);
    let run: Vec<&Op> = order.iter().filter_map(run).collect();
    let storage = |tensor: TensorId| graph.tensors[tensor].storage;
    let is_output = |id| graph.outputs.iter().any(|&output| storage(output) == id);
    let lives = graph.storages.iter_enumerated().filter_map(|(id, entry)| {
        let from = run
            .iter()
            .position(|op| op.results().any(|result| result == entry.root))?;
        let last = run.iter().rposition(|op| op.reads().any(|read| storage(read) == id));
        let counts = entry.class == StorageClass::Intermediate && (with_outputs || !is_output(id));
        let to = if is_output(id) { run.len() } else { last.unwrap_or(from) };
        counts.then_some((from, to, entry.bytes?))
    });
    let lives: Vec<(usize, usize, u64)> = lives.collect();
    let is_alive = |step: usize, &&(from, to, _): &&(usize, usize, u64)| from <= step && step <= to;
    let at = |step: usize| {
        lives
            .iter()
            .filter(|life| is_alive(step, life))
            .map(|life| life.2)
            .sum()
    };
    (0..run.len()).map(at).max().unwrap_or(0)
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec((any::<bool>(), 0..64usize, 0..64usize), 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// The workspace of a node is no less than what its subgraphs take, as they are written, by the lives of their results alone.
    #[test]
    fn a_node_is_promised_no_less_than_its_subgraphs_take(is_loop in any::<bool>(), then in made(), other in made()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.onnx");
        let bytes = remat_onnx::proto::Message::write_to_bytes(&model(is_loop, [&then, &other])).expect("it can be written");
        std::fs::write(&path, bytes).expect("there is room");
        let mut load = LoadOptions::default();
        if is_loop {
            load.sizes.insert("y".to_owned(), 3 * 4 * 4096);
        }
        let before = Model::open(&path, &load).expect("it opens");
        let solve = SolveRequest { budget: BudgetSpec::Min, max_overhead: None, solver: "search".to_owned() };
        let writer = BodyWriter { load: &load, order: OrderHint::Any };
        let task = BodyTask { writer, solve: &solve };
        let planned = task.plan(&before, &SolveControl::new().step_limit(2_000)).expect("it can be planned");
        let after = planned.as_ref().unwrap_or(&before);
        let (old, new) = (&before.problem().ops[OpId::new(0)], &after.problem().ops[OpId::new(0)]);
        prop_assert!(new.workspace <= old.workspace);
        let graph = after.graph().expect("it has one");
        let results = if is_loop { result_bytes(graph, OpId::new(0)) } else { 0 };
        for body in &graph.ops[OpId::new(0)].bodies {
            let taken = plainly(&body.graph, is_loop);
            prop_assert!(new.workspace + results >= taken, "{} takes {taken}, {} are promised:\n{}", body.name, new.workspace, body.graph);
        }
        for plan in after.bodies() {
            prop_assert!(plan.bytes <= new.workspace && plan.bytes_before <= old.workspace);
        }
        // What is planned replays to the same.
        if let Some(planned) = &planned {
            let again = writer.apply(&before, planned.bodies().to_vec(), Claims::Checked).expect("it replays");
            prop_assert_eq!(again.problem().digest(), planned.problem().digest());
        }
    }
}
