//! Rewritten graphs back to models.

use remat_ir::{Graph, OpId, OpKind, Tensor, TensorId};
use remat_onnx::proto::{Message, ModelProto, TensorAnnotation};
use remat_onnx::{OnnxError, OnnxModel, RECOMPUTE_OF};

use crate::common::*;

/// Puts a copy of op `of` before op `before`; its results are named with `suffix`, and ops from there on read them.
fn recompute(graph: &mut Graph, of: &str, before: &str, suffix: &str) {
    let place = |graph: &Graph, name: &str| graph.ops.iter().position(|op| op.name == name).unwrap();
    let (source, target) = (place(graph, of), place(graph, before));
    let mut copy = graph.ops[OpId::new(source)].clone();
    copy.kind = OpKind::Recompute { of: OpId::new(source) };
    copy.name = format!("{of}{suffix}");
    let mut renamed: Vec<(TensorId, TensorId)> = Vec::new();
    for output in copy.outputs.iter_mut().flatten() {
        let id = graph.tensors.next_key();
        let original = graph.tensors[*output].clone();
        let storage = graph.storages.next_key();
        graph.storages.push(remat_ir::Storage {
            root: id,
            ..graph.storages[original.storage].clone()
        });
        graph.tensors.push(Tensor {
            name: format!("{}{suffix}", original.name),
            storage,
            ..original
        });
        renamed.push((*output, id));
        *output = id;
    }
    graph.ops.insert(OpId::new(target), copy);
    let new_id = |tensor: TensorId| {
        renamed
            .iter()
            .find(|(old, _)| *old == tensor)
            .map_or(tensor, |&(_, new)| new)
    };
    for op in graph.ops.iter_mut().skip(target + 1) {
        op.inputs
            .iter_mut()
            .flatten()
            .for_each(|tensor| *tensor = new_id(*tensor));
        op.captures.iter_mut().for_each(|tensor| *tensor = new_id(*tensor));
    }
    let ops: Vec<(OpId, Vec<TensorId>)> = graph
        .ops
        .iter_enumerated()
        .map(|(id, op)| (id, op.results().collect()))
        .collect();
    ops.into_iter()
        .for_each(|(id, results)| results.into_iter().for_each(|t| graph.tensors[t].producer = Some(id)));
}

/// x -> Relu -> a; a and its negative feed an `If` whose branches capture `a` and shadow `n`.
fn branching() -> ModelProto {
    let then = graph(&[], vec![node("Add", &["a", "n"], &["r"])], &["r"]);
    let inner = graph(&[], vec![node("Mul", &["a", "a"], &["q"])], &["q"]);
    let shadow = node("If", &["c"], &["n"])
        .graph("then_branch", inner.clone())
        .graph("else_branch", inner);
    let other = graph(&[], vec![shadow, node("Neg", &["n"], &["s"])], &["s"]);
    let nodes = vec![
        node("Relu", &["x"], &["a"]).named("relu"),
        node("Neg", &["a"], &["n"]).named("neg"),
        node("If", &["c"], &["y"])
            .named("if")
            .graph("then_branch", then)
            .graph("else_branch", other),
    ];
    let mut m = model(graph(&[("x", vector()), ("c", tensor_type(BOOL, ""))], nodes, &["y"]));
    let g = m.graph.mut_or_insert_default();
    g.value_info = vec![value("a", Some(vector()))];
    let annotation = TensorAnnotation {
        tensor_name: "a".to_owned(),
        ..TensorAnnotation::default()
    };
    g.quantization_annotation = vec![annotation];
    m
}

fn exported(model: &OnnxModel, graph: &Graph) -> ModelProto {
    model.export_proto(graph).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_unchanged_graph_gives_the_same_model() {
    let mut m = branching();
    m.doc_string = "kept".to_owned();
    m.metadata_props = vec![entry("who", "me")];
    // A field of a newer version of the format, and one inside a node.
    m.special_fields
        .mut_unknown_fields()
        .add_length_delimited(26, b"configuration".to_vec());
    m.graph.mut_or_insert_default().node[0]
        .special_fields
        .mut_unknown_fields()
        .add_length_delimited(10, vec![1, 2, 3]);
    let model = open(&m).unwrap();
    assert_eq!(exported(&model, model.graph()), m);
    assert_eq!(model.export(model.graph()).unwrap(), m.write_to_bytes().unwrap());
}

#[test]
fn a_recomputed_op_is_a_copy_with_its_own_name_types_and_origin() {
    let model = open(&branching()).unwrap();
    let mut graph = model.graph().clone();
    recompute(&mut graph, "relu", "if", ".again");
    assert_eq!(graph.validate(), Ok(()));
    let proto = exported(&model, &graph);
    let main = proto.graph.as_ref().unwrap();
    let names: Vec<&str> = main.node.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["relu", "neg", "relu.again", "if"]);
    let copy = &main.node[2];
    assert_eq!(
        (copy.input.as_slice(), copy.output.as_slice()),
        (&["x".to_owned()][..], &["a.again".to_owned()][..])
    );
    let origin: Vec<_> = copy
        .metadata_props
        .iter()
        .map(|e| (e.key.as_str(), e.value.as_str()))
        .collect();
    assert_eq!(origin, [(RECOMPUTE_OF, "relu")]);
    assert!(
        main.value_info
            .iter()
            .any(|v| v.name == "a.again" && v.type_.as_ref() == Some(&vector()))
    );
    assert!(main.quantization_annotation.iter().any(|a| a.tensor_name == "a.again"));
    // The result imports again.
    assert!(OnnxModel::from_bytes(&proto.write_to_bytes().unwrap(), None, &Default::default()).is_ok());
}

