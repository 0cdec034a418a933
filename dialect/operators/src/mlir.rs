//! Dialects of MLIR. What an operation of `linalg` or one with regions does, its loops say, not its name: the importer states it.
//!
//! Most operations declare their effects; what a row says instead counts first: onnx-mlir
//! marks `onnx.RandomNormal` as pure, and a second run of a kernel gives other bits.

use crate::columns::{Effect, Formula as F, Movement as M, Sharing, Split, Workspace as W};
use crate::operator::Operator;

const fn arith(name: &'static str) -> Operator {
    Operator::new("arith", name).effects(Effect::Declared)
}

/// JAX leaves functions that XLA has no operation for to this dialect; none of them has effects.
const fn chlo(name: &'static str) -> Operator {
    Operator::new("chlo", name).effects(Effect::DeclaredOrPure)
}

const fn linalg(name: &'static str) -> Operator {
    Operator::new("linalg", name).effects(Effect::Declared)
}

const fn math(name: &'static str) -> Operator {
    Operator::new("math", name)
        .effects(Effect::Declared)
        .split(Split::Elementwise)
}

const fn onnx_mlir(name: &'static str) -> Operator {
    Operator::new("", name).effects(Effect::Stateful)
}

const fn stablehlo(name: &'static str) -> Operator {
    Operator::new("stablehlo", name).effects(Effect::DeclaredOrPure)
}

const fn tensor(name: &'static str) -> Operator {
    Operator::new("tensor", name).effects(Effect::Declared)
}

const fn tosa(name: &'static str) -> Operator {
    Operator::new("tosa", name).effects(Effect::Declared)
}

#[rustfmt::skip]
pub(crate) const TOSA: &[Operator] = &[
    tosa("argmax").cost(F::Reduce(1)).workspace(W::Extremes),
    tosa("avg_pool2d").cost(F::AveragePool).workspace(W::PaddedAndWindowOrSums),
    tosa("clamp").cost(F::Elementwise(2)),
    tosa("concat").cost(F::Move(M::Copy)),
    tosa("cond_if").cost(F::Stated),
    tosa("conv2d").cost(F::Conv { weight: 1 }).workspace(W::Padded),
    tosa("conv3d").cost(F::Conv { weight: 1 }).workspace(W::Padded),
    tosa("cos").cost(F::Transcendental(200)),
    tosa("custom").cost(F::Bytes),
    tosa("depthwise_conv2d").cost(F::Depthwise { weight: 1 }).workspace(W::PaddedAndResult),
    tosa("erf").cost(F::Transcendental(64)),
    tosa("exp").cost(F::Transcendental(20)),
    tosa("fft2d").cost(F::Bytes),
    tosa("gather").cost(F::Move(M::Gather)),
    tosa("identity").cost(F::Move(M::Copy)).shares(Sharing::View),
    tosa("log").cost(F::Transcendental(200)),
    tosa("matmul").cost(F::MatMul),
    tosa("max_pool2d").cost(F::Pool).workspace(W::PaddedAndWindow),
    tosa("pad").cost(F::Move(M::Copy)),
    tosa("pow").cost(F::Transcendental(500)),
    tosa("reciprocal").cost(F::Elementwise(4)),
    tosa("reduce_all").cost(F::Reduce(1)),
    tosa("reduce_any").cost(F::Reduce(1)),
    tosa("reduce_max").cost(F::Reduce(1)),
    tosa("reduce_min").cost(F::Reduce(1)),
    tosa("reduce_prod").cost(F::Reduce(1)),
    tosa("reduce_product").cost(F::Reduce(1)),
    tosa("reduce_sum").cost(F::Reduce(1)),
    tosa("rescale").cost(F::Elementwise(4)),
    tosa("reshape").cost(F::Move(M::Copy)).shares(Sharing::View),
    tosa("resize").cost(F::Elementwise(8)),
    tosa("reverse").cost(F::Move(M::Transpose)),
    tosa("rfft2d").cost(F::Bytes),
    tosa("rsqrt").cost(F::Elementwise(4)),
    tosa("scatter").cost(F::Scatter),
    tosa("select").cost(F::Select),
    tosa("sigmoid").cost(F::Transcendental(32)),
    tosa("sin").cost(F::Transcendental(200)),
    tosa("slice").cost(F::Move(M::Copy)).shares(Sharing::View),
    tosa("table").cost(F::Move(M::Gather)),
    tosa("tanh").cost(F::Transcendental(32)),
    tosa("tile").cost(F::Move(M::Broadcast)),
    tosa("transpose").cost(F::Move(M::Transpose)),
    tosa("transpose_conv2d").cost(F::TransposedLastChannels { weight: 1 }),
    tosa("while_loop").cost(F::Stated),
];

