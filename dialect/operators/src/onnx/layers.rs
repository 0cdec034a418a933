//! Layers: convolutions, products, attention, normalization, pools, sums, and what works on images.

use remat_ir::ElementType as T;

use crate::columns::{
    AttentionLayout as A, Blocked as B, Combine as C, Effect, Element, Formula as F, ProductOperands, Split as S,
    Updates, Workspace as W,
};
use crate::onnx::onnx;
use crate::operator::Operator;

const MATMUL_INTEGER: S = S::QuantizedMatMul(ProductOperands {
    factors: [0, 1],
    by_row: &[2],
    by_column: &[3],
    scales_itself: false,
});

const QLINEAR_MATMUL: S = S::QuantizedMatMul(ProductOperands {
    factors: [0, 3],
    by_row: &[1, 2],
    by_column: &[4, 5],
    scales_itself: false,
});

#[rustfmt::skip]
pub(crate) const ROWS: &[Operator] = &[
    onnx("AffineGrid").cost(F::Elementwise(8)),
    onnx("ArgMax").split(S::Position { largest: true }).cost(F::Reduce(1)),
    onnx("ArgMin").split(S::Position { largest: false }).cost(F::Reduce(1)),
    onnx("Attention").cost(F::Attention(A::Separate { past: 4 })).slots(7, 4).workspace(W::Scores).pieces(4),
    onnx("AveragePool").split(S::Window).cost(F::AveragePool).blocked(B::Pool { global: false, averages: true }),
    onnx("BatchNormalization").split(S::ChannelScale).cost(F::Normalization(4)).effects(Effect::StatefulInTraining).updates(Updates::Operands(&[(3, 1), (4, 2)])).slots(0, 3).blocked(B::Normalization),
    onnx("Conv").split(S::Conv).cost(F::Conv { weight: 1 }).slots(3, 0).workspace(W::Conv).blocked(B::Convolution { fused: false }).takes_activation(),
    onnx("ConvInteger").split(S::ConvInteger).cost(F::Conv { weight: 1 })
        .shaped_as("Conv", &[0, 1], Element::Is(T::Int32)).slots(4, 0).workspace(W::ConvInteger),
    onnx("ConvTranspose").split(S::ConvTranspose).cost(F::ConvTranspose { weight: 1 }).slots(3, 0).workspace(W::ConvTranspose).packs(1),
    onnx("CumProd").cost(F::Reduce(1)),
    onnx("CumSum").split(S::Cumulate).cost(F::Reduce(1)),
    onnx("DeformConv").cost(F::Conv { weight: 1 }).shaped_as("Conv", &[0, 1], Element::Same).slots(5, 0),
    onnx("Dropout").cost(F::Elementwise(10)).effects(Effect::RandomInTraining).slots(3, 2).workspace(W::Mask),
    onnx("Einsum").split(S::Einsum).cost(F::Einsum).workspace(W::Einsum).pieces(2),
    onnx("GRU").cost(F::Recurrent { weights: [1, 2] }).slots(6, 2).workspace(W::Recurrent { gates: 3 }).pieces(4),
    onnx("Gemm").split(S::Gemm).cost(F::Gemm).slots(3, 0).takes_activation(),
    onnx("GlobalAveragePool").split(S::PerChannel).combine(C::Mean).cost(F::GlobalPool).blocked(B::Pool { global: true, averages: true }),
    onnx("GlobalLpPool").split(S::PerChannel).cost(F::GlobalPool),
    onnx("GlobalMaxPool").split(S::PerChannel).combine(C::Maximum).cost(F::GlobalPool).blocked(B::Pool { global: true, averages: false }),
    onnx("GridSample").cost(F::Elementwise(8)).workspace(W::GridSample),
    onnx("GroupNormalization").split(S::GroupNorm).cost(F::Normalization(8)).workspace(W::Results { copies: 2, from: 0 }),
    onnx("Hardmax").split(S::AcrossAxis).cost(F::Softmax(2)).workspace(W::OffTheLastAxis).pieces(2),
    onnx("InstanceNormalization").split(S::PerChannel).cost(F::Normalization(8)),
    onnx("LRN").cost(F::LocalNorm).workspace(W::LocalNorm).pieces(2),
    onnx("LSTM").cost(F::Recurrent { weights: [1, 2] }).slots(8, 3).workspace(W::Recurrent { gates: 4 }).pieces(4),
    onnx("LayerNormalization").split(S::LayerNorm).cost(F::Normalization(8)).slots(3, 3),
    onnx("LogSoftmax").split(S::LogSoftmax).cost(F::Softmax(20)).workspace(W::OffTheLastAxis).pieces(2).overwrites(0),
    onnx("LpNormalization").split(S::AcrossAxis).cost(F::Normalization(8)),
    onnx("LpPool").split(S::Window).cost(F::AveragePool),
    onnx("MatMul").split(S::MatMul).combine(C::Sum).cost(F::MatMul),
    onnx("MatMulInteger").split(MATMUL_INTEGER).cost(F::MatMul).shaped_as("MatMul", &[0, 1], Element::Is(T::Int32)).slots(4, 0),
    onnx("MaxPool").split(S::Window).cost(F::Pool).slots(0, 2).blocked(B::Pool { global: false, averages: false }),
    onnx("MaxRoiPool").cost(F::Elementwise(8)),
    onnx("MaxUnpool").cost(F::Transcendental(500)).shape_from(2).slots(3, 0),
    onnx("MeanVarianceNormalization").cost(F::Normalization(8)).workspace(W::Results { copies: 3, from: 0 }),
    onnx("NegativeLogLikelihoodLoss").cost(F::Reduce(1)).slots(3, 0),
    onnx("QLinearConv").split(S::QLinearConv).cost(F::Conv { weight: 3 })
        .shaped_as("Conv", &[0, 3], Element::OfOperand(7, T::Uint8)).slots(9, 0).workspace(W::QLinearConv),
    onnx("QLinearMatMul").split(QLINEAR_MATMUL).cost(F::MatMul).workspace(W::PerResult(4)),
    onnx("RMSNormalization").split(S::RootNorm).cost(F::Normalization(5)),
    onnx("RNN").cost(F::Recurrent { weights: [1, 2] }).slots(6, 2).workspace(W::Recurrent { gates: 1 }),
    onnx("ReduceL1").split(S::Sum).combine(C::Sum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceL2").split(S::Sum).cost(F::Reduce(2)).lists(&[1]).slots(2, 0),
    onnx("ReduceLogSum").split(S::Sum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceLogSumExp").split(S::Sum).cost(F::Softmax(20)).lists(&[1]).slots(2, 0),
    onnx("ReduceMax").split(S::Maximum).combine(C::Maximum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceMean").split(S::Sum).combine(C::Mean).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceMin").split(S::Maximum).combine(C::Minimum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceProd").split(S::Sum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceSum").split(S::Sum).combine(C::Sum).cost(F::Reduce(1)).lists(&[1]).slots(2, 0),
    onnx("ReduceSumSquare").split(S::Sum).combine(C::Sum).cost(F::Reduce(2)).lists(&[1]).slots(2, 0),
    onnx("Resize").split(S::Resize).cost(F::Elementwise(8)).shape_from(3).lists(&[2, 3]).slots(4, 0).workspace(W::Resize).blocked(B::Resize { asymmetric: false }),
    onnx("RoiAlign").cost(F::Elementwise(8)),
    onnx("SimplifiedLayerNormalization").split(S::RootNorm).cost(F::Normalization(5)),
    onnx("Softmax").split(S::Softmax).cost(F::Softmax(20)).workspace(W::OffTheLastAxis).pieces(2).overwrites(0),
    onnx("SoftmaxCrossEntropyLoss").cost(F::Softmax(20)).slots(3, 2).workspace(W::Operand(0)),
    onnx("Upsample").cost(F::Elementwise(8)).lists(&[1]).blocked(B::Resize { asymmetric: true }),
];
