//! Graphs after fission, written by hand: the file is a model like any other and computes the same bits.

use std::path::{Path, PathBuf};
use std::process::Command;

use remat::LoadOptions;
use remat::ir::Graph;
use remat::onnx::proto::{GraphProto, Message, ModelProto, NodeProto, tensor_proto::DataLocation};
use remat::onnx::{ImportOptions, OnnxModel, PART, TILE_MARK};
use remat_onnxruntime_run::{OptimizationLevel, optimize};
use remat_testing::onnx::{FLOAT, NodeExt, graph, integers, model, node, numbers, opset, tensor_type, value};
use remat_testing::workspace;

use crate::common::{assert_same, original, runtime};
use crate::measure::{child_program, runner};

/// A convolution and pooling by rows, one fused chain of it twice; then a convolution by channels, whose weights are cut.
const CONVOLUTIONS: &str = r#"graph "g" {
  input %x : f32[1, 2, 8, 8]
  const %w : f32[4, 2, 3, 3]
  const %v : f32[4, 4, 1, 1]
  const %zero : i64[1] values [0]
  const %two : i64[1] values [2]
  const %three : i64[1] values [3]
  const %five : i64[1] values [5]
  const %end : i64[1] values [9223372036854775807]
  const %rows : i64[1] values [2]
  const %outer : i64[1] values [0]
  const %outer.1 : i64[1] values [0]
  %x.0 : f32[1, 2, 5, 8] part of x[0:1, 0:2, 0:5, 0:8] = compute @x.0 Slice(%x, %zero, %five, %rows)
  %a.0 : f32[1, 4, 4, 8] part of a[0:1, 0:4, 0:4, 0:8] = compute @conv.0 Conv(%x.0, %w) {pads = [1, 1, 0, 1]} source 0
  %r.0 : f32[1, 4, 4, 8] part of r[0:1, 0:4, 0:4, 0:8] = compute @relu.0 Relu(%a.0) source 1
  %p.0 : f32[1, 4, 2, 4] part of p[0:1, 0:4, 0:2, 0:4] = compute @pool.0 MaxPool(%r.0) {kernel_shape = [2, 2], strides = [2, 2]} source 2
  %n.0 : f32[1, 4, 4, 8] part of n[0:1, 0:4, 0:4, 0:8] = compute @neg.0 Neg(%r.0) source 3
  %x.1 : f32[1, 2, 5, 8] part of x[0:1, 0:2, 3:8, 0:8] = compute @x.1 Slice(%x, %three, %end, %rows)
  %a.1 : f32[1, 4, 4, 8] part of a[0:1, 0:4, 4:8, 0:8] = compute @conv.1 Conv(%x.1, %w) {pads = [0, 1, 1, 1]} source 0
  %r.1 : f32[1, 4, 4, 8] part of r[0:1, 0:4, 4:8, 0:8] = compute @relu.1 Relu(%a.1) source 1
  %p.1 : f32[1, 4, 2, 4] part of p[0:1, 0:4, 2:4, 0:4] = compute @pool.1 MaxPool(%r.1) {kernel_shape = [2, 2], strides = [2, 2]} source 2
  %p : f32[1, 4, 4, 4] part of p[0:1, 0:4, 0:4, 0:4] = compute @p Concat(%p.0, %p.1) {axis = 2}
  %v.0 : f32[2, 4, 1, 1] part of v[0:2, 0:4, 0:1, 0:1] = compute @v.0 Slice(%v, %zero, %two, %outer)
  %y.0 : f32[1, 2, 4, 4] part of y[0:1, 0:2, 0:4, 0:4] = compute @project.0 Conv(%p, %v.0) source 4
  %v.1 : f32[2, 4, 1, 1] part of v[2:4, 0:4, 0:1, 0:1] = compute @v.1 Slice(%v, %two, %end, %outer.1)
  %y.1 : f32[1, 2, 4, 4] part of y[0:1, 2:4, 0:4, 0:4] = compute @project.1 Conv(%p, %v.1) source 4
  %y : f32[1, 4, 4, 4] part of y[0:1, 0:4, 0:4, 0:4] = compute @y Concat(%y.0, %y.1) {axis = 1}
  %x.2 : f32[1, 2, 5, 8] part of x[0:1, 0:2, 3:8, 0:8] = compute @x.2 Slice(%x, %three, %end, %rows)
  %a.2 : f32[1, 4, 4, 8] part of a[0:1, 0:4, 4:8, 0:8] = compute @conv.2 Conv(%x.2, %w) {pads = [0, 1, 1, 1]} source 0
  %r.2 : f32[1, 4, 4, 8] part of r[0:1, 0:4, 4:8, 0:8] = compute @relu.2 Relu(%a.2) source 1
  %n.1 : f32[1, 4, 4, 8] part of n[0:1, 0:4, 4:8, 0:8] = compute @neg.1 Neg(%r.2) source 3
  %n : f32[1, 4, 8, 8] part of n[0:1, 0:4, 0:8, 0:8] = compute @n Concat(%n.0, %n.1) {axis = 2}
  output %y
  output %n
}
"#;

