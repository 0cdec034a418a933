//! Weights after the module and beside it.

use remat_onnx_mlir::{Form, Options, write};

use crate::support::{feature, model, node, tensor, text};

fn weights() -> Vec<remat_onnx::proto::TensorProto> {
    let bytes: Vec<u8> = (0..33_u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    vec![
        tensor("odd", 1, &[33], &bytes),
        tensor("even", 10, &[64], &bytes[..128]),
    ]
}

#[test]
fn blobs_stand_after_the_module_with_their_alignment() {
    let nodes = vec![node("Identity", &["odd"], &["z"]), node("Relu", &["x"], &["y"])];
    let written = text(&model(nodes, weights()), &Options::new(Form::Remat)).expect("it is written");
    let (_, blobs) = written.split_once("{-#").expect("there are blobs");
    assert!(blobs.contains("odd: \"0x10000000000000000000803F00000040"), "{blobs}");
    assert!(!blobs.contains("even"), "nobody reads it: {blobs}");
}

#[test]
fn the_file_beside_the_module_has_its_weights_in_aligned_order() {
    let nodes = vec![
        node("Identity", &["odd"], &["z"]),
        node("Identity", &["even"], &["w"]),
        node("Relu", &["x"], &["y"]),
    ];
    let model = model(nodes, weights());
    let (mut out, mut file) = (Vec::new(), Vec::new());
    let options = Options::new(Form::Torch);
    let report = write(&model, model.graph(), &options, &mut out, Some(&mut file)).expect("it is written");
    assert_eq!(report.weights, 132 + 128);
    insta::assert_snapshot!(String::from_utf8(out).expect("MLIR is text"));
    let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize;
    assert_eq!((8 + length) % 64, 0);
    assert_eq!(file.len(), 8 + length + 132 + 128);
    insta::assert_snapshot!(String::from_utf8_lossy(&file[8..8 + length]).trim_end(), @r#"{"even":{"dtype":"F16","shape":[64],"data_offsets":[0,128]},"odd":{"dtype":"F32","shape":[33],"data_offsets":[128,260]}}"#);
}

#[test]
fn only_iree_takes_weights_from_a_file() {
    let model = feature("views");
    for form in [Form::OnnxMlir, Form::Remat] {
        let options = Options::new(form);
        let written = write(&model, model.graph(), &options, &mut Vec::new(), Some(&mut Vec::new()));
        assert!(written.is_err());
    }
}

#[test]
fn external_weights_are_read_from_their_file() {
    let written = text(&feature("external_data"), &Options::new(Form::Torch)).expect("it is written");
    assert!(written.contains("dense_resource<") && written.contains("dialect_resources"));
}
