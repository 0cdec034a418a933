//! Every rule against the reference interpreter: what the checker accepts computes the rows that it states, and what is changed is rejected or
//! computes them still.

use remat_ir::{
    Attribute, ElementType, Graph, GraphBuilder, OpId, OpSpec, Part, StorageClass, Tensor, TensorId, ValueType,
};
use remat_testing::{Array, evaluate};
use remat_verify::Code;
use rustc_hash::FxHashMap;

use super::check_fission;
use super::rules::ways;
use super::site::{Need, Site, Way, whole};
use super::values::Rows;

/// One op each, with operands before a bar and the result after it; how many of a hundred boxes have a rule at least.
const CASES: &[(&str, usize)] = &[
    (
        "%x : f32[6, 5], %w : f32[5, 7] | f32[6, 7] = linalg::matmul(%x, %w, _) {extents = [6, 7, 5], map0 = [1, 0, 0, 0, 0, 0, 1, 0], map1 = [0, 0, 1, 0, 0, 1, 0, 0], result_map = [1, 0, 0, 0, 0, 1, 0, 0], operations = 420}",
        99,
    ),
    (
        "%x : f32[1, 11, 8, 2], %w : f32[3, 2, 2, 3] | f32[1, 5, 6, 3] = linalg::conv_2d_nhwc_hwcf(%x, %w, _) {extents = [1, 5, 6, 3, 3, 2, 2], map0 = [1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], map1 = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0], result_map = [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]}",
        99,
    ),
    (
        "%x : f32[4, 3, 5], %b : f32[5] | f32[5, 4] = linalg::generic(%x, %b, _) {extents = [5, 4, 3], map0 = [0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0], map1 = [1, 0, 0, 0], result_map = [1, 0, 0, 0, 0, 1, 0, 0]}",
        99,
    ),
    (
        "%x : f32[5, 4, 3] | f32[5, 4, 3] = linalg::softmax(%x, _) {dimension = 1, extents = [5, 4, 3], map0 = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], result_map = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]}",
        30,
    ),
    (
        "%x : f32[1, 6, 5, 2] | f32[1, 9, 5, 4] = tensor::pad(%x) {static_low = [0, 1, 0, 2], static_high = [0, 2, 0, 0]}",
        40,
    ),
    (
        "%x : f32[1, 2, 9, 5], %b : f32[2, 1, 5] | f32[1, 2, 9, 5] = Add(%x, %b)",
        99,
    ),
    (
        "%x : f32[3, 4], %c : f32[1, 4], %z : f32[] | f32[3, 4] = Where(%x, %c, %z)",
        99,
    ),
    (
        "%x : f32[2, 2, 9, 7], %w : f32[3, 2, 3, 3], %b : f32[3] | f32[2, 3, 9, 7] = Conv(%x, %w, %b) {pads = [1, 1, 1, 1]}",
        99,
    ),
    (
        "%x : f32[1, 2, 12, 9], %w : f32[3, 2, 3, 2] | f32[1, 3, 5, 5] = Conv(%x, %w) {pads = [1, 0, 0, 1], strides = [2, 2], dilations = [2, 1]}",
        99,
    ),
    (
        "%x : f32[1, 4, 6, 6], %w : f32[4, 1, 3, 3] | f32[1, 4, 4, 4] = Conv(%x, %w) {group = 4, auto_pad = \"VALID\"}",
        99,
    ),
    (
        "%x : f32[1, 4, 6, 3], %w : f32[6, 2, 2, 1] | f32[1, 6, 5, 3] = Conv(%x, %w) {group = 2}",
        30,
    ),
    (
        "%x : f32[1, 2, 9], %w : f32[3, 2, 3] | f32[1, 3, 9] = Conv(%x, %w) {pads = [1, 1]}",
        99,
    ),
    (
        "%x : f32[1, 2, 8, 8], %w : f32[2, 2, 1, 1], %b : f32[2], %z : f32[1, 2, 8, 8] | f32[1, 2, 8, 8] = com.microsoft::FusedConv(%x, %w, %b, %z) {activation = \"Relu\"}",
        99,
    ),
    (
        "%x : f32[1, 3, 9, 9] | f32[1, 3, 5, 5] = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}",
        99,
    ),
    (
        "%x : f32[1, 3, 10, 9] | f32[1, 3, 5, 4] = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 9] | f32[1, 2, 9, 9] = AveragePool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 9] | f32[1, 2, 9, 9] = AveragePool(%x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1}",
        99,
    ),
    (
        "%x : f32[1, 2, 10, 9] | f32[1, 2, 5, 4] = AveragePool(%x) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1}",
        5,
    ),
    (
        "%x : f32[1, 2, 7, 5], %w : f32[2, 3, 3, 3], %b : f32[3] | f32[1, 3, 14, 10] = ConvTranspose(%x, %w, %b) {strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]}",
        80,
    ),
    (
        "%x : f32[1, 2, 6, 6], %w : f32[2, 2, 2, 2] | f32[1, 2, 12, 12] = ConvTranspose(%x, %w) {strides = [2, 2]}",
        90,
    ),
    (
        "%x : f32[1, 1, 5, 4], %w : f32[1, 2, 4, 3] | f32[1, 2, 15, 12] = ConvTranspose(%x, %w) {strides = [3, 3], dilations = [1, 2], pads = [1, 1, 0, 1]}",
        20,
    ),
    (
        "%x : f32[1, 2, 5, 4], %s : f32[4] | f32[1, 2, 10, 8] = Resize(%x, _, %s) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"}",
        60,
    ),
    (
        "%x : f32[1, 2, 6, 5], %s : f32[4] | f32[1, 2, 12, 10] = Resize(%x, _, %s) {mode = \"linear\"}",
        30,
    ),
    (
        "%x : f32[1, 2, 6, 5], %s : i64[4] = [1, 2, 24, 10] | f32[1, 2, 24, 10] = Resize(%x, _, _, %s) {mode = \"linear\", coordinate_transformation_mode = \"asymmetric\"}",
        30,
    ),
    (
        "%x : f32[1, 2, 6, 5], %s : i64[4] = [1, 2, 18, 5] | f32[1, 2, 18, 5] = Resize(%x, _, _, %s)",
        90,
    ),
    ("%x : f32[2, 5, 4], %y : f32[4, 6] | f32[2, 5, 6] = MatMul(%x, %y)", 99),
    (
        "%x : f32[2, 1, 4, 5], %y : f32[3, 6, 4] | f32[2, 3, 5, 6] = com.microsoft::FusedMatMul(%x, %y) {transA = 1, transB = 1}",
        99,
    ),
    (
        "%x : f32[5, 4], %y : f32[6, 4], %c : f32[6] | f32[5, 6] = Gemm(%x, %y, %c) {transB = 1}",
        99,
    ),
    (
        "%x : f32[4, 5], %y : f32[4, 6], %c : f32[5, 1] | f32[5, 6] = Gemm(%x, %y, %c) {transA = 1}",
        99,
    ),
    ("%x : f32[3, 5, 4] | f32[3, 5, 4] = Softmax(%x) {axis = -1}", 20),
    (
        "%x : f32[3, 5, 4], %s : f32[4], %b : f32[4] | f32[3, 5, 4] = LayerNormalization(%x, %s, %b)",
        20,
    ),
    (
        "%x : f32[3, 5, 4], %k : f32[5, 4], %s : f32[4] | f32[3, 5, 4] = com.microsoft::SkipLayerNormalization(%x, %k, %s)",
        20,
    ),
    (
        "%x : f32[3, 5, 4], %s : f32[5], %b : f32[5] | f32[3, 5, 4] = InstanceNormalization(%x, %s, %b)",
        20,
    ),
    (
        "%x : f32[4, 4, 3], %s : f32[4], %b : f32[4] | f32[4, 4, 3] = GroupNormalization(%x, %s, %b) {num_groups = 2}",
        5,
    ),
    (
        "%x : f32[2, 4, 3], %s : f32[4], %b : f32[4], %m : f32[4], %v : f32[4] | f32[2, 4, 3] = BatchNormalization(%x, %s, %b, %m, %v)",
        99,
    ),
    ("%x : f32[3, 5, 4, 2] | f32[3, 5, 1, 1] = GlobalAveragePool(%x)", 99),
    (
        "%x : f32[3, 5, 4], %a : i64[1] = [-2] | f32[3, 4] = ReduceMean(%x, %a) {keepdims = 0}",
        99,
    ),
    ("%x : f32[3, 5, 4] | f32[3, 1, 4] = ReduceMax(%x) {axes = [1]}", 99),
    (
        "%x : f32[3, 5, 4], %y : f32[3, 2, 4] | f32[3, 7, 4] = Concat(%x, %y) {axis = 1}",
        20,
    ),
    (
        "%x : f32[9, 6], %s : i64[2] = [1, -5], %e : i64[2] = [8, 9223372036854775807], %a : i64[2] = [0, -1], %t : i64[2] = [2, 1] | f32[4, 5] = Slice(%x, %s, %e, %a, %t)",
        99,
    ),
    (
        "%x : f32[5, 6], %p : i64[4] = [2, 0, 1, 3] | f32[8, 9] = Pad(%x, %p)",
        60,
    ),
    (
        "%x : f32[5, 6], %p : i64[2] = [2, 3], %v : f32[], %a : i64[1] = [-1] | f32[5, 11] = Pad(%x, %p, %v, %a)",
        60,
    ),
    (
        "%x : f32[3, 5, 4] | f32[4, 3, 5] = Transpose(%x) {perm = [2, 0, 1]}",
        99,
    ),
    (
        "%x : f32[2, 12, 3], %s : i64[4] = [0, 3, -1, 3] | f32[2, 3, 4, 3] = Reshape(%x, %s)",
        20,
    ),
    (
        "%x : f32[2, 3, 4, 3], %s : i64[3] = [2, 12, 3] | f32[2, 12, 3] = Reshape(%x, %s)",
        20,
    ),
    ("%x : f32[6, 2, 3] | f32[6, 6] = Flatten(%x)", 20),
    ("%x : f32[5, 1, 3], %a : i64[1] = [1] | f32[5, 3] = Squeeze(%x, %a)", 99),
    (
        "%x : f32[5, 3], %a : i64[2] = [0, 2] | f32[1, 5, 1, 3] = Unsqueeze(%x, %a)",
        99,
    ),
    (
        "%x : f32[7, 3], %i : i64[5] = [3, -1, 2, 2, 5] | f32[5, 3] = Gather(%x, %i)",
        99,
    ),
    (
        "%x : f32[3, 7, 2], %i : i64[2, 3] | f32[3, 2, 3, 2] = Gather(%x, %i) {axis = 1}",
        99,
    ),
    (
        "%x : f32[7, 4, 3], %i : i64[2, 5, 2] | f32[2, 5, 3] = GatherND(%x, %i)",
        40,
    ),
    (
        "%x : f32[6, 7, 4], %i : i64[5, 2, 4] | f32[5, 2, 4] = GatherElements(%x, %i) {axis = 1}",
        20,
    ),
    (
        "%x : f32[5, 7, 4], %i : i64[5, 2, 3], %u : f32[5, 2, 3] | f32[5, 7, 4] = ScatterElements(%x, %i, %u) {axis = 1}",
        4,
    ),
    (
        "%x : f32[2, 5, 4], %b : f32[4], %s : f32[2, 5, 4] | f32[2, 5, 4] = com.microsoft::BiasAdd(%x, %b, %s)",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 8], %w : f32[3, 2, 3, 3] | f32[1, 3, 5, 4] = Conv(%x, %w) {auto_pad = \"SAME_UPPER\", strides = [2, 2]}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 8], %w : f32[3, 2, 3, 2], %b : f32[3] | f32[1, 3, 9, 8] = Conv(%x, %w, %b) {auto_pad = \"SAME_LOWER\", dilations = [2, 1]}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 8] | f32[1, 2, 5, 4] = MaxPool(%x) {kernel_shape = [2, 3], strides = [2, 2], auto_pad = \"SAME_LOWER\"}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 8] | f32[1, 2, 5, 3] = AveragePool(%x) {kernel_shape = [3, 3], strides = [2, 3], auto_pad = \"SAME_UPPER\"}",
        99,
    ),
    (
        "%x : f32[2, 4, 3], %s : f32[4], %z : f32[4] | f32[2, 4, 3] = DequantizeLinear(%x, %s, %z) {axis = 1}",
        99,
    ),
    (
        "%x : f32[2, 4, 3], %s : f32[], %z : f32[1] | f32[2, 4, 3] = QuantizeLinear(%x, %s, %z)",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 7], %s : f32[], %z : f32[], %w : f32[3, 2, 3, 3], %v : f32[3], %u : f32[3], %t : f32[], %r0 : f32[], %b : f32[3] | f32[1, 3, 9, 7] = QLinearConv(%x, %s, %z, %w, %v, %u, %t, %r0, %b) {pads = [1, 1, 1, 1]}",
        99,
    ),
    (
        "%x : f32[1, 4, 9, 7], %s : f32[], %z : f32[], %w : f32[4, 1, 3, 3], %v : f32[], %u : f32[1], %t : f32[], %r0 : f32[] | f32[1, 4, 7, 5] = com.microsoft::QLinearConv(%x, %s, %z, %w, %v, %u, %t, %r0) {group = 4}",
        99,
    ),
    (
        "%x : f32[1, 2, 6, 5], %w : f32[3, 2, 1, 1], %z : f32[], %v : f32[3] | f32[1, 3, 6, 5] = ConvInteger(%x, %w, %z, %v)",
        99,
    ),
    (
        "%x : f32[2, 5, 4], %s : f32[], %z : f32[], %y : f32[4, 6], %v : f32[6], %u : f32[6], %t : f32[], %r0 : f32[] | f32[2, 5, 6] = QLinearMatMul(%x, %s, %z, %y, %v, %u, %t, %r0)",
        99,
    ),
    (
        "%x : f32[5, 4], %s : f32[5], %z : f32[5], %y : f32[4, 6], %v : f32[], %u : f32[], %t : f32[], %r0 : f32[] | f32[5, 6] = QLinearMatMul(%x, %s, %z, %y, %v, %u, %t, %r0)",
        10,
    ),
    (
        "%x : f32[2, 5, 4], %y : f32[2, 4, 6], %z : f32[], %u : f32[2, 1, 6] | f32[2, 5, 6] = MatMulInteger(%x, %y, %z, %u)",
        99,
    ),
    (
        "%x : f32[5, 4], %s : f32[], %z : f32[], %y : f32[6, 4], %v : f32[6], %u : f32[6], %c : f32[6], %t : f32[], %r0 : f32[] | f32[5, 6] = com.microsoft::QGemm(%x, %s, %z, %y, %v, %u, %c, %t, %r0) {transB = 1}",
        99,
    ),
    (
        "%x : f32[5, 4], %y : f32[4, 6], %s : f32[], %v : f32[6], %z : f32[], %u : f32[6], %b : f32[6] | f32[5, 6] = com.microsoft::MatMulIntegerToFloat(%x, %y, %s, %v, %z, %u, %b)",
        99,
    ),
    (
        "%x : f32[5, 4], %y : f32[4, 6], %v : f32[6], %u : f32[6], %b : f32[6] | f32[5, 6] = com.microsoft::DynamicQuantizeMatMul(%x, %y, %v, %u, %b)",
        10,
    ),
    (
        "%x : f32[2, 3, 4], %s : f32[], %z : f32[], %y : f32[3, 1], %v : f32[], %u : f32[], %t : f32[], %r0 : f32[] | f32[2, 3, 4] = com.microsoft::QLinearAdd(%x, %s, %z, %y, %v, %u, %t, %r0)",
        99,
    ),
    (
        "%x : f32[2, 3, 5, 4], %s : f32[], %z : f32[], %t : f32[], %r0 : f32[] | f32[2, 3, 1, 1] = com.microsoft::QLinearGlobalAveragePool(%x, %s, %z, %t, %r0) {channels_last = 0}",
        99,
    ),
    (
        "%x : f32[1, 2, 9, 9], %s : f32[], %z : f32[], %t : f32[], %r0 : f32[] | f32[1, 2, 9, 9] = com.microsoft::QLinearAveragePool(%x, %s, %z, %t, %r0) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}",
        99,
    ),
    (
        "%t : f32[], %r0 : f32[], %x : f32[3, 5, 4], %s : f32[], %z : f32[], %y : f32[3, 2, 4], %v : f32[], %u : f32[] | f32[3, 7, 4] = com.microsoft::QLinearConcat(%t, %r0, %x, %s, %z, %y, %v, %u) {axis = 1}",
        10,
    ),
    (
        "%x : f32[3, 5, 4], %s : f32[], %z : f32[], %t : f32[], %r0 : f32[] | f32[3, 5, 4] = com.microsoft::QLinearSoftmax(%x, %s, %z, %t, %r0) {axis = 1, opset = 13}",
        10,
    ),
    ("%x : f32[3, 5, 4] | f32[3, 5, 4] = Softmax(%x) {axis = 1}", 10),
    (
        "%x : f32[3, 5, 4] | f32[3, 5, 4] = LogSoftmax(%x) {axis = 1, flattens = 1}",
        10,
    ),
    ("%x : f32[3, 5, 4] | f32[3, 5, 4] = Softmax(%x) {flattens = 1}", 10),
    (
        "%x : f32[2, 6, 3], %s : f32[6], %b : f32[6] | f32[2, 6, 3] = GroupNormalization(%x, %s, %b) {num_groups = 3}",
        10,
    ),
    (
        "%x : f32[2, 6, 3], %s : f32[3], %b : f32[3] | f32[2, 6, 3] = GroupNormalization(%x, %s, %b) {num_groups = 3}",
        10,
    ),
    (
        "%x : f32[3, 1, 4], %s : i64[4] = [2, 1, 5, 1] | f32[2, 3, 5, 4] = Expand(%x, %s)",
        99,
    ),
    (
        "%x : f32[2, 3, 4], %s : i64[3] = [1, 2, 1] | f32[2, 6, 4] = Tile(%x, %s)",
        10,
    ),
    (
        "%x : f32[2, 8, 3, 4] | f32[2, 2, 6, 8] = DepthToSpace(%x) {blocksize = 2}",
        5,
    ),
    (
        "%x : f32[2, 8, 3, 4] | f32[2, 2, 6, 8] = DepthToSpace(%x) {blocksize = 2, mode = \"CRD\"}",
        10,
    ),
    (
        "%x : f32[2, 2, 6, 8] | f32[2, 8, 3, 4] = SpaceToDepth(%x) {blocksize = 2}",
        10,
    ),
    (
        "%x : f32[2, 3, 4], %y : f32[2, 5, 4] | f32[2, 3, 5] = Einsum(%x, %y) {equation = \"bqc,bkc->bqk\"}",
        99,
    ),
    (
        "%x : f32[2, 3, 4], %y : f32[4, 5] | f32[2, 3, 5] = Einsum(%x, %y) {equation = \"...i,ij\"}",
        99,
    ),
    (
        "%x : f32[2, 1, 3, 4], %y : f32[6, 4, 5] | f32[2, 6, 3, 5] = Einsum(%x, %y) {equation = \"...ij, ...jk -> ...ik\"}",
        99,
    ),
    (
        "%x : f32[4, 4, 3] | f32[4, 3] = Einsum(%x) {equation = \"iik->ik\"}",
        10,
    ),
    (
        "%x : f32[4, 3, 5], %y : f32[5], %z : f32[3] | f32[3, 4] = Einsum(%x, %y, %z) {equation = \"abc,c,b->ba\"}",
        99,
    ),
];