#[test]
fn a_copied_node_may_be_named_like_its_result() {
    let nodes = vec![
        node("Relu", &["x"], &["a"]).named("a"),
        node("Neg", &["a"], &["y"]).named("y"),
    ];
    let model = import(graph(&[("x", vector())], nodes, &["y"]));
    let mut graph = model.graph().clone();
    recompute(&mut graph, "a", "y", ".again");
    let proto = exported(&model, &graph);
    let copy = proto.graph.node.iter().find(|node| node.name == "a.again").unwrap();
    assert_eq!(copy.output, ["a.again"]);
}

#[test]
fn captured_values_are_renamed_except_where_they_are_shadowed() {
    let model = open(&branching()).unwrap();
    let mut graph = model.graph().clone();
    recompute(&mut graph, "relu", "if", ".again");
    recompute(&mut graph, "neg", "if", ".again");
    let proto = exported(&model, &graph);
    let branch = proto.graph.as_ref().unwrap().node.last().unwrap();
    let then = branch.attribute[0].g.as_ref().unwrap();
    assert_eq!(then.node[0].input, ["a.again", "n.again"]);
    let other = branch.attribute[1].g.as_ref().unwrap();
    let inner = other.node[0].attribute[0].g.as_ref().unwrap();
    assert_eq!(inner.node[0].input, ["a.again", "a.again"]);
    assert_eq!(other.node[1].input, ["n"], "`n` is the branch's own");
}

#[test]
fn names_that_the_model_has_anywhere_are_reserved() {
    let model = open(&branching()).unwrap();
    let reserved = model.reserved_names();
    for name in ["x", "a", "relu", "y", "r", "q", "s"] {
        assert!(reserved.contains(name), "{name}");
    }
    let mut graph = model.graph().clone();
    recompute(&mut graph, "relu", "if", ".again");
    let copy = graph.tensors.len() - 1;
    graph.tensors[TensorId::new(copy)].name = "q".to_owned();
    assert!(matches!(model.export(&graph), Err(OnnxError::DuplicateName { name, .. }) if name == "q"));
}

#[test]
fn graphs_that_do_not_stem_from_the_model_are_rejected() {
    let model = open(&branching()).unwrap();
    let rejected = |change: &dyn Fn(&mut Graph)| {
        let mut graph = model.graph().clone();
        change(&mut graph);
        match model.export(&graph) {
            Err(OnnxError::Foreign { op, why }) => format!("{op}: {why}"),
            other => panic!("{other:?}"),
        }
    };
    let first = OpId::new(0);
    let texts = [
        rejected(&|graph| graph.ops[first].source = None),
        rejected(&|graph| graph.ops[first].source = Some(99)),
        rejected(&|graph| graph.ops[first].inputs.clear()),
        rejected(&|graph| graph.ops[OpId::new(2)].captures.clear()),
        rejected(&|graph| drop(graph.ops.pop())),
        rejected(&|graph| graph.ops.push(graph.ops[first].clone())),
        rejected(&|graph| graph.outputs.clear()),
        rejected(&|graph| {
            let mut copy = graph.ops[first].clone();
            copy.kind = OpKind::Recompute { of: first };
            copy.name = "again".to_owned();
            graph.ops.push(copy);
        }),
    ];
    insta::assert_snapshot!(texts.join("\n"), @r#"
    relu: it names no node of the model
    relu: it names no node of the model
    relu: it has other operands or results than its node
    if: it has other operands or results than its node
    if: the rewritten graph has lost it
    relu: its node stands in the graph twice
    g: its outputs are not those of the model
    again: its result has the name of the original's
    "#);
}

#[test]
fn an_unsorted_model_is_written_in_order_and_unnamed_nodes_stay_unnamed() {
    let nodes = vec![node("Neg", &["a"], &["y"]), node("Relu", &["x"], &["a"])];
    let model = import(graph(&[("x", vector())], nodes, &["y"]));
    let proto = exported(&model, model.graph());
    let written = &proto.graph.as_ref().unwrap().node;
    assert_eq!(
        written
            .iter()
            .map(|n| (n.op_type.as_str(), n.name.as_str()))
            .collect::<Vec<_>>(),
        [("Relu", ""), ("Neg", "")]
    );
}

/// A copied Split of which only one half is read: the other one, and the halves of the original that lost their reader, would
/// stay until the run ends.
#[test]
fn results_that_lose_all_readers_get_one() {
    let nodes = vec![
        node("Split", &["x"], &["a", "b"]).named("split").int("axis", 0),
        node("Neg", &["a"], &["n"]).named("neg"),
        node("Add", &["n", "b"], &["s"]).named("add"),
        node("Mul", &["s", "b"], &["y"]).named("mul"),
    ];
    let model = import(graph(&[("x", tensor_type(FLOAT, "4"))], nodes, &["y"]));
    let mut rewritten = model.graph().clone();
    recompute(&mut rewritten, "split", "mul", "__again");
    let exported = model.export_proto(&rewritten).unwrap();
    let names: Vec<&str> = exported.graph.node.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["split", "neg", "add", "split__again", "a__again__sink", "mul"]);
    let sink = &exported.graph.node[4];
    assert_eq!(
        (sink.op_type.as_str(), &sink.input[..]),
        ("Shape", &["a__again".to_owned()][..])
    );
}

#[test]
fn results_that_nobody_ever_read_are_left_as_they_are() {
    let nodes = vec![
        node("Split", &["x"], &["a", "b"]).named("split").int("axis", 0),
        node("Neg", &["a"], &["y"]).named("neg"),
    ];
    let model = import(graph(&[("x", tensor_type(FLOAT, "4"))], nodes, &["y"]));
    assert_eq!(model.export_proto(model.graph()).unwrap().graph.node.len(), 2);
}
