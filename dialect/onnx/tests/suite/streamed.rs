//! Sums that are split, written with ONNX's own operators.

use remat_ir::Graph;
use remat_onnx::proto::{Message, ModelProto, NodeProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};

use crate::common::*;

/// Two groups of two channels, normalized as exporters write it.
fn group_norm(version: i64) -> ModelProto {
    let nodes = vec![
        node("Reshape", &["x", "grouped"], &["g"]).named("group"),
        node("InstanceNormalization", &["g", "scale", "bias"], &["n"]).named("norm"),
        node("Reshape", &["n", "image"], &["r"]).named("ungroup"),
        node("Mul", &["r", "gamma"], &["m"]).named("mul"),
        node("Add", &["m", "beta"], &["y"]).named("add"),
    ];
    let mut main = graph(&[("x", tensor_type(FLOAT, "1 4 6 2"))], nodes, &["y"]);
    main.initializer = vec![
        integers("grouped", &[0, 2, -1]),
        integers("image", &[1, 4, 6, 2]),
        numbers("scale", &[2]),
        numbers("bias", &[2]),
        numbers("gamma", &[4, 1, 1]),
        numbers("beta", &[4, 1, 1]),
    ];
    let mut model = model(main);
    model.opset_import = vec![opset("", version)];
    model
}

const TWO_TILES: &str = r#"graph "g" {
  input %x : f32[1, 4, 6, 2]
  const %scale : f32[2]
  const %bias : f32[2]
  const %gamma : f32[4, 1, 1]
  const %beta : f32[4, 1, 1]
  const %zero : i64[1] values [0]
  const %two : i64[1] values [2]
  const %six : i64[1] values [6]
  const %rows : i64[1] values [2]
  %x.0 : f32[1, 4, 2, 2] part of x[0:1, 0:4, 0:2, 0:2] = compute @x.0 Slice(%x, %zero, %two, %rows)
  %m.0 : f32[1, 4, 1, 2] part over x[0:1, 0:4, 0:2, 0:2] = compute @m.0 com.remat.streamed::Moments(%x.0)
  %x.1 : f32[1, 4, 4, 2] part of x[0:1, 0:4, 2:6, 0:2] = compute @x.1 Slice(%x, %two, %six, %rows)
  %m.1 : f32[1, 4, 1, 2] part over x[0:1, 0:4, 2:6, 0:2] = compute @m.1 com.remat.streamed::Moments(%x.1)
  %m.all : f32[1, 4, 1, 2] part over x[0:1, 0:4, 0:6, 0:2] = compute @m.all com.remat.streamed::CombineMoments(%m.0, %m.1) {counts = [4, 8]}
  %f : f32[1, 4, 1, 2] part over x[0:1, 0:4, 0:6, 0:2] = compute @f com.remat.streamed::Normalizer(%m.all, %scale, %bias, %gamma, %beta) {count = 12, epsilon = 1e-5, groups = 2}
  %x.2 : f32[1, 4, 2, 2] part of x[0:1, 0:4, 0:2, 0:2] = compute @x.2 Slice(%x, %zero, %two, %rows)
  %y.0 : f32[1, 4, 2, 2] part of y[0:1, 0:4, 0:2, 0:2] = compute @y.0 com.remat.streamed::Normalize(%x.2, %f)
  %y.1 : f32[1, 4, 4, 2] part of y[0:1, 0:4, 2:6, 0:2] = compute @y.1 com.remat.streamed::Normalize(%x.1, %f)
  %y : f32[1, 4, 6, 2] part of y[0:1, 0:4, 0:6, 0:2] = compute @y Concat(%y.0, %y.1) {axis = 2}
  output %y
}
"#;

pub(crate) fn export(model: &ModelProto, tiled: &str) -> Result<ModelProto, OnnxError> {
    let tiled = Graph::parse(tiled).unwrap_or_else(|error| panic!("{error}"));
    open(model).unwrap().export_without_readers(&tiled)
}

