use std::fs;

use onnx_protobuf::{GraphProto, Message, NodeProto};

use super::*;

/// A weight of so many floats of a value, in the model.
fn inline(name: &str, count: usize, value: f32) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: vec![i64::try_from(count).expect("a small weight")],
        data_type: 1,
        raw_data: vec![value; count].into_iter().flat_map(f32::to_le_bytes).collect(),
        ..TensorProto::default()
    }
}

fn reading(weights: Vec<TensorProto>, reads: &[&str]) -> Vec<u8> {
    let node = |name: &&str| NodeProto {
        op_type: "Relu".to_owned(),
        input: vec![(*name).to_owned()],
        output: vec![format!("{name}_out")],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: reads.iter().map(node).collect(),
        initializer: weights,
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: 8,
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    model.write_to_bytes().expect("a small model")
}

fn entry<'t>(tensor: &'t TensorProto, key: &str) -> &'t str {
    let found = tensor.external_data.iter().find(|entry| entry.key == key);
    &found.expect(key).value
}

/// The bytes of a weight as the data file has them.
fn stored(data: &[u8], offset: &str, bytes: &str) -> Vec<u8> {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    data[number(offset)..number(offset) + number(bytes)].to_vec()
}

#[test]
fn what_runs_read_comes_first_and_equal_weights_are_there_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    // The second weight is packed: its copy lies in a file behind its plain bytes.
    let plain: Vec<u8> = [2.0_f32; 20_000].into_iter().flat_map(f32::to_le_bytes).collect();
    let packed = vec![7_u8; 100_000];
    fs::write(path("old.data"), [plain.as_slice(), &packed].concat()).expect("it is written");
    let mut second = inline("second", 20_000, 0.0);
    second.raw_data.clear();
    second.data_location = DataLocation::EXTERNAL.into();
    let places = [("location", "old.data"), ("offset", "0"), ("length", "80000")];
    let packed_at = ("prepacked_0", "MatMul+42|80000;100000;0");
    second.external_data = places
        .into_iter()
        .chain([packed_at])
        .map(|(key, value)| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
            ..StringStringEntryProto::default()
        })
        .collect();
    let weights = vec![inline("first", 30_000, 1.0), second, inline("small", 4, 3.0)];
    fs::write(path("a.onnx"), reading(weights, &["second", "first", "small"])).expect("it is written");
    let spare = vec![inline("other", 20_000, 2.0), inline("own", 500, 5.0)];
    fs::write(path("b.onnx"), reading(spare, &["other", "own"])).expect("it is written");

    let out = tempfile::tempdir().expect("a folder");
    let at = |name: &str| out.path().join(name);
    let wanted = [
        LayOut {
            source: &path("a.onnx"),
            out: &at("a.onnx"),
            is_reversed: false,
            is_spare: false,
        },
        LayOut {
            source: &path("b.onnx"),
            out: &at("b.onnx"),
            is_reversed: false,
            is_spare: true,
        },
    ];
    let found = lay_out(&wanted, &at("new.data")).expect("both are laid out");
    let expected = LaidOut {
        packed_bytes: 100_000,
        plain_bytes: 120_000,
        loading_bytes: 80_000,
        largest_loading_bytes: 80_000,
        inline_bytes: 16,
        weights: 3,
        nodes: 3,
    };
    assert_eq!(found[0], expected);

    let data = fs::read(at("new.data")).expect("it is there");
    let read = |name: &str| {
        let bytes = model::read(&at(name)).expect("it is written");
        model::parse(&bytes).expect("a model").graph.unwrap().initializer
    };
    let [first, second, small] = &read("a.onnx")[..] else {
        panic!()
    };
    assert_eq!(small.raw_data.len(), 16);
    assert_eq!(entry(second, "location"), "new.data");
    let copy = entry(second, "prepacked_0")
        .strip_prefix("MatMul+42|")
        .expect("the key stays");
    let numbers: Vec<&str> = copy.split(';').collect();
    assert_eq!(stored(&data, numbers[0], numbers[1]), packed);
    assert_eq!(stored(&data, entry(second, "offset"), entry(second, "length")), plain);
    let ones: Vec<u8> = [1.0_f32; 30_000].into_iter().flat_map(f32::to_le_bytes).collect();
    assert_eq!(stored(&data, entry(first, "offset"), entry(first, "length")), ones);
    // In the order of the nodes: the packed copy of the second, the first, and then what is read while loading.
    let offset = |text: &str| text.parse::<u64>().expect("a number");
    let order = [
        offset(numbers[0]),
        offset(entry(first, "offset")),
        offset(entry(second, "offset")),
    ];
    assert!(order.is_sorted() && order.iter().all(|at| at % 4096 == 0), "{order:?}");
    let [other, own] = &read("b.onnx")[..] else { panic!() };
    assert_eq!(
        entry(other, "offset"),
        entry(second, "offset"),
        "equal bytes are there once"
    );
    assert!(offset(entry(own, "offset")) > order[2]);
}

#[test]
fn a_copy_beyond_the_end_of_its_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("w.data"), vec![0; 4096]).expect("it is written");
    let mut weight = inline("w", 1024, 0.0);
    weight.raw_data.clear();
    weight.data_location = DataLocation::EXTERNAL.into();
    for (key, value) in [("location", "w.data"), ("prepacked_0", "MatMul+1|4000;97;0")] {
        weight.external_data.push(StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
            ..StringStringEntryProto::default()
        });
    }
    let source = folder.path().join("m.onnx");
    fs::write(&source, reading(vec![weight], &["w"])).expect("it is written");
    let wanted = LayOut {
        source: &source,
        out: &folder.path().join("out.onnx"),
        is_reversed: false,
        is_spare: false,
    };
    let error = lay_out(&[wanted], &folder.path().join("new.data")).unwrap_err();
    assert!(error.to_string().contains("97 bytes at offset 4000"), "{error}");
}
