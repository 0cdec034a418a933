use std::io::Cursor;

use onnx_protobuf::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};

use super::*;
use crate::OnnxModel;
use crate::model::parse;
use crate::sizes::ImportOptions;

const ROWS: u16 = 300;

/// A model `x @ first + second`, with one large weight as bytes, one as numbers, and a small one.
fn model() -> ModelProto {
    let dims = vec![i64::from(ROWS); 2];
    let numbers = (0..u32::from(ROWS) * u32::from(ROWS)).map(|at| at as f32);
    let first = TensorProto {
        name: "first".to_owned(),
        dims: dims.clone(),
        data_type: 1,
        raw_data: numbers.clone().flat_map(f32::to_le_bytes).collect(),
        doc_string: "kept".to_owned(),
        ..TensorProto::default()
    };
    let second = TensorProto {
        name: "second".to_owned(),
        dims,
        data_type: 1,
        float_data: numbers.map(|number| -number).collect(),
        ..TensorProto::default()
    };
    let small = TensorProto {
        name: "small".to_owned(),
        dims: vec![1],
        data_type: 1,
        raw_data: 2_f32.to_le_bytes().to_vec(),
        ..TensorProto::default()
    };
    let node = |op: &str, inputs: [&str; 2], output: &str| NodeProto {
        op_type: op.to_owned(),
        name: output.to_owned(),
        input: inputs.map(str::to_owned).to_vec(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let value = |name: &str| ValueInfoProto {
        name: name.to_owned(),
        type_: crate::type_proto(&remat_ir::ValueType::tensor(
            remat_ir::ElementType::Float32,
            &[u64::from(ROWS); 2],
        ))
        .into(),
        ..ValueInfoProto::default()
    };
    let graph = GraphProto {
        name: "main".to_owned(),
        node: vec![
            node("MatMul", ["x", "first"], "product"),
            node("Add", ["product", "second"], "sum"),
            node("Mul", ["sum", "small"], "y"),
        ],
        initializer: vec![first, second, small],
        input: vec![value("x")],
        output: vec![value("y")],
        ..GraphProto::default()
    };
    ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto {
            version: 17,
            ..OperatorSetIdProto::default()
        }],
        graph: Some(graph).into(),
        ..ModelProto::default()
    }
}

fn joined(pieces: Vec<Piece>, file: &[u8]) -> Vec<u8> {
    pieces
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Bytes(bytes) => bytes,
            Piece::Range { offset, length } => file[offset as usize..(offset + length) as usize].to_vec(),
        })
        .collect()
}

/// The elements of each weight.
fn elements(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let weights = parse(bytes).unwrap().graph.unwrap().initializer;
    let raw = |tensor: &TensorProto| match &tensor.raw_data[..] {
        [] => tensor
            .float_data
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect(),
        raw => raw.to_vec(),
    };
    weights
        .iter()
        .map(|tensor| (tensor.name.clone(), raw(tensor)))
        .collect()
}

#[test]
fn a_model_of_which_only_the_graph_was_read_is_written_whole() {
    let file = model().write_to_bytes().unwrap();
    let read = outline(Cursor::new(&file)).unwrap();
    assert!(read.len() < 2000, "{} bytes of {}", read.len(), file.len());
    let opened = OnnxModel::from_bytes(&read, None, &ImportOptions::default()).unwrap();
    let whole = OnnxModel::from_bytes(&file, None, &ImportOptions::default()).unwrap();
    assert_eq!(opened.graph().to_string(), whole.graph().to_string());

    let written = joined(
        restore(&opened.export(opened.graph()).unwrap(), file.len() as u64).unwrap(),
        &file,
    );
    assert_eq!(elements(&written), elements(&file));
    let graph = parse(&written).unwrap().graph.unwrap();
    assert!(
        graph
            .initializer
            .iter()
            .all(|tensor| !is_external(tensor) && tensor.external_data.is_empty())
    );
    assert_eq!(graph.initializer[0].doc_string, "kept");
    assert_eq!(graph.node, model().graph.unwrap().node);
}

#[test]
fn a_small_model_stays_as_it_is() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/mlp_tiny_train.onnx");
    let file = std::fs::read(path).unwrap();
    assert_eq!(outline(Cursor::new(&file)).unwrap(), file);
    assert_eq!(restore(&file, 0).unwrap(), [Piece::Bytes(file)]);
}

#[test]
fn ranges_outside_of_the_file_are_refused() {
    let file = model().write_to_bytes().unwrap();
    let read = outline(Cursor::new(&file)).unwrap();
    let refused = restore(&read, file.len() as u64 * 3 / 4).unwrap_err();
    assert!(refused.to_string().contains("`second`"), "{refused}");
}

#[test]
fn what_is_no_model_is_refused_where_it_ends() {
    let mut file = model().write_to_bytes().unwrap();
    file.truncate(file.len() - 100);
    assert!(matches!(outline(Cursor::new(&file)), Err(OnnxError::Truncated { .. })));
    let endless = [0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert!(matches!(
        outline(Cursor::new(&endless)),
        Err(OnnxError::Truncated { need: u64::MAX, .. })
    ));
    assert!(matches!(outline(Cursor::new(b"\x0b")), Err(OnnxError::NotOnnx { .. })));
}