/// The graph of a case.
fn graph_of(case: &str) -> Graph {
    let (operands, result) = case.split_once(" | ").expect("a bar");
    let (ty, call) = result.split_once(" = ").expect("an op");
    let mut text = "graph \"g\" {\n".to_owned();
    for (index, operand) in operands.split(", %").enumerate() {
        let operand = operand.trim_start_matches('%');
        let line = match operand.split_once(" = ") {
            Some((operand, elements)) => format!("const %{operand} values {elements}\n"),
            None if index == 0 => format!("input %{operand}\n"),
            None => format!("const %{operand}\n"),
        };
        text.push_str(&line);
    }
    text.push_str(&format!("%r : {ty} = compute @op {call} source 0\noutput %r\n}}"));
    Graph::parse(&text).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// Numbers that look random.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }

    pub(super) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub(super) fn is(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// One or two axes cut, the others whole.
    fn part(&mut self, dims: &[u64]) -> Vec<Rows> {
        let mut part = whole(dims);
        for _ in 0..=self.below(2) {
            let axis = usize::try_from(self.below(dims.len() as u64)).unwrap_or(0);
            let start = self.below(dims[axis]);
            part[axis] = start..start + 1 + self.below(dims[axis] - start);
        }
        part
    }
}

/// Builds a graph that computes a box, and cuts it out where there are spare rows.
struct Builder<'a> {
    graph: &'a Graph,
    new: GraphBuilder,
    /// Tensors of the old graph in the new one.
    tensors: FxHashMap<TensorId, TensorId>,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut new = GraphBuilder::new("g");
        let mut tensors = FxHashMap::default();
        for (id, Tensor { name, ty, storage, .. }) in graph.tensors.iter_enumerated() {
            let made = match (graph.storages[*storage].class, graph.values.get(&id)) {
                (StorageClass::Input, _) => new.input(name, ty.clone()),
                (StorageClass::Constant, Some(elements)) => new.integers(name, ty.clone(), elements.clone()),
                (StorageClass::Constant, None) => new.constant(name, ty.clone()),
                (StorageClass::Intermediate, _) => continue,
            };
            tensors.insert(id, made.unwrap());
        }
        Self { graph, new, tensors }
    }

    fn integers(&mut self, name: &str, elements: Vec<i64>) -> TensorId {
        let ty = ValueType::tensor(ElementType::Int64, &[elements.len() as u64]);
        self.new.integers(name, ty, elements).unwrap()
    }

    /// The rows of a tensor, of which `from` is the first that it holds.
    fn slice(&mut self, data: TensorId, of: TensorId, from: &[u64], rows: &[Rows], name: &str) -> TensorId {
        let bound = |row: u64, from: u64| i64::try_from(row).unwrap() - i64::try_from(from).unwrap();
        let starts = rows
            .iter()
            .zip(from)
            .map(|(rows, &from)| bound(rows.start, from))
            .collect();
        let ends = rows
            .iter()
            .zip(from)
            .map(|(rows, &from)| bound(rows.end, from))
            .collect();
        let axes = (0..i64::try_from(rows.len()).unwrap()).collect();
        let bounds = [("starts", starts), ("ends", ends), ("axes", axes)];
        let bounds = bounds.map(|(what, elements)| self.integers(&format!("{name}.{what}"), elements));
        let was = &self.graph.tensors[of];
        let mut spec = OpSpec::new(name, "Slice").reads(data);
        spec.inputs.extend(bounds.map(Some));
        let part = Part {
            of: was.name.clone(),
            ranges: rows.to_vec(),
            spare: None,
            is_sum: false,
        };
        let ty = ValueType::tensor(was.ty.element().unwrap(), &part.dims().unwrap());
        let mut spec = spec.defines(name, ty);
        spec.parts = vec![Some(part)];
        self.new.op(spec).unwrap().1[0].unwrap()
    }

    fn tile(mut self, way: &Way<'_>, part: &[Rows]) -> Graph {
        let op = &self.graph.ops[OpId::new(0)];
        let mut spec = OpSpec::new("tile", &op.op_type);
        (spec.domain, spec.source) = (op.domain.clone(), op.source);
        for (position, (need, &operand)) in way.operands.iter().zip(&op.inputs).enumerate() {
            let made = match (need, operand) {
                (Need::Part(rows), Some(operand)) => {
                    let dims = self.graph.tensors[operand].ty.known_shape().unwrap();
                    let data = self.tensors[&operand];
                    Some(match *rows == whole(&dims) {
                        true => data,
                        false => self.slice(data, operand, &vec![0; dims.len()], rows, &format!("o{position}")),
                    })
                }
                (Need::Elements(right), _) => Some(self.integers(&format!("c{position}"), right.plain.clone())),
                _ => None,
            };
            spec.inputs.push(made);
        }
        spec.attributes.clone_from(&op.attributes);
        for (name, values) in &way.attributes {
            match values[0].clone() {
                Some(value) => spec.attributes.insert((*name).to_owned(), value),
                None => spec.attributes.remove(*name),
            };
        }
        let result = op.outputs[0].unwrap();
        let stated = Part {
            of: self.graph.tensors[result].name.clone(),
            ranges: part.to_vec(),
            spare: way.spare,
            is_sum: false,
        };
        let ty = ValueType::tensor(ElementType::Float32, &stated.dims().unwrap());
        let mut spec = spec.defines("r.0", ty);
        spec.parts = vec![Some(stated)];
        let mut made = self.new.op(spec).unwrap().1[0].unwrap();
        if let Some(spare) = way.spare {
            // Counted from the first row that the result has, which may lie before the first one of the tensor.
            let shifted: Vec<u64> = part.iter().map(|rows| rows.start).collect();
            let mut inside = part.to_vec();
            inside[spare.axis] = part[spare.axis].start + spare.before..part[spare.axis].end + spare.before;
            made = self.slice(made, result, &shifted, &inside, "cut");
            let mut graph = std::mem::take(&mut self.new).finish();
            let cut = graph.ops.last_mut().unwrap();
            cut.parts[0].as_mut().unwrap().ranges = part.to_vec();
            graph.outputs.push(made);
            return graph;
        }
        self.new.output(made);
        self.new.finish()
    }
}

