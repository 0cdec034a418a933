//! Models to write.

use std::path::PathBuf;

use remat_ir::Graph;
use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnx_mlir::{ExportError, Form, Options, write};

/// One of the models in `test/models/features`.
pub(crate) fn feature(name: &str) -> OnnxModel {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test/models/features");
    let options = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    OnnxModel::open(&root.join(name).with_extension("onnx"), &options).expect("the model is there")
}

/// A model as text.
pub(crate) fn text(model: &OnnxModel, options: &Options) -> Result<String, ExportError> {
    graph_text(model, model.graph(), options)
}

/// A graph of a model as text.
pub(crate) fn graph_text(model: &OnnxModel, graph: &Graph, options: &Options) -> Result<String, ExportError> {
    let mut out = Vec::new();
    write(model, graph, options, &mut out, None)?;
    Ok(String::from_utf8(out).expect("MLIR is text"))
}

pub(crate) fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        name: outputs.first().unwrap_or(&"").to_string(),
        op_type: op_type.to_owned(),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: outputs.iter().map(ToString::to_string).collect(),
        ..NodeProto::default()
    }
}

pub(crate) fn attribute(name: &str, fill: impl FnOnce(&mut AttributeProto)) -> AttributeProto {
    let mut attribute = AttributeProto {
        name: name.to_owned(),
        ..AttributeProto::default()
    };
    fill(&mut attribute);
    attribute
}

/// A tensor of the element type with this code.
pub(crate) fn tensor(name: &str, code: i32, dims: &[i64], raw: &[u8]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: code,
        dims: dims.to_vec(),
        raw_data: raw.to_vec(),
        ..TensorProto::default()
    }
}