#[rustfmt::skip]
pub(crate) const STABLEHLO: &[Operator] = &[
    stablehlo("after_all").stateful(),
    stablehlo("all_gather").stateful(),
    stablehlo("all_reduce").stateful(),
    stablehlo("all_to_all").stateful(),
    stablehlo("atan2").cost(F::Transcendental(200)),
    stablehlo("batch_norm_grad").cost(F::Normalization(4)),
    stablehlo("batch_norm_inference").cost(F::Normalization(4)),
    stablehlo("batch_norm_training").cost(F::Normalization(4)),
    stablehlo("bitcast_convert").cost(F::Move(M::Copy)),
    stablehlo("broadcast_in_dim").cost(F::Move(M::Broadcast)),
    stablehlo("case").cost(F::Stated),
    stablehlo("cbrt").cost(F::Transcendental(200)),
    stablehlo("cholesky").cost(F::Bytes),
    stablehlo("clamp").cost(F::Elementwise(2)),
    stablehlo("collective_broadcast").stateful(),
    stablehlo("collective_permute").stateful(),
    stablehlo("composite").cost(F::Bytes).stateful(),
    stablehlo("concatenate").cost(F::Move(M::Copy)),
    stablehlo("convolution").cost(F::ConvLastOutput { weight: 1 }),
    stablehlo("cosine").cost(F::Transcendental(200)),
    stablehlo("custom_call").cost(F::Bytes).stateful(),
    stablehlo("dot").cost(F::MatMul),
    stablehlo("dot_general").cost(F::DotGeneral),
    stablehlo("dynamic_broadcast_in_dim").cost(F::Move(M::Broadcast)),
    stablehlo("dynamic_conv").cost(F::ConvLastOutput { weight: 1 }),
    stablehlo("dynamic_gather").cost(F::Move(M::Gather)),
    stablehlo("dynamic_iota").cost(F::Move(M::Broadcast)),
    stablehlo("dynamic_pad").cost(F::Move(M::Copy)),
    stablehlo("dynamic_reshape").cost(F::Move(M::Copy)),
    stablehlo("dynamic_slice").cost(F::Move(M::Copy)),
    stablehlo("dynamic_update_slice").cost(F::Move(M::Copy)),
    stablehlo("exponential").cost(F::Transcendental(20)),
    stablehlo("exponential_minus_one").cost(F::Transcendental(20)),
    stablehlo("fft").cost(F::Bytes),
    stablehlo("fusion").cost(F::Stated),
    stablehlo("gather").cost(F::Move(M::Gather)),
    stablehlo("get_dimension_size").cost(F::Metadata),
    stablehlo("get_tuple_element").cost(F::Metadata),
    stablehlo("if").cost(F::Stated),
    stablehlo("infeed").stateful(),
    stablehlo("iota").cost(F::Move(M::Broadcast)),
    stablehlo("log").cost(F::Transcendental(200)),
    stablehlo("log_plus_one").cost(F::Transcendental(200)),
    stablehlo("logistic").cost(F::Transcendental(32)),
    stablehlo("map").cost(F::Stated),
    stablehlo("optimization_barrier").cost(F::Metadata).shares(Sharing::EachView),
    stablehlo("outfeed").stateful(),
    stablehlo("pad").cost(F::Move(M::Copy)),
    stablehlo("partition_id").stateful(),
    stablehlo("power").cost(F::Transcendental(500)),
    stablehlo("recv").stateful(),
    stablehlo("reduce").cost(F::Reduce(1)),
    stablehlo("reduce_scatter").stateful(),
    stablehlo("reduce_window").cost(F::Reduce(1)),
    stablehlo("remainder").cost(F::Transcendental(500)),
    stablehlo("replica_id").stateful(),
    stablehlo("reshape").cost(F::Move(M::Copy)).shares(Sharing::View),
    stablehlo("reverse").cost(F::Move(M::Transpose)),
    stablehlo("rng").cost(F::Elementwise(10)).random(),
    stablehlo("rng_bit_generator").cost(F::Elementwise(10)).random(),
    stablehlo("rsqrt").cost(F::Elementwise(4)),
    stablehlo("scatter").cost(F::Scatter),
    stablehlo("select").cost(F::Select),
    stablehlo("select_and_scatter").cost(F::Reduce(1)),
    stablehlo("send").stateful(),
    stablehlo("set_dimension_size").cost(F::Metadata),
    stablehlo("sine").cost(F::Transcendental(200)),
    stablehlo("slice").cost(F::Move(M::Copy)),
    stablehlo("sort").cost(F::Sort),
    stablehlo("sqrt").cost(F::Elementwise(4)),
    stablehlo("tan").cost(F::Transcendental(1500)),
    stablehlo("tanh").cost(F::Transcendental(32)),
    stablehlo("torch_index_select").cost(F::Move(M::Gather)),
    stablehlo("transpose").cost(F::Move(M::Transpose)),
    stablehlo("triangular_solve").cost(F::Bytes),
    stablehlo("tuple").cost(F::Metadata),
    stablehlo("while").cost(F::Stated),
];