/// One line for each node, and one for each constant that the model did not have.
pub(crate) fn shown(model: &ModelProto, written: &ModelProto) -> String {
    let line = |node: &NodeProto| {
        let attributes: Vec<String> = node
            .attribute
            .iter()
            .map(|a| {
                format!(
                    " {}={:?}",
                    a.name,
                    if a.ints.is_empty() { vec![a.i] } else { a.ints.clone() }
                )
            })
            .collect();
        let part = node.metadata_props.iter().map(|entry| format!("  # {}", entry.value));
        let (results, operands) = (node.output.join(", "), node.input.join(", "));
        format!(
            "{results} = {}({operands}){}{}",
            node.op_type,
            attributes.concat(),
            part.collect::<String>()
        )
    };
    let before: Vec<&str> = model
        .graph
        .initializer
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect();
    let constants = written.graph.initializer.iter();
    let constants = constants
        .filter(|tensor| !before.contains(&&*tensor.name))
        .map(|tensor| format!("const {} {:?}", tensor.name, tensor.dims));
    let lines: Vec<String> = constants.chain(written.graph.node.iter().map(line)).collect();
    lines.join("\n")
}

#[test]
fn a_normalization_in_two_passes_becomes_nodes_of_onnx() {
    let model = group_norm(17);
    let written = export(&model, TWO_TILES).unwrap();
    insta::assert_snapshot!(shown(&model, &written), @"
    const zero [1]
    const two [1]
    const six [1]
    const m.0__axes [1]
    const m.all__shares [2, 1]
    const m.all__counts [2, 1]
    const f__count []
    const f__epsilon []
    const f__shape [4]
    const f__shape_1 [3]
    const f__shape_2 [3]
    const f__shape_3 [4]
    x.0 = Slice(x, zero, two, two) __tile=[0]  # x[0:1, 0:4, 0:2, 0:2]
    m.0__mean_of_rows = ReduceMean(x.0) axes=[3]
    m.0__mean = ReduceMean(m.0__mean_of_rows) axes=[2]
    m.0__apart = Sub(x.0, m.0__mean)
    m.0__squares_of_rows = ReduceSumSquare(m.0__apart) axes=[3]
    m.0__squares = ReduceSum(m.0__squares_of_rows, m.0__axes)  # over x[0:1, 0:4, 0:2, 0:2]
    x.1 = Slice(x, two, six, two)  # x[0:1, 0:4, 2:6, 0:2]
    m.1__mean_of_rows = ReduceMean(x.1) axes=[3]
    m.1__mean = ReduceMean(m.1__mean_of_rows) axes=[2]
    m.1__apart = Sub(x.1, m.1__mean)
    m.1__squares_of_rows = ReduceSumSquare(m.1__apart) axes=[3]
    m.1__squares = ReduceSum(m.1__squares_of_rows, m.0__axes)  # over x[0:1, 0:4, 2:6, 0:2]
    m.all__means = Concat(m.0__mean, m.1__mean) axis=[2]
    m.all__sums = Concat(m.0__squares, m.1__squares) axis=[2]
    m.all__apart = Sub(m.all__means, m.0__mean)
    m.all__weighted = Mul(m.all__apart, m.all__shares)
    m.all__shift = ReduceSum(m.all__weighted, m.0__axes)
    m.all__mean = Add(m.0__mean, m.all__shift)
    m.all__between = Sub(m.all__apart, m.all__shift)
    m.all__squared = Mul(m.all__between, m.all__between)
    m.all__sized = Mul(m.all__squared, m.all__counts)
    m.all__added = Add(m.all__sums, m.all__sized)
    m.all__squares = ReduceSum(m.all__added, m.0__axes)  # over x[0:1, 0:4, 0:6, 0:2]
    f__means = Reshape(m.all__mean, f__shape)
    f__sums = Reshape(m.all__squares, f__shape)
    f__mean = ReduceMean(f__means) axes=[2]
    f__between = Sub(f__means, f__mean)
    f__squared = Mul(f__between, f__between)
    f__variances = Div(f__sums, f__count)
    f__added = Add(f__variances, f__squared)
    f__variance = ReduceMean(f__added) axes=[2]
    f__raised = Add(f__variance, f__epsilon)
    f__deviation = Sqrt(f__raised)
    f__scale = Reshape(scale, f__shape_1)
    f__bias = Reshape(bias, f__shape_1)
    f__gamma = Reshape(gamma, f__shape_2)
    f__scales = Mul(f__scale, f__gamma)
    f__biases = Mul(f__bias, f__gamma)
    f__beta = Reshape(beta, f__shape_2)
    f__base = Add(f__biases, f__beta)
    f__factor = Div(f__scales, f__deviation)
    f__taken = Mul(f__mean, f__factor)
    f__summand = Sub(f__base, f__taken)
    f__factors = Reshape(f__factor, f__shape_3)
    f__summands = Reshape(f__summand, f__shape_3)  # over x[0:1, 0:4, 0:6, 0:2]
    x.2 = Slice(x, zero, two, two) __tile=[1]  # x[0:1, 0:4, 0:2, 0:2]
    y.0__scaled = Mul(x.2, f__factors)
    y.0 = Add(y.0__scaled, f__summands)  # y[0:1, 0:4, 0:2, 0:2]
    y.1__scaled = Mul(x.1, f__factors)
    y.1 = Add(y.1__scaled, f__summands)  # y[0:1, 0:4, 2:6, 0:2]
    y = Concat(y.0, y.1) axis=[2]  # y[0:1, 0:4, 0:6, 0:2]
    ");
    // It imports, and all shapes are known.
    let again = OnnxModel::from_bytes(&written.write_to_bytes().unwrap(), None, &ImportOptions::default()).unwrap();
    let unknown = again
        .graph()
        .tensors
        .iter()
        .find(|tensor| tensor.ty.known_shape().is_none());
    assert_eq!(unknown, None);
}

#[test]
fn axes_are_operands_where_the_operators_say_so() {
    let axes = |version| {
        let model = group_norm(version);
        let written = export(&model, TWO_TILES).unwrap();
        assert!(open(&written).is_ok());
        let reductions = written
            .graph
            .node
            .iter()
            .filter(|node| node.op_type.starts_with("Reduce"));
        let has_operand = |node: &NodeProto| node.input.len() == 2 && node.attribute.is_empty();
        reductions
            .map(|node| (node.op_type.clone(), has_operand(node)))
            .collect::<std::collections::BTreeMap<String, bool>>()
    };
    let of = |mean, sum, squares| {
        let all = [("ReduceMean", mean), ("ReduceSum", sum), ("ReduceSumSquare", squares)];
        all.map(|(name, is_operand)| (name.to_owned(), is_operand)).into()
    };
    assert_eq!(axes(11), of(false, false, false));
    assert_eq!(axes(13), of(false, true, false));
    assert_eq!(axes(18), of(true, true, true));
    assert_eq!(axes(22), of(true, true, true));
}

#[test]
fn models_of_old_operators_are_refused() {
    let error = export(&group_norm(10), TWO_TILES).unwrap_err();
    insta::assert_snapshot!(error, @"`m.0`: what runs in two passes needs version 11 of ONNX's operators, the model has 10");
}

#[test]
fn only_what_a_normalization_replaces_may_be_missing() {
    let mut model = group_norm(17);
    let main = model.graph.mut_or_insert_default();
    main.node
        .push(node("RandomUniformLike", &["x"], &["z"]).named("random"));
    let error = export(&model, TWO_TILES).unwrap_err();
    insta::assert_snapshot!(error, @"cannot write op `random`: the rewritten graph has lost it");
}

/// One sum over a plain norm of three axes in half precision: both values are read side by side where one image is cut out of them.
const HALVES: &str = r#"graph "g" {
  input %x : f16[2, 3, 5]
  const %scale : f16[3]
  const %bias : f16[3]
  const %zero : i64[1] values [0]
  const %one : i64[1] values [1]
  %m.0 : f32[2, 3, 1, 2] part over x[0:2, 0:3, 0:5] = compute @m.0 com.remat.streamed::Moments(%x)
  %m : f32[2, 3, 1, 2] part over x[0:2, 0:3, 0:5] = compute @m.all com.remat.streamed::CombineMoments(%m.0) {counts = [5]}
  %f : f32[2, 3, 1, 2] part over x[0:2, 0:3, 0:5] = compute @f com.remat.streamed::Normalizer(%m, %scale, %bias) {count = 5, epsilon = 1e-5, groups = 3}
  %x.0 : f16[1, 3, 5] part of x[0:1, 0:3, 0:5] = compute @x.0 Slice(%x, %zero, %one, %zero)
  %f.0 : f32[1, 3, 1, 2] part over x[0:1, 0:3, 0:5] = compute @f.0 Slice(%f, %zero, %one, %zero)
  %y.0 : f16[1, 3, 5] part of y[0:1, 0:3, 0:5] = compute @y.0 com.remat.streamed::Normalize(%x.0, %f.0)
  %y.1 : f16[2, 3, 5] part of y[0:2, 0:3, 0:5] = compute @y.1 com.remat.streamed::Normalize(%x, %f)
  %y : f16[2, 3, 5] part of y[0:2, 0:3, 0:5] = compute @y Concat(%y.1) {axis = 2}
  output %y
}
"#;

