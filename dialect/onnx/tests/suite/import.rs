//! Models to graphs: order, names, definitions, storage, effects, constants.

use crate::common::*;
use remat_ir::{Attribute, Effects, ElementType, OpId, StorageClass, TensorId, ValueType};
use remat_onnx::proto::SparseTensorProto;
use remat_onnx::{OnnxError, captures};

#[test]
fn nodes_out_of_order_are_sorted_as_little_as_needed() {
    let nodes = vec![
        node("Add", &["b", "c"], &["d"]).named("last"),
        node("Relu", &["x"], &["b"]).named("first"),
        node("Neg", &["b"], &["c"]).named("second"),
    ];
    let model = import(graph(&[("x", vector())], nodes, &["d"]));
    let names: Vec<&str> = model.graph().ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "last"]);
    assert_eq!(model.graph().validate(), Ok(()));
}

#[test]
fn unnamed_nodes_get_unique_names_and_named_ones_keep_theirs() {
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Relu", &["a"], &["b"]).named("Relu_0"),
        node("Relu", &["b"], &["c"]).named("Relu_0"),
    ];
    let model = import(graph(&[("x", vector())], nodes, &["c"]));
    let names: Vec<&str> = model.graph().ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["Relu_0_1", "Relu_0", "Relu_0_2"]);
}

#[test]
fn a_cycle_names_its_nodes() {
    let nodes = vec![
        node("Add", &["x", "c"], &["a"]).named("one"),
        node("Relu", &["a"], &["b"]).named("two"),
        node("Relu", &["b"], &["c"]).named("three"),
        node("Neg", &["c"], &["d"]).named("behind"),
    ];
    let text = error(graph(&[("x", vector())], nodes, &["d"]));
    insta::assert_snapshot!(text, @"the graph has a cycle through `two`, `three`, `one`");
}

#[test]
fn a_cycle_through_a_captured_value_is_found() {
    let body = || graph(&[], vec![node("Relu", &["y"], &["z"])], &["z"]);
    let branch = node("If", &["c"], &["y"])
        .named("if")
        .graph("then_branch", body())
        .graph("else_branch", body());
    let text = error(graph(&[("c", tensor_type(BOOL, ""))], vec![branch], &["y"]));
    insta::assert_snapshot!(text, @"the graph has a cycle through `if`");
}

#[test]
fn undefined_and_doubly_defined_values_are_named() {
    let undefined = graph(
        &[("x", vector())],
        vec![node("Add", &["x", "ghost"], &["y"]).named("add")],
        &["y"],
    );
    insta::assert_snapshot!(error(undefined), @"node `add` reads `ghost`, which is neither a graph input, an initializer nor the output of a node");
    let inner = graph(&[], vec![node("Neg", &["ghost"], &["z"])], &["z"]);
    let branch = node("If", &["c"], &["y"])
        .named("if")
        .graph("then_branch", inner.clone())
        .graph("else_branch", inner);
    insta::assert_snapshot!(error(graph(&[("c", tensor_type(BOOL, ""))], vec![branch], &["y"])), @"node `if` reads `ghost`, which is neither a graph input, an initializer nor the output of a node");
    let twice = vec![
        node("Relu", &["x"], &["y"]).named("a"),
        node("Neg", &["x"], &["y"]).named("b"),
    ];
    insta::assert_snapshot!(error(graph(&[("x", vector())], twice, &["y"])), @"`y` is defined twice, by node `a` and by node `b`");
    let over_input = graph(
        &[("x", vector())],
        vec![node("Relu", &["x"], &["x"]).named("a")],
        &["x"],
    );
    insta::assert_snapshot!(error(over_input), @"`x` is defined twice, by a graph input and by node `a`");
    let missing = graph(&[("x", vector())], vec![], &["y"]);
    insta::assert_snapshot!(error(missing), @"graph output `y` is neither a graph input, an initializer nor the output of a node");
    let mut doubled = graph(&[("x", vector())], vec![], &["x"]);
    doubled.initializer = vec![tensor("w", FLOAT, &[0]), tensor("w", FLOAT, &[0])];
    insta::assert_snapshot!(error(doubled), @"`w` is defined twice, by an initializer and by an initializer");
}

