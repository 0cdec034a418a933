use remat_onnxruntime_run::ProfiledOutput;

use super::*;

fn node(op_type: &str, output: &str) -> NodeProto {
    NodeProto {
        op_type: op_type.to_owned(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

fn ran(op_type: &str, index: usize, duration_ns: u64) -> ProfiledNode {
    let output = ProfiledOutput {
        element: "float".to_owned(),
        shape: vec![2],
    };
    ProfiledNode {
        name: format!("{op_type}_{index}"),
        index,
        op_type: op_type.to_owned(),
        provider: "CPUExecutionProvider".to_owned(),
        duration_ns,
        outputs: vec![output],
        output_bytes: 8,
    }
}

/// A constant, two calls of nested functions, and a plain node.
fn model() -> ModelProto {
    let mut model = ModelProto::default();
    let graph = model.graph.mut_or_insert_default();
    graph.node = vec![
        node("Constant", "c"),
        node("Outer", "a"),
        node("Inner", "b"),
        node("Exp", "y"),
    ];
    let function = |name: &str, body: &[&str]| FunctionProto {
        name: name.to_owned(),
        node: body.iter().map(|op_type| node(op_type, "v")).collect(),
        ..FunctionProto::default()
    };
    model.functions = vec![
        function("Outer", &["Inner", "Constant", "Neg"]),
        function("Inner", &["Mul", "Add"]),
    ];
    model
}

fn times(model: &ModelProto, profiled: &[ProfiledNode]) -> Vec<Vec<u64>> {
    let file = &model.graph.get_or_default().node;
    let assigned = Owners::of(model).assign(file, profiled);
    let times = |nodes: &Vec<&ProfiledNode>| nodes.iter().map(|node| node.duration_ns).collect();
    assigned.iter().map(times).collect()
}

#[test]
fn bodies_of_nested_functions_belong_to_the_call_in_the_file() {
    // Numbers 0..3 are the file's; 3 and 4 Outer's body, 5 and 6 that of the call of Inner in the file, 7 and 8 that of the inner call.
    let profiled = [
        ran("Mul", 7, 1),
        ran("Add", 8, 2),
        ran("Neg", 4, 4),
        ran("Mul", 5, 8),
        ran("Add", 6, 16),
        ran("Exp", 2, 32),
    ];
    assert_eq!(
        times(&model(), &profiled),
        [vec![], vec![1, 2, 4], vec![8, 16], vec![32]]
    );
}

#[test]
fn nodes_of_unknown_origin_go_to_the_only_op_that_did_not_run_or_nowhere() {
    let mut model = model();
    model.functions.clear();
    let graph = model.graph.mut_or_insert_default();
    graph.node[1].op_type = "Sqrt".to_owned();
    let profiled = [
        ran("Sqrt", 0, 1),
        ran("Range", 3, 2),
        ran("Loop", 4, 4),
        ran("Exp", 2, 8),
    ];
    assert_eq!(times(&model, &profiled), [vec![], vec![1], vec![2, 4], vec![8]]);
    assert_eq!(times(&model, &profiled[1..]), [vec![], vec![], vec![], vec![8]]);
    // A number of the file with another operator is somebody else's.
    let nobody: [Vec<u64>; 4] = Default::default();
    assert_eq!(times(&model, &[ran("Tanh", 0, 1)]), nobody);
}

#[test]
fn functions_that_call_themselves_end() {
    let mut model = model();
    model.functions[1].node = vec![node("Inner", "v"), node("Inner", "v")];
    assert!(Owners::of(&model).nodes.len() < 4 * MOST_NODES);
}