/// Rows of a reshaped tensor that is enlarged: other shapes as constants, and a row that is sliced off.
const CONSTANTS: &str = r#"graph "g" {
  input %x : f32[4, 12]
  const %shape.0 : i64[4] values [1, 3, 2, 4]
  const %scales : f32[4]
  const %zero : i64[1] values [0]
  const %one : i64[1] values [1]
  const %two : i64[1] values [2]
  const %three : i64[1] values [3]
  const %four : i64[1] values [4]
  const %six : i64[1] values [6]
  const %shape : i64[4]
  %s : f32[1, 3, 4, 4] view of %x = compute @reshape Reshape(%x, %shape) source 0
  %s.0 : f32[1, 3, 3, 4] part of s[0:1, 0:3, 0:3, 0:4] = compute @s.0 Slice(%s, %zero, %three, %two)
  %e.0 : f32[1, 3, 6, 8] part of e[0:1, 0:3, 0:4, 0:8] spare 2 before 0 after 2 = compute @enlarge.0 Resize(%s.0, _, %scales) {coordinate_transformation_mode = "half_pixel", mode = "linear"} source 1
  %e.0c : f32[1, 3, 4, 8] part of e[0:1, 0:3, 0:4, 0:8] = compute @e.0c Slice(%e.0, %zero, %four, %two)
  %y.0 : f32[1, 3, 4, 8] part of y[0:1, 0:3, 0:4, 0:8] = compute @relu.0 Relu(%e.0c) source 2
  %s.1 : f32[1, 3, 3, 4] part of s[0:1, 0:3, 1:4, 0:4] = compute @s.1 Slice(%s, %one, %four, %two)
  %e.1 : f32[1, 3, 6, 8] part of e[0:1, 0:3, 4:8, 0:8] spare 2 before 2 after 0 = compute @enlarge.1 Resize(%s.1, _, %scales) {coordinate_transformation_mode = "half_pixel", mode = "linear"} source 1
  %e.1c : f32[1, 3, 4, 8] part of e[0:1, 0:3, 4:8, 0:8] = compute @e.1c Slice(%e.1, %two, %six, %two)
  %y.1 : f32[1, 3, 4, 8] part of y[0:1, 0:3, 4:8, 0:8] = compute @relu.1 Relu(%e.1c) source 2
  %y : f32[1, 3, 8, 8] part of y[0:1, 0:3, 0:8, 0:8] = compute @y Concat(%y.0, %y.1) {axis = 2}
  output %y
}
"#;