#[test]
fn halves_are_computed_in_single_precision() {
    let nodes = vec![node("InstanceNormalization", &["x", "scale", "bias"], &["y"]).named("norm")];
    let mut main = graph(&[("x", tensor_type(FLOAT16, "2 3 5"))], nodes, &["y"]);
    main.initializer = vec![tensor("scale", FLOAT16, &[3]), tensor("bias", FLOAT16, &[3])];
    for vector in &mut main.initializer {
        vector.int32_data = vec![0x3c00; 3];
    }
    let mut model = model(main);
    model.opset_import = vec![opset("", 21)];
    let written = export(&model, HALVES).unwrap();
    insta::assert_snapshot!(shown(&model, &written), @"
    const zero [1]
    const one [1]
    const m.0__axes [1]
    const m.0__shape [4]
    const f__count []
    const f__epsilon []
    const f__shape [3]
    const y.0__shape [3]
    m.0__wide = Cast(x) to=[1] __tile=[0]
    m.0__mean_of_rows = ReduceMean(m.0__wide, m.0__axes)
    m.0__apart = Sub(m.0__wide, m.0__mean_of_rows)
    m.0__squares_of_rows = ReduceSumSquare(m.0__apart, m.0__axes)
    m.0__means = Reshape(m.0__mean_of_rows, m.0__shape)
    m.0__sums = Reshape(m.0__squares_of_rows, m.0__shape)  # over x[0:2, 0:3, 0:5]
    f__variance = Div(m.0__sums, f__count)
    f__raised = Add(f__variance, f__epsilon)
    f__deviation = Sqrt(f__raised)
    f__wide = Cast(scale) to=[1]
    f__scale = Reshape(f__wide, f__shape)
    f__wide_1 = Cast(bias) to=[1]
    f__bias = Reshape(f__wide_1, f__shape)
    f__factor = Div(f__scale, f__deviation)
    f__taken = Mul(m.0__means, f__factor)
    f__summand = Sub(f__bias, f__taken)
    f = Concat(f__factor, f__summand) axis=[3]  # over x[0:2, 0:3, 0:5]
    x.0 = Slice(x, zero, one, zero)  # x[0:1, 0:3, 0:5]
    f.0 = Slice(f, zero, one, zero)  # over x[0:1, 0:3, 0:5]
    f.0__first, f.0__second = Split(f.0) axis=[3] num_outputs=[2]
    y.0__aligned = Reshape(f.0__first, y.0__shape)
    y.0__aligned_1 = Reshape(f.0__second, y.0__shape)
    y.0__wide = Cast(x.0) to=[1]
    y.0__scaled = Mul(y.0__wide, y.0__aligned)
    y.0__moved = Add(y.0__scaled, y.0__aligned_1)
    y.0 = Cast(y.0__moved) to=[10]  # y[0:1, 0:3, 0:5]
    y.1__aligned = Reshape(f__factor, y.0__shape)
    y.1__aligned_1 = Reshape(f__summand, y.0__shape)
    y.1__wide = Cast(x) to=[1] __tile=[1]
    y.1__scaled = Mul(y.1__wide, y.1__aligned)
    y.1__moved = Add(y.1__scaled, y.1__aligned_1)
    y.1 = Cast(y.1__moved) to=[10]  # y[0:2, 0:3, 0:5]
    y = Concat(y.1) axis=[2]  # y[0:2, 0:3, 0:5]
    ");
}

/// What a softmax weighs, of two tiles.
const WEIGHED: &str = r#"graph "g" {
  input %x : f32[2, 4]
  input %v : f32[4, 3]
  const %zero : i64[1] values [0]
  const %one : i64[1] values [1]
  const %two : i64[1] values [2]
  const %four : i64[1] values [4]
  %x.0 : f32[2, 2] part of x[0:2, 0:2] = compute @x.0 Slice(%x, %zero, %two, %one)
  %v.0 : f32[2, 3] part of v[0:2, 0:3] = compute @v.0 Slice(%v, %zero, %two, %zero)
  %m.0 : f32[2, 5] part over x[0:2, 0:2] = compute @m.0 com.remat.streamed::Weigh(%x.0, %v.0) {axis = 1}
  %x.1 : f32[2, 2] part of x[0:2, 2:4] = compute @x.1 Slice(%x, %two, %four, %one)
  %v.1 : f32[2, 3] part of v[2:4, 0:3] = compute @v.1 Slice(%v, %two, %four, %zero)
  %m.1 : f32[2, 5] part over x[0:2, 2:4] = compute @m.1 com.remat.streamed::Weigh(%x.1, %v.1) {axis = 1}
  %m : f32[2, 5] part over x[0:2, 0:4] = compute @m com.remat.streamed::CombineExponentials(%m.0, %m.1)
  %y : f32[2, 3] part of y[0:2, 0:3] = compute @y com.remat.streamed::Weighed(%m)
  output %y
}
"#;