/// Whether the checker finds nothing but that the graph lacks the output of the original.
fn is_accepted(original: &Graph, tiled: &Graph) -> bool {
    match check_fission(original, tiled) {
        Ok(()) => true,
        Err(rejection) => rejection.codes() == [Code::F011],
    }
}

/// Whether the only output of a graph has the elements that it states.
fn computes(original: &Array, tiled: &Graph) -> bool {
    let output = tiled.outputs[0];
    let op = &tiled.ops[tiled.tensors[output].producer.unwrap()];
    let part = op.parts[0].as_ref().unwrap();
    let found = evaluate(tiled).remove(&tiled.tensors[output].name).unwrap();
    found.data == original.part(&part.ranges).data
}

#[test]
fn every_rule_gives_the_rows_that_it_says() {
    let mut random = Random(1);
    for &(case, least) in CASES {
        let graph = graph_of(case);
        let whole_result = evaluate(&graph).remove("r").unwrap();
        let result = graph.ops[OpId::new(0)].outputs[0].unwrap();
        let out = graph.tensors[result].ty.known_shape().unwrap();
        let mut possible = 0;
        for _ in 0..100 {
            let part = random.part(&out);
            let site = Site {
                graph: &graph,
                op: &graph.ops[OpId::new(0)],
                out: out.clone(),
                part: &part,
            };
            let Ok(ways) = ways(&site) else { continue };
            possible += 1;
            for way in &ways {
                let tiled = Builder::new(&graph).tile(way, &part);
                if let Err(rejection) = check_fission(&graph, &tiled) {
                    assert_eq!(rejection.codes(), [Code::F011], "{case} {part:?}: {rejection}\n{tiled}");
                }
                assert!(
                    computes(&whole_result, &tiled),
                    "{case} {part:?}: other elements\n{tiled}"
                );
            }
        }
        assert!(possible >= least, "{case}: {possible} of 100 boxes have a rule");
    }
}