fn convolutions() -> ModelProto {
    let nodes = vec![
        node("Conv", &["x", "w"], &["a"])
            .named("conv")
            .ints("pads", &[1, 1, 1, 1]),
        node("Relu", &["a"], &["r"]).named("relu"),
        node("MaxPool", &["r"], &["p"])
            .named("pool")
            .ints("kernel_shape", &[2, 2])
            .ints("strides", &[2, 2]),
        node("Neg", &["r"], &["n"]).named("neg"),
        node("Conv", &["p", "v"], &["y"]).named("project"),
    ];
    let mut main = graph(&[("x", tensor_type(FLOAT, "1 2 8 8"))], nodes, &[]);
    main.initializer = vec![numbers("w", &[4, 2, 3, 3]), numbers("v", &[4, 4, 1, 1])];
    main.output = vec![
        value("y", Some(tensor_type(FLOAT, "1 4 4 4"))),
        value("n", Some(tensor_type(FLOAT, "1 4 8 8"))),
    ];
    model(main)
}

fn constants() -> ModelProto {
    let nodes = vec![
        node("Reshape", &["x", "shape"], &["s"]).named("reshape"),
        node("Resize", &["s", "", "scales"], &["e"])
            .named("enlarge")
            .text("mode", "linear")
            .text("coordinate_transformation_mode", "half_pixel"),
        node("Relu", &["e"], &["y"]).named("relu"),
    ];
    let mut main = graph(&[("x", tensor_type(FLOAT, "4 12"))], nodes, &[]);
    let mut scales = numbers("scales", &[4]);
    scales.float_data = vec![1.0, 1.0, 2.0, 2.0];
    main.initializer = vec![integers("shape", &[1, 3, 4, 4]), scales];
    main.output = vec![value("y", Some(tensor_type(FLOAT, "1 3 8 8")))];
    model(main)
}

/// A model, and the one that its tiled graph becomes, as files in a folder.
struct Written {
    folder: tempfile::TempDir,
    proto: ModelProto,
}

impl Written {
    fn of(model: &ModelProto, tiled: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::in_folder(folder, model, tiled)
    }

    fn in_folder(folder: tempfile::TempDir, model: &ModelProto, tiled: &str) -> Self {
        let before = folder.path().join("before.onnx");
        std::fs::write(&before, model.write_to_bytes().unwrap()).unwrap();
        let model = open(&before);
        let tiled = Graph::parse(tiled).unwrap_or_else(|error| panic!("{error}"));
        let proto = model.export_proto(&tiled).unwrap_or_else(|error| panic!("{error}"));
        model.save_proto(&proto, &folder.path().join("after.onnx")).unwrap();
        Self { folder, proto }
    }

    fn before(&self) -> PathBuf {
        self.folder.path().join("before.onnx")
    }

    fn after(&self) -> PathBuf {
        self.folder.path().join("after.onnx")
    }

    fn main(&self) -> &GraphProto {
        self.proto.graph.as_ref().unwrap()
    }

    fn initializers(&self) -> Vec<&str> {
        self.main()
            .initializer
            .iter()
            .map(|tensor| tensor.name.as_str())
            .collect()
    }

    fn assert_same_bits(&self) {
        let options = LoadOptions::default();
        let before = original(runtime(), &self.before(), &options);
        assert_same(runtime(), &before, &self.after(), &options, "the tiled model");
    }
}