#[test]
fn exponentials_of_parts_are_made_those_of_one_maximum() {
    let nodes = vec![
        node("Softmax", &["x"], &["p"]).named("softmax"),
        node("MatMul", &["p", "v"], &["y"]).named("product"),
    ];
    let inputs = [("x", tensor_type(FLOAT, "2 4")), ("v", tensor_type(FLOAT, "4 3"))];
    let mut model = model(graph(&inputs, nodes, &["y"]));
    model.opset_import = vec![opset("", 17)];
    let written = export(&model, WEIGHED).unwrap();
    insta::assert_snapshot!(shown(&model, &written), @"
    const zero [1]
    const one [1]
    const two [1]
    const four [1]
    const m.0__least []
    const m.0__axes [1]
    x.0 = Slice(x, zero, two, one)  # x[0:2, 0:2]
    v.0 = Slice(v, zero, two, zero)  # v[0:2, 0:3]
    m.0__most = ReduceMax(x.0) axes=[1]
    m.0__finite = Max(m.0__most, m.0__least)
    m.0__apart = Sub(x.0, m.0__finite)
    m.0__powers = Exp(m.0__apart)
    m.0__sum = ReduceSum(m.0__powers, m.0__axes)
    m.0__weighed = MatMul(m.0__powers, v.0)  # over x[0:2, 0:2]
    x.1 = Slice(x, two, four, one)  # x[0:2, 2:4]
    v.1 = Slice(v, two, four, zero)  # v[2:4, 0:3]
    m.1__most = ReduceMax(x.1) axes=[1]
    m.1__finite = Max(m.1__most, m.0__least)
    m.1__apart = Sub(x.1, m.1__finite)
    m.1__powers = Exp(m.1__apart)
    m.1__sum = ReduceSum(m.1__powers, m.0__axes)
    m.1__weighed = MatMul(m.1__powers, v.1)  # over x[0:2, 2:4]
    m__most = Max(m.0__finite, m.1__finite)
    m__apart = Sub(m.0__finite, m__most)
    m__scale = Exp(m__apart)
    m__scaled = Mul(m.0__sum, m__scale)
    m__scaled_1 = Mul(m.0__weighed, m__scale)
    m__apart_1 = Sub(m.1__finite, m__most)
    m__scale_1 = Exp(m__apart_1)
    m__scaled_2 = Mul(m.1__sum, m__scale_1)
    m__scaled_3 = Mul(m.1__weighed, m__scale_1)
    m__sum = Sum(m__scaled, m__scaled_2)
    m__sum_1 = Sum(m__scaled_1, m__scaled_3)  # over x[0:2, 0:4]
    y = Div(m__sum_1, m__sum)  # y[0:2, 0:3]
    ");
}

const SUMS: &str = r#"graph "g" {
  input %x : f32[5, 4]
  const %zero : i64[1] values [0]
  const %two : i64[1] values [2]
  const %five : i64[1] values [5]
  %x.0 : f32[2, 4] part of x[0:2, 0:4] = compute @x.0 Slice(%x, %zero, %two, %zero)
  %a.0 : f32[1, 4] part over x[0:2, 0:4] = compute @a.0 ReduceMean(%x.0) {axes = [0]} source 0
  %b.0 : f32[1, 4] part over x[0:2, 0:4] = compute @b.0 ReduceMax(%x.0) {axes = [0]} source 1
  %x.1 : f32[3, 4] part of x[2:5, 0:4] = compute @x.1 Slice(%x, %two, %five, %zero)
  %a.1 : f32[1, 4] part over x[2:5, 0:4] = compute @a.1 ReduceMean(%x.1) {axes = [0]} source 0
  %b.1 : f32[1, 4] part over x[2:5, 0:4] = compute @b.1 ReduceMax(%x.1) {axes = [0]} source 1
  %a : f32[1, 4] part of a[0:1, 0:4] = compute @a com.remat.streamed::CombineMeans(%a.0, %a.1) {counts = [COUNTS]}
  %b : f32[1, 4] part of b[0:1, 0:4] = compute @b Max(%b.0, %b.1)
  output %a
  output %b
}
"#;