#[test]
fn a_subgraph_that_defines_a_name_twice_is_rejected() {
    let body = || {
        graph(
            &[],
            vec![node("Neg", &["x"], &["r"]), node("Relu", &["x"], &["r"])],
            &["r"],
        )
    };
    let branch = node("If", &["c"], &["y"])
        .named("if")
        .graph("then_branch", body())
        .graph("else_branch", body());
    let text = error(graph(
        &[("c", tensor_type(BOOL, "")), ("x", vector())],
        vec![branch],
        &["y"],
    ));
    insta::assert_snapshot!(text, @"`r` is defined twice, by a subgraph of node `if` and by a subgraph of node `if`");
}

#[test]
fn what_an_optimizer_updates_is_the_memory_of_the_parameter_unless_it_is_a_graph_output() {
    let update = |new: &str| node("SGDOptimizer", &["rate", "w", "g"], &[new]).domain("com.microsoft");
    let mut g = graph(
        &[("rate", vector()), ("w", vector()), ("x", vector())],
        vec![node("Relu", &["x"], &["g"]), update("inner"), update("returned")],
        &["returned"],
    );
    g.value_info = vec![value("inner", Some(vector()))];
    let model = import(g);
    assert_eq!(model.graph().validate(), Ok(()));
    let homes = ["inner", "returned"].map(|name| home(model.graph(), name));
    assert_eq!(homes, ["w (Input)", "returned (Intermediate)"]);
}