/// A model with the input `x`, four single-precision numbers, and what the last node gives as its output.
pub(crate) fn model(nodes: Vec<NodeProto>, initializers: Vec<TensorProto>) -> OnnxModel {
    let input = feature("views").proto().graph.get_or_default().input[0].clone();
    let output = nodes.last().map(|node| node.output[0].clone()).unwrap_or_default();
    let graph = GraphProto {
        name: "small".to_owned(),
        input: vec![ValueInfoProto {
            name: "x".to_owned(),
            ..input
        }],
        output: vec![ValueInfoProto {
            name: output,
            ..ValueInfoProto::default()
        }],
        node: nodes,
        initializer: initializers,
        ..GraphProto::default()
    };
    let proto = ModelProto {
        ir_version: 9,
        opset_import: vec![OperatorSetIdProto {
            version: 20,
            ..OperatorSetIdProto::default()
        }],
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    let options = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    OnnxModel::from_proto(proto, &options).expect("the model is valid")
}

/// Every kind of attribute that is written, on an operator of no known domain.
pub(crate) fn attributes() -> OnnxModel {
    use AttributeType as T;
    let mut odd = node("Softmax", &["x"], &["y"]);
    odd.attribute = vec![
        attribute("int", |a| (a.type_, a.i) = (T::INT.into(), -3)),
        attribute("float", |a| (a.type_, a.f) = (T::FLOAT.into(), 0.1)),
        attribute("infinite", |a| (a.type_, a.f) = (T::FLOAT.into(), f32::NEG_INFINITY)),
        attribute("text", |a| (a.type_, a.s) = (T::STRING.into(), b"a \"b\"\n".to_vec())),
        attribute("ints", |a| (a.type_, a.ints) = (T::INTS.into(), vec![1, -2])),
        attribute("no ints", |a| a.type_ = T::INTS.into()),
        attribute("floats", |a| {
            (a.type_, a.floats) = (T::FLOATS.into(), vec![1.0, f32::NAN]);
        }),
        attribute("texts", |a| {
            (a.type_, a.strings) = (T::STRINGS.into(), vec![b"a".to_vec(), Vec::new()]);
        }),
        attribute("tensor", |a| {
            a.type_ = T::TENSOR.into();
            a.t = Some(tensor(
                "t",
                7,
                &[1, 2],
                &[1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
            ))
            .into();
        }),
    ];
    model(vec![odd], Vec::new())
}

/// Constants of every element type, each read by a node.
pub(crate) fn elements() -> OnnxModel {
    let bytes: Vec<u8> = (0..32).map(|i| [0x00, 0x3C, 0xC0, 0x7F][i % 4]).collect();
    let widths = [
        (1, 4),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, 2),
        (6, 4),
        (7, 8),
        (9, 1),
        (10, 2),
        (11, 8),
        (12, 4),
        (13, 8),
        (14, 8),
        (15, 16),
        (16, 2),
        (17, 1),
        (18, 1),
        (19, 1),
        (20, 1),
        (24, 1),
    ];
    let mut initializers: Vec<_> = widths
        .iter()
        .map(|&(code, width)| tensor(&format!("c{code}"), code, &[2], &bytes[..2 * width]))
        .collect();
    initializers.extend([21, 22, 23].map(|code| tensor(&format!("c{code}"), code, &[3], &[0x8F, 0x01])));
    initializers.extend([25, 26].map(|code| tensor(&format!("c{code}"), code, &[4], &[0x1B])));
    initializers.push(tensor("empty", 1, &[2, 0], &[]));
    let mut nodes: Vec<_> = initializers
        .iter()
        .map(|t| node("Identity", &[&t.name], &[&format!("{}_read", t.name)]))
        .collect();
    nodes.push(node("Relu", &["x"], &["y"]));
    model(nodes, initializers)
}

/// A chain whose first result is freed and recomputed, with what a plan makes of that.
pub(crate) fn rewritten(options: &Options) -> String {
    let nodes = vec![
        node("Exp", &["x"], &["a"]),
        node("Tanh", &["a"], &["b"]),
        node("Sin", &["b"], &["c"]),
        node("Mul", &["a", "c"], &["d"]),
    ];
    let graph = r#"
        graph "small" {
          input %x : f32[4,256]
          %a : f32[4,256] = compute @a Exp(%x) source 0
          %b : f32[4,256] = compute @b Tanh(%a) source 1
          dealloc %a
          %c : f32[4,256] = compute @c Sin(%b) source 2
          dealloc %b
          %a__remat1 : f32[4,256] = recompute @a__remat1 of @a Exp(%x) source 0
          %d : f32[4,256] = compute @d Mul(%a__remat1, %c) source 3
          dealloc %a__remat1
          dealloc %c
          output %d
        }"#;
    let graph = graph.parse().expect("the graph is well-formed");
    graph_text(&model(nodes, Vec::new()), &graph, options).expect("it is written")
}

/// A chain in which `a` and its view `v` are away twice.
pub(crate) fn paged(options: &Options) -> Result<String, ExportError> {
    let nodes = vec![
        node("Exp", &["x"], &["a"]),
        node("Identity", &["a"], &["v"]),
        node("Sin", &["v"], &["b"]),
        node("Mul", &["v", "b"], &["c"]),
        node("Cos", &["c"], &["d"]),
        node("Add", &["v", "d"], &["e"]),
    ];
    let graph = r#"
        graph "small" {
          input %x : f32[4,256]
          %a : f32[4,256] = compute @a Exp(%x) source 0
          %v : f32[4,256] view of %a = compute @v Identity(%a) source 1
          page_out %a
          page_in %a
          %b : f32[4,256] = compute @b Sin(%v) source 2
          %c : f32[4,256] = compute @c Mul(%v, %b) source 3
          dealloc %b
          page_out %a
          %d : f32[4,256] = compute @d Cos(%c) source 4
          dealloc %c
          page_in %a
          %e : f32[4,256] = compute @e Add(%v, %d) source 5
          dealloc %d
          dealloc %a
          output %e
        }"#;
    let graph = graph.parse().expect("the graph is well-formed");
    graph_text(&model(nodes, Vec::new()), &graph, options)
}

/// A plan in which `a` is read again after `distance` other ops, in the order of the file but for the first two.
pub(crate) fn read_again_after(distance: usize) -> String {
    let mut nodes = vec![node("Exp", &["x"], &["a"]), node("Sin", &["x"], &["b0"])];
    let mut lines = vec![
        "%b0 : f32[4,256] = compute @b0 Sin(%x) source 1".to_owned(),
        "%a : f32[4,256] = compute @a Exp(%x) source 0".to_owned(),
    ];
    for index in 0..distance {
        let (last, next) = (format!("b{index}"), format!("b{}", index + 1));
        nodes.push(node("Relu", &[&last], &[&next]));
        let source = index + 2;
        lines.push(format!(
            "%{next} : f32[4,256] = compute @{next} Relu(%{last}) source {source}"
        ));
    }
    nodes.push(node("Add", &["a", &format!("b{distance}")], &["y"]));
    let source = distance + 2;
    lines.push(format!(
        "%y : f32[4,256] = compute @y Add(%a, %b{distance}) source {source}"
    ));
    let graph = format!(
        "graph \"small\" {{\ninput %x : f32[4,256]\n{}\noutput %y\n}}",
        lines.join("\n")
    );
    let graph = graph.parse().expect("the graph is well-formed");
    let options = Options::new(Form::Torch);
    graph_text(&model(nodes, Vec::new()), &graph, &options).expect("it is written")
}