/// One thing in a graph changed: a number, an operand, what is stated.
fn changed(graph: &Graph, random: &mut Random) -> Graph {
    let mut graph = graph.clone();
    let way = if random.below(2) == 0 { 1 } else { -1 };
    let tile = OpId::new(usize::try_from(random.below(graph.ops.len() as u64)).unwrap());
    let moved = |number: &mut u64| *number = number.wrapping_add_signed(way);
    match random.below(6) {
        0 => {
            let at = random.below(graph.values.len() as u64);
            let Some(elements) = graph.values.values_mut().nth(usize::try_from(at).unwrap()) else {
                return graph;
            };
            let at = usize::try_from(random.below(elements.len() as u64)).unwrap();
            if let Some(element) = elements.get_mut(at) {
                *element = element.wrapping_add(way);
            }
        }
        1 => {
            let attributes = &mut graph.ops[tile].attributes;
            let at = random.below(attributes.len() as u64);
            match attributes.values_mut().nth(usize::try_from(at).unwrap()) {
                Some(Attribute::Int(value)) => *value += way,
                Some(Attribute::Ints(values)) => {
                    let at = usize::try_from(random.below(values.len() as u64)).unwrap();
                    values[at] += way;
                }
                _ => {}
            }
        }
        2 => {
            let ids: Vec<TensorId> = graph.tensors.keys().collect();
            let at = usize::try_from(random.below(graph.ops[tile].inputs.len() as u64)).unwrap();
            let other = ids[usize::try_from(random.below(ids.len() as u64)).unwrap()];
            if let Some(Some(operand)) = graph.ops[tile].inputs.get(at).copied()
                && graph.tensors[other].ty == graph.tensors[operand].ty
            {
                graph.ops[tile].inputs[at] = Some(other);
            }
        }
        3 => {
            let part = graph.ops[tile].parts[0].as_mut().unwrap();
            let axis = usize::try_from(random.below(part.ranges.len() as u64)).unwrap();
            moved(&mut part.ranges[axis].start);
            moved(&mut part.ranges[axis].end);
        }
        4 => {
            if let Some(spare) = &mut graph.ops[tile].parts[0].as_mut().unwrap().spare {
                moved(&mut spare.before);
                spare.after = spare.after.wrapping_add_signed(-way);
            }
        }
        _ => {
            let attributes = &mut graph.ops[tile].attributes;
            let at = usize::try_from(random.below(attributes.len() as u64)).unwrap();
            if let Some(name) = attributes.keys().nth(at).cloned() {
                attributes.remove(&name);
            }
        }
    }
    graph
}

#[test]
fn what_is_changed_is_rejected_or_computes_the_same() {
    let mut random = Random(2);
    let (mut rejected, mut harmless) = (0, 0);
    for &(case, _) in CASES {
        let graph = graph_of(case);
        let whole_result = evaluate(&graph).remove("r").unwrap();
        let result = graph.ops[OpId::new(0)].outputs[0].unwrap();
        let out = graph.tensors[result].ty.known_shape().unwrap();
        for _ in 0..40 {
            let part = random.part(&out);
            let site = Site {
                graph: &graph,
                op: &graph.ops[OpId::new(0)],
                out: out.clone(),
                part: &part,
            };
            let Ok(ways) = ways(&site) else { continue };
            let tiled = Builder::new(&graph).tile(&ways[0], &part);
            for _ in 0..10 {
                let other = changed(&tiled, &mut random);
                if other == tiled {
                    continue;
                }
                if is_accepted(&graph, &other) {
                    harmless += 1;
                    assert!(computes(&whole_result, &other), "{case}: other elements\n{other}");
                } else {
                    rejected += 1;
                }
            }
        }
    }
    assert!(
        rejected > 3000 && rejected > 10 * harmless,
        "{rejected} rejected, {harmless} harmless"
    );
}