#[test]
fn views_live_where_the_runtime_puts_them() {
    let mut g = graph(
        &[("x", vector())],
        vec![
            node("Relu", &["x"], &["a"]),
            node("Reshape", &["a", "shape"], &["inner"]),
            node("Flatten", &["inner"], &["chain"]),
            node("Unsqueeze", &["x", "axis"], &["of_input"]),
            node("Identity", &["w"], &["of_weight"]),
            node("Reshape", &["a", "shape"], &["returned"]),
            node("Squeeze", &["returned"], &["of_returned"]),
            node("Identity", &["x"], &["returned_input"]),
            node("Transpose", &["a"], &["moved"]),
            node("Reshape", &["a", "shape"], &["foreign"]).domain("my.domain"),
        ],
        &["returned", "returned_input"],
    );
    g.initializer = vec![
        integers("shape", &[2, 4]),
        integers("axis", &[0]),
        tensor("w", FLOAT, &[8]),
    ];
    g.value_info = vec![value("foreign", Some(vector()))];
    let model = import(g);
    let graph = model.graph();
    assert_eq!(graph.validate(), Ok(()));
    let homes = [
        "inner",
        "chain",
        "of_input",
        "of_weight",
        "returned",
        "of_returned",
        "returned_input",
        "moved",
        "foreign",
    ]
    .map(|name| format!("{name}: {}", home(graph, name)));
    insta::assert_snapshot!(homes.join("\n"), @r#"
    inner: a (Intermediate)
    chain: a (Intermediate)
    of_input: x (Input)
    of_weight: w (Constant)
    returned: returned (Intermediate)
    of_returned: returned (Intermediate)
    returned_input: returned_input (Intermediate)
    moved: moved (Intermediate)
    foreign: foreign (Intermediate)
    "#);
}

#[test]
fn constants_belong_to_the_session() {
    let mut g = graph(
        &[("x", vector()), ("w", vector())],
        vec![
            node("Constant", &[], &["c"]).tensor("value", tensor("", FLOAT, &[8])),
            node("Add", &["x", "c"], &["a"]),
            node("Add", &["a", "w"], &["b"]),
            node("Add", &["b", "s"], &["y"]),
        ],
        &["y"],
    );
    g.initializer = vec![tensor("w", FLOAT, &[8])];
    let mut sparse = SparseTensorProto::new();
    sparse.dims = vec![8];
    sparse.values = Some(tensor("s", FLOAT, &[1])).into();
    sparse.indices = Some(integers("", &[3])).into();
    g.sparse_initializer = vec![sparse];
    let model = import(g);
    let graph = model.graph();
    for name in ["c", "w", "s"] {
        let tensor = &graph.tensors[tensor_named(graph, name)];
        assert_eq!(graph.storages[tensor.storage].class, StorageClass::Constant, "{name}");
        assert_eq!(tensor.ty, ValueType::tensor(ElementType::Float32, &[8]), "{name}");
    }
    // `w` is an input with a default: the session holds it.
    assert_eq!(graph.inputs, [tensor_named(graph, "x")]);
}

#[test]
fn left_out_operands_and_results_keep_their_places() {
    let nodes = vec![
        node("Clip", &["x", "", "max"], &["a"]),
        node("Dropout", &["a"], &["", "mask"]),
    ];
    let model = import(graph(
        &[("x", vector()), ("max", tensor_type(FLOAT, ""))],
        nodes,
        &["mask"],
    ));
    let graph = model.graph();
    assert_eq!(
        graph.ops[OpId::new(0)]
            .inputs
            .iter()
            .map(Option::is_some)
            .collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(
        graph.ops[OpId::new(1)]
            .outputs
            .iter()
            .map(Option::is_some)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn subgraphs_capture_outer_values_but_not_names_they_define() {
    // `a` is captured by the inner-most body, `b` is shadowed, `x` is read two levels down.
    let innermost = graph(
        &[],
        vec![node("Add", &["a", "x"], &["b"]), node("Neg", &["b"], &["r"])],
        &["r"],
    );
    let inner = node("If", &["c"], &["q"])
        .graph("then_branch", innermost.clone())
        .graph("else_branch", innermost);
    let body = || graph(&[], vec![inner.clone()], &["q"]);
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Neg", &["x"], &["b"]),
        node("If", &["c"], &["y"])
            .named("if")
            .graph("then_branch", body())
            .graph("else_branch", body()),
        node("Add", &["y", "b"], &["z"]),
    ];
    let model = import(graph(&[("x", vector()), ("c", tensor_type(BOOL, ""))], nodes, &["z"]));
    let graph = model.graph();
    let branch = op(graph, "if");
    let captures: Vec<&str> = branch
        .captures
        .iter()
        .map(|&t| graph.tensors[t].name.as_str())
        .collect();
    assert_eq!(captures, ["c", "a", "x"]);
    assert_eq!(branch.effects, Effects::ControlFlow);
    assert_eq!(branch.attributes["then_branch"], Attribute::Opaque("graph".to_owned()));
    assert_eq!(bytes(graph, "y"), Some(32));
}

#[test]
fn subgraphs_are_graphs_of_their_own_with_the_types_inside() {
    let body = graph(
        &[
            ("turn", tensor_type(INT64, "")),
            ("go", tensor_type(BOOL, "")),
            ("state", vector()),
        ],
        vec![
            node("Identity", &["yes"], &["go_on"]),
            node("Add", &["state", "a"], &["next"]),
            node("Neg", &["next"], &["row"]),
        ],
        &["go_on", "next", "row"],
    );
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Loop", &["count", "yes", "a"], &["y", "rows"])
            .named("loop")
            .graph("body", body),
    ];
    let mut main = graph(&[("x", vector())], nodes, &["y", "rows"]);
    let mut yes = tensor("yes", BOOL, &[]);
    yes.raw_data = vec![1];
    main.initializer = vec![integers("count", &[3]), yes];
    main.initializer[0].dims.clear();
    let model = import(main);
    let [body] = op(model.graph(), "loop").bodies.as_slice() else {
        panic!("one body is known")
    };
    assert_eq!((body.name.as_str(), body.formals, body.trips), ("body", 3, Some(3)));
    let names = |ids: &[TensorId]| {
        ids.iter()
            .map(|&t| body.graph.tensors[t].name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&body.graph.inputs), ["turn", "go", "state", "a"]);
    assert_eq!(names(&body.graph.outputs), ["go_on", "next", "row"]);
    assert_eq!(bytes(&body.graph, "row"), Some(32));
    let yes = tensor_named(&body.graph, "yes");
    assert_eq!(
        body.graph.storages[body.graph.tensors[yes].storage].class,
        StorageClass::Constant
    );
    assert_eq!(bytes(model.graph(), "rows"), Some(96));
    assert_eq!(body.graph.validate(), Ok(()));
}

#[test]
fn a_branch_that_is_never_taken_and_one_that_makes_no_sense_are_left_out() {
    let branch = |input: &str| graph(&[], vec![node("Neg", &[input], &["r"])], &["r"]);
    let circle = || {
        graph(
            &[],
            vec![node("Neg", &["q"], &["r"]), node("Neg", &["r"], &["q"])],
            &["r"],
        )
    };
    let bodies = |condition: i64, then| {
        let choice = node("If", &["c"], &["y"])
            .named("if")
            .graph("then_branch", then)
            .graph("else_branch", branch("x"));
        let mut main = graph(&[("x", vector()), ("z", tensor_type(BOOL, ""))], vec![choice], &["y"]);
        let mut known = tensor("c", BOOL, &[]);
        known.raw_data = vec![u8::try_from(condition).unwrap()];
        main.initializer = vec![known];
        main.output = vec![value("y", Some(vector()))];
        let model = import(main);
        let names = op(model.graph(), "if").bodies.iter().map(|body| body.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(bodies(0, branch("x")), ["else_branch"]);
    assert_eq!(bodies(1, branch("x")), ["then_branch"]);
    assert!(bodies(1, circle()).is_empty());
}

#[test]
fn a_call_has_the_effects_of_its_body_and_its_shapes() {
    let pure = function("my", "Twice", &["v"], &["w"], vec![node("Add", &["v", "v"], &["w"])]);
    let outer = function(
        "my",
        "Noisy",
        &["v"],
        &["w"],
        vec![
            node("Twice", &["v"], &["t"]).domain("my"),
            node("RandomUniformLike", &["t"], &["w"]),
        ],
    );
    let nodes = vec![
        node("Twice", &["x"], &["a"]).domain("my").named("twice"),
        node("Noisy", &["a"], &["b"]).domain("my").named("noisy"),
        node("Twice", &["b"], &["y"]).domain("other").named("unknown"),
    ];
    let mut m = model(graph(&[("x", vector())], nodes, &["y"]));
    m.opset_import.push(opset("my", 1));
    m.functions = vec![outer, pure];
    m.graph.mut_or_insert_default().value_info = vec![value("y", Some(vector()))];
    let model = open(&m).unwrap();
    let graph = model.graph();
    assert_eq!(op(graph, "twice").effects, Effects::Pure);
    assert_eq!(op(graph, "noisy").effects, Effects::Random);
    assert_eq!(op(graph, "unknown").effects, Effects::Stateful);
    assert_eq!(bytes(graph, "b"), Some(32));
}

#[test]
fn a_function_body_may_refer_to_attributes_of_the_call() {
    let mut gather = node("Flatten", &["v"], &["w"]).int("axis", 0);
    gather.attribute[0].ref_attr_name = "at".to_owned();
    let mut f = function("my", "F", &["v"], &["w"], vec![gather]);
    f.attribute = vec!["at".to_owned()];
    let call = node("F", &["x"], &["y"]).domain("my").int("at", 2);
    let mut m = model(graph(&[("x", tensor_type(FLOAT, "2 3 4"))], vec![call], &["y"]));
    m.functions = vec![f];
    let model = open(&m).unwrap();
    let y = tensor_named(model.graph(), "y");
    assert_eq!(
        model.graph().tensors[y].ty,
        ValueType::tensor(ElementType::Float32, &[6, 4])
    );
}

#[test]
fn a_call_is_replaced_by_the_nodes_of_its_function() {
    let mut flatten = node("Flatten", &["v"], &["t"]).int("axis", 0).named("flat");
    flatten.attribute[0].ref_attr_name = "at".to_owned();
    // `w` is made by a call, `v` handed on as it came.
    let body = vec![flatten, node("Inner", &["t"], &["w"]).domain("my")];
    let mut f = function("my", "F", &["v", "left_out"], &["w", "v"], body);
    f.attribute = vec!["at".to_owned()];
    let branch = || {
        graph(
            &[],
            vec![node("Add", &["u", "t"], &["r"]), node("Neg", &["r"], &["t2"])],
            &["t2"],
        )
    };
    let choice = node("If", &["c"], &["s"])
        .graph("then_branch", branch())
        .graph("else_branch", branch());
    let constant = node("ReduceMax", &["u"], &["m"]).int("keepdims", 0);
    let inner_body = vec![
        constant,
        node("Neg", &["u"], &["t"]),
        node("Cast", &["m"], &["c"]).int("to", 9),
        choice,
    ];
    let inner = function("my", "Inner", &["u"], &["s"], inner_body);
    let calls = vec![
        node("F", &["x"], &["y", "same"])
            .domain("my")
            .named("first")
            .int("at", 2),
        node("F", &["y"], &["z"]).domain("my").named("second").int("at", 1),
    ];
    let mut m = model(graph(&[("x", tensor_type(FLOAT, "2 3 4"))], calls, &["z", "same"]));
    m.opset_import.push(opset("my", 1));
    m.functions = vec![f, inner];
    let inlined = open(&m).unwrap().inlined();
    let mut printed = String::new();
    for node in &inlined.graph.node {
        let reads: Vec<String> = [
            node.input.clone(),
            captures(node).into_iter().map(str::to_owned).collect(),
        ]
        .concat();
        printed.push_str(&format!(
            "{} = {}({})\n",
            node.output.join(", "),
            node.op_type,
            reads.join(", ")
        ));
    }
    insta::assert_snapshot!(printed);
    assert!(inlined.functions.is_empty());
    let model = open(&inlined).unwrap();
    let y = tensor_named(model.graph(), "y");
    assert_eq!(
        model.graph().tensors[y].ty,
        ValueType::tensor(ElementType::Float32, &[6, 4])
    );
}

#[test]
fn a_function_that_calls_itself_is_rejected() {
    let call = |callee: &str| vec![node(callee, &["v"], &["w"]).domain("my")];
    let mut m = model(graph(
        &[("x", vector())],
        vec![node("F", &["x"], &["y"]).domain("my")],
        &["y"],
    ));
    m.functions = vec![
        function("my", "F", &["v"], &["w"], call("G")),
        function("my", "G", &["v"], &["w"], call("F")),
    ];
    assert!(matches!(open(&m), Err(OnnxError::Unsupported { name, .. }) if name == "F"));
}

#[test]
fn element_types_of_every_width_are_sized() {
    let sized = |code: i32, expected: u64| {
        let model = import(graph(
            &[("x", tensor_type(code, "3 3"))],
            vec![node("Transpose", &["x"], &["y"])],
            &["y"],
        ));
        assert_eq!(bytes(model.graph(), "y"), Some(expected), "code {code}");
    };
    for (code, expected) in [
        (1, 36),
        (2, 9),
        (11, 72),
        (15, 144),
        (16, 18),
        (20, 9),
        (22, 5),
        (23, 5),
        (24, 9),
        (26, 3),
    ] {
        sized(code, expected);
    }
}

#[test]
fn attributes_reach_the_graph_and_opaque_ones_are_named() {
    let n = node("Softmax", &["x"], &["y"])
        .int("axis", -1)
        .ints("more", &[1, 2])
        .tensor("t", tensor("", FLOAT, &[0]));
    let model = import(graph(&[("x", vector())], vec![n.named("s")], &["y"]));
    let attributes = &op(model.graph(), "s").attributes;
    assert_eq!(attributes["axis"], Attribute::Int(-1));
    assert_eq!(attributes["more"], Attribute::Ints(vec![1, 2]));
    assert_eq!(attributes["t"], Attribute::Opaque("tensor".to_owned()));
}

#[test]
fn sums_over_all_axes_from_one_on_are_said_to_be_such() {
    for (version, flattens) in [(12, true), (13, false)] {
        let n = node("Softmax", &["x"], &["y"]).int("axis", 0);
        let mut proto = model(graph(&[("x", vector())], vec![n.named("s")], &["y"]));
        for import in &mut proto.opset_import {
            import.version = version;
        }
        let model = open(&proto).unwrap();
        let attributes = &op(model.graph(), "s").attributes;
        assert_eq!(attributes.contains_key("flattens"), flattens, "version {version}");
        let written = model.export_proto(model.graph()).unwrap();
        assert_eq!(written.graph.node[0].attribute, proto.graph.node[0].attribute);
    }
}