fn open(path: &Path) -> OnnxModel {
    OnnxModel::open(path, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn count(nodes: &[NodeProto], op_type: &str) -> usize {
    nodes.iter().filter(|node| node.op_type == op_type).count()
}

pub(crate) fn tiled_models_compute_the_same_bits() {
    Written::of(&convolutions(), CONVOLUTIONS).assert_same_bits();
    Written::of(&constants(), CONSTANTS).assert_same_bits();
}

pub(crate) fn a_part_that_is_computed_twice_is_not_merged() {
    let written = Written::of(&convolutions(), CONVOLUTIONS);
    let out = written.folder.path().join("optimized.onnx");
    let child = child_program();
    let runner = runner(&child, runtime().library());
    optimize(&runner, &written.after(), OptimizationLevel::Basic, &out).unwrap_or_else(|error| panic!("{error}"));
    let optimized = ModelProto::parse_from_bytes(&std::fs::read(out).unwrap()).unwrap();
    let nodes = &optimized.graph.as_ref().unwrap().node;
    assert_eq!(count(nodes, "Slice"), 3, "two tiles, one of them again");
    let marked = |node: &&NodeProto| node.attribute.iter().any(|attribute| attribute.name == TILE_MARK);
    let marked: Vec<&str> = written
        .main()
        .node
        .iter()
        .filter(marked)
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(marked, ["x.1", "x.2"]);
}

pub(crate) fn weights_are_cut_and_constants_shared() {
    let written = Written::of(&convolutions(), CONVOLUTIONS);
    assert_eq!(
        written.initializers(),
        ["w", "zero", "two", "three", "five", "end", "v.0", "v.1"]
    );
    assert_eq!(count(&written.main().node, "Slice"), 3);
    let part = written.main().node[1]
        .metadata_props
        .iter()
        .find(|entry| entry.key == PART);
    assert_eq!(part.unwrap().value, "a[0:1, 0:4, 0:4, 0:8]");
    let reopened = open(&written.after());
    let known = reopened
        .graph_with_integers(&ImportOptions::default())
        .expect("it is imported again");
    let named = |name: &str| {
        known
            .tensors
            .iter_enumerated()
            .find(|(_, tensor)| tensor.name == name)
            .unwrap()
            .0
    };
    assert_eq!(known.values[&named("end")], [i64::MAX]);
    assert!(!known.values.contains_key(&named("v.0")));
    assert!(reopened.graph().values.is_empty());
}

/// Zeros, say: a file holds the pieces once.
pub(crate) fn equal_pieces_of_weights_are_one() {
    let mut model = convolutions();
    let weights = &mut model.graph.mut_or_insert_default().initializer[1];
    weights.float_data.fill(0.0);
    let written = Written::of(&model, CONVOLUTIONS);
    assert_eq!(
        written.initializers(),
        ["w", "zero", "two", "three", "five", "end", "v.0"]
    );
    written.assert_same_bits();
}

/// Weights in another file stay there; a `Slice` cuts them when the model is loaded.
pub(crate) fn weights_in_another_file_are_cut_by_a_node() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut model = convolutions();
    let weights = &mut model.graph.mut_or_insert_default().initializer[1];
    let data: Vec<u8> = weights.float_data.drain(..).flat_map(f32::to_le_bytes).collect();
    std::fs::write(folder.path().join("weights"), data).unwrap();
    weights.data_location = DataLocation::EXTERNAL.into();
    weights.external_data = vec![remat_testing::onnx::entry("location", "weights")];
    let written = Written::in_folder(folder, &model, CONVOLUTIONS);
    assert_eq!(count(&written.main().node, "Slice"), 5);
    assert!(written.initializers().contains(&"v"));
    written.assert_same_bits();
}

/// Before version 10 of the operators, `Slice` has its bounds as attributes.
pub(crate) fn bounds_are_attributes_where_the_operators_are_old() {
    let mut model = convolutions();
    model.opset_import = vec![opset("", 9)];
    let written = Written::of(&model, CONVOLUTIONS);
    assert_eq!(written.initializers(), ["w", "v.0", "v.1"]);
    written.assert_same_bits();
}

pub(crate) fn tiled_models_pass_the_checker_of_onnx() {
    let check = "import onnx, sys\nfor path in sys.argv[1:]: onnx.checker.check_model(path, full_check=True)";
    for (model, tiled) in [(convolutions(), CONVOLUTIONS), (constants(), CONSTANTS)] {
        let written = Written::of(&model, tiled);
        let python = workspace().join("third_party/venv/bin/python");
        let output = Command::new(python)
            .args(["-c", check])
            .arg(written.after())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
