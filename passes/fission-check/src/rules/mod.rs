//! The rules by operator: for a box of a result the boxes of the operands, with what changes in attributes and constants.

mod along;
mod blocks;
mod einsum;
mod gather;
mod loops;
mod movement;
mod product;
mod reshape;
mod resize;
mod transpose;
mod window;

use super::site::{NoWay, Site, Way};

/// Each element of the result depends on the elements at its place only; operands are broadcast.
const ELEMENTWISE: &str = "\
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast \
    CastLike Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid \
    HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu \
    Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh \
    ThresholdedRelu Where Xor";

/// The same in ONNX Runtime's own domain.
const ELEMENTWISE_MICROSOFT: &str = "\
    BiasAdd BiasGelu FastGelu Gelu QLinearAdd QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearWhere QuickGelu";

fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// Every right way to compute the box, at least one.
///
/// # Errors
/// Why there is none: the operator is not known, the box cuts what cannot be cut, or the graph does not know enough.
pub(super) fn ways<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    if site.part.iter().any(|rows| rows.start >= rows.end) {
        return Err("it has no rows".to_owned());
    }
    let one = |way: Result<Way<'a>, NoWay>| way.map(|way| vec![way]);
    match (&*site.op.domain, &*site.op.op_type) {
        ("", name) if is_in(ELEMENTWISE, name) => one(elementwise(site)),
        ("com.microsoft", name) if is_in(ELEMENTWISE_MICROSOFT, name) => one(elementwise(site)),
        ("" | "com.microsoft", "QuantizeLinear" | "DequantizeLinear") => one(along::quantized(site)),
        ("", "Conv") | ("com.microsoft", "FusedConv") => window::conv(site),
        ("", "QLinearConv" | "ConvInteger") | ("com.microsoft", "QLinearConv") => window::quantized_conv(site),
        ("", "MaxPool" | "AveragePool" | "LpPool") | ("com.microsoft", "QLinearAveragePool") => window::pool(site),
        ("", "ConvTranspose") => transpose::conv_transpose(site),
        ("", "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool")
        | ("com.microsoft", "QLinearGlobalAveragePool") => one(along::per_channel(site)),
        ("", "InstanceNormalization") => one(along::per_channel(site)),
        ("", "GroupNormalization") => one(along::group_norm(site)),
        ("com.microsoft", "GroupNorm") => one(along::per_image(site)),
        ("", "BatchNormalization") => one(along::batch_norm(site)),
        ("", "Softmax" | "LogSoftmax" | "Hardmax" | "LpNormalization" | "TopK")
        | ("com.microsoft", "QLinearSoftmax") => one(along::softmax(site)),
        ("", "ArgMax" | "ArgMin") => one(along::position(site)),
        ("", "CumSum") => one(along::cumulated(site)),
        ("", "LayerNormalization" | "SimplifiedLayerNormalization" | "RMSNormalization")
        | ("com.microsoft", "LayerNormalization" | "SimplifiedLayerNormalization") => one(along::layer_norm(site)),
        ("com.microsoft", "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization") => {
            one(along::skip_layer_norm(site))
        }
        ("", name) if name.starts_with("Reduce") => one(along::reduce(site)),
        ("", "Resize") => one(resize::resize(site)),
        ("", "MatMul") | ("com.microsoft", "FusedMatMul" | "FusedMatMulActivation" | "TransposeMatMul") => {
            one(product::matmul(site))
        }
        ("", "Gemm") | ("com.microsoft", "FusedGemm") => one(product::gemm(site)),
        ("", "QLinearMatMul" | "MatMulInteger")
        | ("com.microsoft", "QGemm" | "MatMulIntegerToFloat" | "DynamicQuantizeMatMul") => {
            one(product::quantized(site))
        }
        ("", "Einsum") => one(einsum::einsum(site)),
        ("com.microsoft", "QLinearConcat") => one(movement::quantized_concat(site)),
        ("", "Expand") => one(movement::expand(site)),
        ("", "Tile") => one(movement::tile(site)),
        ("", "DepthToSpace") => one(blocks::depth_to_space(site)),
        ("", "SpaceToDepth") => one(blocks::space_to_depth(site)),
        ("", "Concat") => one(movement::concat(site)),
        ("", "Split") => one(movement::split(site)),
        ("", "Slice") => movement::slice(site),
        ("", "Pad") => one(movement::pad(site)),
        ("", "Transpose") => one(movement::transpose(site)),
        ("", "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze") => reshape::ways(site),
        ("", "Gather") => gather::gather(site),
        ("", "GatherND") => one(gather::gather_nd(site)),
        ("", "GatherElements" | "ScatterElements") => one(gather::elements(site)),
        ("linalg", _) => one(loops::loops(site)),
        ("tensor", "pad") => one(loops::pad(site)),
        ("tensor", "expand_shape" | "collapse_shape") => one(reshape::reshape(site)),
        ("arith" | "math", _) => one(elementwise(site)),
        _ => Err("no rule is known".to_owned()),
    }
}

fn elementwise<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let mut way = site.way()?;
    for operand in (0..way.operands.len()).filter(|&operand| site.has(operand)) {
        way = way.with(operand, site.broadcast(operand)?);
    }
    Ok(way)
}