/// What JAX writes beside `stablehlo`.
#[rustfmt::skip]
pub(crate) const CHLO: &[Operator] = &[
    chlo("acos").cost(F::Transcendental(200)),
    chlo("acosh").cost(F::Transcendental(200)),
    chlo("asin").cost(F::Transcendental(200)),
    chlo("asinh").cost(F::Transcendental(200)),
    chlo("atan").cost(F::Transcendental(200)),
    chlo("atanh").cost(F::Transcendental(200)),
    chlo("bessel_i1e").cost(F::Transcendental(200)),
    chlo("cosh").cost(F::Transcendental(1500)),
    chlo("digamma").cost(F::Transcendental(1500)),
    chlo("erf").cost(F::Transcendental(64)),
    chlo("erf_inv").cost(F::Transcendental(200)),
    chlo("erfc").cost(F::Transcendental(64)),
    chlo("lgamma").cost(F::Transcendental(1500)),
    chlo("polygamma").cost(F::Transcendental(1500)),
    chlo("ragged_dot").cost(F::Bytes),
    chlo("sinh").cost(F::Transcendental(1500)),
    chlo("tan").cost(F::Transcendental(1500)),
    chlo("top_k").cost(F::Sort),
    chlo("zeta").cost(F::Transcendental(1500)),
];

/// Dialects of MLIR itself, and what onnx-mlir adds to the operators of ONNX, which computes nothing.
#[rustfmt::skip]
pub(crate) const UPSTREAM: &[Operator] = &[
    onnx_mlir("EntryPoint"),
    onnx_mlir("Print"),
    onnx_mlir("Return"),
    onnx_mlir("Yield"),
    arith("select").cost(F::Select),
    linalg("pack").cost(F::Move(M::Transpose)),
    linalg("softmax").cost(F::Softmax(20)).split(Split::Loops),
    linalg("unpack").cost(F::Move(M::Transpose)),
    math("acos").cost(F::Transcendental(200)),
    math("acosh").cost(F::Transcendental(200)),
    math("asin").cost(F::Transcendental(200)),
    math("asinh").cost(F::Transcendental(200)),
    math("atan").cost(F::Transcendental(200)),
    math("atan2").cost(F::Transcendental(200)),
    math("atanh").cost(F::Transcendental(200)),
    math("cbrt").cost(F::Transcendental(200)),
    math("cos").cost(F::Transcendental(200)),
    math("cosh").cost(F::Transcendental(1500)),
    math("erf").cost(F::Transcendental(64)),
    math("erfc").cost(F::Transcendental(64)),
    math("exp").cost(F::Transcendental(20)),
    math("exp2").cost(F::Transcendental(20)),
    math("expm1").cost(F::Transcendental(20)),
    math("fpowi").cost(F::Transcendental(500)),
    math("ipowi").cost(F::Transcendental(500)),
    math("log").cost(F::Transcendental(200)),
    math("log10").cost(F::Transcendental(200)),
    math("log1p").cost(F::Transcendental(200)),
    math("log2").cost(F::Transcendental(200)),
    math("powf").cost(F::Transcendental(500)),
    math("rsqrt").cost(F::Elementwise(4)),
    math("sin").cost(F::Transcendental(200)),
    math("sincos").cost(F::Transcendental(200)),
    math("sinh").cost(F::Transcendental(1500)),
    math("sqrt").cost(F::Elementwise(4)),
    math("tan").cost(F::Transcendental(1500)),
    math("tanh").cost(F::Transcendental(32)),
    tensor("collapse_shape").cost(F::Move(M::Copy)).split(Split::Reshape),
    tensor("dim").cost(F::Metadata),
    tensor("empty").cost(F::Metadata),
    tensor("expand_shape").cost(F::Move(M::Copy)).split(Split::Reshape),
    tensor("gather").cost(F::Move(M::Gather)),
    tensor("generate").cost(F::Stated),
    tensor("pack").cost(F::Move(M::Transpose)),
    tensor("pad").cost(F::Move(M::Copy)).split(Split::PadByAttributes),
    tensor("rank").cost(F::Metadata),
    tensor("scatter").cost(F::Scatter),
    tensor("splat").cost(F::Move(M::Broadcast)),
    tensor("unpack").cost(F::Move(M::Transpose)),
];
