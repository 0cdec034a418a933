use remat::LoadOptions;
use remat_onnxruntime_lower::{Layout, LoweringOptions, Shapes, lower};
use remat_testing::onnx::{self, FLOAT, NodeExt, tensor_type};

use super::*;

/// A softmax over what a product makes: it may overwrite that. `x` has these dimensions.
fn file(folder: &Path, x: &str) -> std::path::PathBuf {
    let made = onnx::node("MatMul", &["x", "x"], &["scores"]).named("scores");
    let shares = onnx::node("Softmax", &["scores"], &["shares"]).named("shares");
    let last = onnx::node("MatMul", &["shares", "w"], &["y"]).named("y");
    let inputs = [("x", tensor_type(FLOAT, x)), ("w", tensor_type(FLOAT, "64 1"))];
    let graph = onnx::graph(&inputs, vec![made, shares, last], &["y"]);
    let path = folder.join("model.onnx");
    let model = OnnxModel::from_proto(onnx::model(graph), &looked_at()).unwrap();
    model.save_proto(model.proto(), &path).unwrap();
    path
}

/// The peaks of a file as it is written, and as if a runtime had loaded it and changed nothing.
fn peaks(shapes: Shapes, x: &str, load: &LoadOptions) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::open(&file(folder.path(), x), load).unwrap();
    let rewritten = remat::rewrite(&model, &Solution::baseline(&model).unwrap())
        .unwrap()
        .unwrap();
    let options = LoweringOptions {
        shapes,
        ..LoweringOptions::default()
    };
    let onnx = model.onnx().unwrap();
    let lowered = lower(onnx, &rewritten, &options, &Layout::default()).unwrap();
    assert_eq!(lowered.report.overwritten, usize::from(shapes == Shapes::StaticInPlace));
    let run = Simulated::to_the_end();
    let written = simulate(&model, &rewritten, &lowered, OrderHint::Any, &run).unwrap();
    let loaded = folder.path().join("loaded.onnx");
    onnx.save_proto(&lowered.proto, &loaded).unwrap();
    let device = Device::preset(Device::DEFAULT).unwrap();
    let loaded = simulate_loaded(&loaded, &rewritten, &lowered, &device, &run).unwrap();
    [written.peak_bytes, loaded.peak_bytes]
}

#[test]
fn an_operand_whose_shape_a_view_states_is_overwritten_in_files_as_they_are_written_and_as_they_are_loaded() {
    let peaks = |shapes| peaks(shapes, "64 64", &LoadOptions::default());
    let (apart, in_place) = (peaks(Shapes::Dynamic), peaks(Shapes::StaticInPlace));
    let result = 4 * 64 * 64;
    for (apart, in_place) in apart.into_iter().zip(in_place) {
        assert!(apart.abs_diff(in_place + result) < result / 8, "{apart} {in_place}");
    }
}

#[test]
fn what_has_an_open_dimension_is_counted_at_the_size_that_it_was_given() {
    let load = LoadOptions {
        dims: [("n".to_owned(), 64)].into(),
        ..LoadOptions::default()
    };
    let open = peaks(Shapes::Dynamic, "n 64", &load);
    let fixed = peaks(Shapes::Dynamic, "64 64", &LoadOptions::default());
    assert_eq!(open, fixed);
}