fn sums() -> ModelProto {
    let nodes = vec![
        node("ReduceMean", &["x"], &["a"]).named("mean").ints("axes", &[0]),
        node("ReduceMax", &["x"], &["b"]).named("max").ints("axes", &[0]),
    ];
    model(graph(&[("x", tensor_type(FLOAT, "5 4"))], nodes, &["a", "b"]))
}

#[test]
fn what_parts_give_is_put_together() {
    let written = export(&sums(), &SUMS.replace("COUNTS", "2, 3")).unwrap();
    insta::assert_snapshot!(shown(&sums(), &written), @"
    const zero [1]
    const two [1]
    const five [1]
    const a__share []
    const a__share_1 []
    x.0 = Slice(x, zero, two, zero)  # x[0:2, 0:4]
    a.0 = ReduceMean(x.0) axes=[0]  # over x[0:2, 0:4]
    b.0 = ReduceMax(x.0) axes=[0]  # over x[0:2, 0:4]
    x.1 = Slice(x, two, five, zero)  # x[2:5, 0:4]
    a.1 = ReduceMean(x.1) axes=[0]  # over x[2:5, 0:4]
    b.1 = ReduceMax(x.1) axes=[0]  # over x[2:5, 0:4]
    a__weighted = Mul(a.0, a__share)
    a__weighted_1 = Mul(a.1, a__share_1)
    a = Sum(a__weighted, a__weighted_1)  # a[0:1, 0:4]
    b = Max(b.0, b.1)  # b[0:1, 0:4]
    ");
    let even = export(&sums(), &SUMS.replace("COUNTS", "2, 2")).unwrap();
    assert!(
        even.graph
            .node
            .iter()
            .any(|node| node.op_type == "Mean" && node.output == ["a"])
    );
    for wrong in ["2", "2, 0", "2, 3, 4"] {
        let error = export(&sums(), &SUMS.replace("COUNTS", wrong)).unwrap_err().to_string();
        assert_eq!(error, "`a`: its counts are not one above zero for each operand");
    }
}
