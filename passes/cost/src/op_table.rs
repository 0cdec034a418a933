//! The one table from op types to cost formulas: the ONNX op set up to version 24, ONNX Runtime's own ops, and dialects of MLIR.

mod mlir;

use crate::KernelClass;
use crate::formula::AttentionLayout;

/// How the work of an op type is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formula {
    /// Looks at shapes only.
    Metadata,
    /// Moves bytes.
    Move(KernelClass),
    /// Picks single elements.
    GatherElements,
    /// Copies operand 0, then overwrites what the indices name.
    Scatter,
    /// Cheap operations per element of the result.
    Elementwise(u32),
    /// Costly functions per element of the result, in operations.
    Transcendental(u32),
    /// Chooses between two operands, element by element.
    Select,
    /// One operation per element of the result and operand but the first.
    Variadic,
    /// Operations per element of operand 0, which shrinks.
    Reduce(u32),
    /// Operations per element of operand 0, which keeps its shape.
    Normalization(u32),
    /// Operations per element of operand 0.
    Softmax(u32),
    /// Sorts operand 0.
    Sort,
    /// One operation per element of the window `kernel_shape` and of the result: a maximum.
    Pool,
    /// The same for a mean.
    AveragePool,
    /// One operation per element of operand 0.
    GlobalPool,
    /// Normalization over `size` neighbouring channels.
    LocalNorm,
    /// Convolution of operand 0 with the weights.
    Conv {
        /// Operand that holds them.
        weight: usize,
    },
    /// Transposed convolution of operand 0 with the weights.
    ConvTranspose {
        /// Operand that holds them.
        weight: usize,
    },
    /// Convolution whose weights have the output channels innermost.
    ConvLastOutput {
        /// Operand that holds them.
        weight: usize,
    },
    /// Convolution of every channel by itself; the weights have the kernel outermost.
    Depthwise {
        /// Operand that holds them.
        weight: usize,
    },
    /// Transposed convolution whose weights have the input channels innermost.
    TransposedLastChannels {
        /// Operand that holds them.
        weight: usize,
    },
    /// Matrix product; operand 0 has the inner dimension last.
    MatMul,
    /// Matrix product with transposes and an addition.
    Gemm,
    /// Product and sum over index letters.
    Einsum,
    /// Attention in one kernel.
    Attention(AttentionLayout),
    /// Recurrent network over a sequence.
    Recurrent {
        /// Operands that hold the weights of inputs and of states.
        weights: [usize; 2],
    },
    /// As many operations as the attribute `operations` says, of the class that `loops` names.
    Stated,
    /// Nothing is known but the bytes.
    Bytes,
}

/// Which bytes of the operands an op looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// All.
    Everything,
    /// As many as it writes: it picks from its operands.
    AsMuchAsWritten,
    /// Those of operand 0; the others are shapes and indices.
    FirstOperand,
    /// None.
    Nothing,
}

impl Formula {
    /// Which bytes the op looks at.
    pub(crate) fn reads(self) -> Reads {
        match self {
            Self::Metadata => Reads::Nothing,
            Self::Move(KernelClass::Copy | KernelClass::Gather | KernelClass::Transpose) => Reads::AsMuchAsWritten,
            Self::Move(KernelClass::Broadcast) => Reads::FirstOperand,
            _ => Reads::Everything,
        }
    }
}

/// The formula of an op type; [`Formula::Bytes`] for what the table does not know.
pub(crate) fn formula(domain: &str, op_type: &str) -> Formula {
    match domain {
        "" | "ai.onnx" | "ai.onnx.preview.training" | "com.ms.internal.nhwc" => onnx(op_type),
        "com.microsoft" => microsoft(op_type),
        "com.microsoft.nchwc" => blocked(op_type),
        "ai.onnx.ml" => classic(op_type),
        dialect => mlir::formula(dialect, op_type).unwrap_or(Formula::Bytes),
    }
}

/// The default domain.
fn onnx(op_type: &str) -> Formula {
    use Formula as F;
    use KernelClass as K;
    match op_type {
        "Shape" | "Size" | "OptionalHasElement" | "SequenceEmpty" | "SequenceLength" => F::Metadata,
        // Where the importer found the result to be a view, the op never gets here.
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Optional" | "OptionalGetElement"
        | "SequenceConstruct" => F::Move(K::Copy),

        "Abs" | "Add" | "And" | "BitShift" | "BitwiseAnd" | "BitwiseNot" | "BitwiseOr" | "BitwiseXor" | "Cast"
        | "CastLike" | "Ceil" | "Div" | "Equal" | "Floor" | "Greater" | "GreaterOrEqual" | "IsInf" | "IsNaN"
        | "Less" | "LessOrEqual" | "Mul" | "Neg" | "Not" | "Or" | "Reciprocal" | "Relu" | "Round" | "Sign" | "Sub"
        | "Xor" => F::Elementwise(1),
        "Clip" | "DequantizeLinear" | "HardSigmoid" | "LeakyRelu" | "PRelu" | "QuantizeLinear" | "Shrink"
        | "ThresholdedRelu" => F::Elementwise(2),
        "Where" => F::Select,
        "HardSwish" | "Softsign" | "Sqrt" => F::Elementwise(4),
        "Mod" => F::Transcendental(500),
        "GatherElements" => F::GatherElements,
        "Scatter" | "ScatterElements" | "ScatterND" | "TensorScatter" => F::Scatter,
        "MaxUnpool" | "NonZero" => F::Transcendental(500),
        "Dropout" | "Bernoulli" | "RandomNormal" | "RandomNormalLike" | "RandomUniform" | "RandomUniformLike" => {
            F::Elementwise(10)
        }
        "DynamicQuantizeLinear" => F::Elementwise(6),
        "Adagrad" | "Adam" | "Momentum" => F::Elementwise(10),
        "Max" | "Mean" | "Min" | "Sum" => F::Variadic,

        "Exp" | "HannWindow" | "HammingWindow" | "BlackmanWindow" => F::Transcendental(20),
        "Sigmoid" | "Swish" | "Tanh" | "Mish" => F::Transcendental(32),
        "Erf" | "Gelu" => F::Transcendental(64),
        "Acos" | "Acosh" | "Asin" | "Asinh" | "Atan" | "Atanh" | "Celu" | "Cos" | "Elu" | "Log" | "Selu" | "Sin"
        | "MelWeightMatrix" => F::Transcendental(200),
        "Pow" => F::Transcendental(500),
        "Cosh" | "Sinh" | "Softplus" | "Tan" => F::Transcendental(1500),
        "RotaryEmbedding" => F::Elementwise(4),

        "ArgMax" | "ArgMin" | "ReduceL1" | "ReduceMax" | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum"
        | "CumSum" | "CumProd" => F::Reduce(1),
        "ReduceL2" | "ReduceSumSquare" => F::Reduce(2),
        "ReduceLogSum" => F::Reduce(1),
        "ReduceLogSumExp" => F::Softmax(20),
        "Hardmax" => F::Softmax(2),
        "Softmax" | "LogSoftmax" => F::Softmax(20),
        "SoftmaxCrossEntropyLoss" => F::Softmax(20),
        "NegativeLogLikelihoodLoss" => F::Reduce(1),
        "BatchNormalization" => F::Normalization(4),
        "GroupNormalization"
        | "InstanceNormalization"
        | "LayerNormalization"
        | "LpNormalization"
        | "MeanVarianceNormalization" => F::Normalization(8),
        "RMSNormalization" | "SimplifiedLayerNormalization" => F::Normalization(5),
        "LRN" => F::LocalNorm,

        "Conv" | "DeformConv" | "ConvInteger" => F::Conv { weight: 1 },
        "QLinearConv" => F::Conv { weight: 3 },
        "ConvTranspose" => F::ConvTranspose { weight: 1 },
        "QLinearConvTranspose" => F::ConvTranspose { weight: 3 },
        "MatMul" | "MatMulInteger" | "QLinearMatMul" => F::MatMul,
        "Gemm" => F::Gemm,
        "Einsum" => F::Einsum,
        "Attention" => F::Attention(AttentionLayout::Separate { past: 4 }),
        "LSTM" | "GRU" | "RNN" => F::Recurrent { weights: [1, 2] },

        "MaxPool" => F::Pool,
        "AveragePool" | "LpPool" | "QLinearAveragePool" => F::AveragePool,
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => F::GlobalPool,
        "MaxRoiPool" | "RoiAlign" | "GridSample" | "AffineGrid" | "Resize" | "Upsample" => F::Elementwise(8),

        "Concat" | "ConcatFromSequence" | "CenterCropPad" | "Pad" | "Slice" | "Split" | "SplitToSequence" | "Trilu"
        | "SequenceAt" | "SequenceErase" | "SequenceInsert" | "Constant" | "EyeLike" => F::Move(K::Copy),
        "Transpose" | "DepthToSpace" | "SpaceToDepth" | "ReverseSequence" | "Col2Im" => F::Move(K::Transpose),
        "Gather" | "GatherND" | "Compress" => F::Move(K::Gather),
        "Expand" | "Tile" | "ConstantOfShape" | "Range" | "OneHot" => F::Move(K::Broadcast),
        "TopK" | "Unique" => F::Sort,

        // What they do depends on data (subgraphs, text, transforms of open length): only the bytes are charged.
        "If" | "Loop" | "Scan" | "SequenceMap" | "Det" | "DFT" | "STFT" | "Gradient" | "ImageDecoder"
        | "Multinomial" | "NonMaxSuppression" | "RegexFullMatch" | "StringConcat" | "StringNormalizer"
        | "StringSplit" | "TfIdfVectorizer" => F::Bytes,
        _ => F::Bytes,
    }
}

/// ONNX Runtime's fused, quantized and blocked ops.
fn microsoft(op_type: &str) -> Formula {
    use AttentionLayout as A;
    use Formula as F;
    use KernelClass as K;
    match op_type {
        "FusedConv" | "NhwcConv" | "NhwcFusedConv" | "Conv" => F::Conv { weight: 1 },
        "QLinearConv" => F::Conv { weight: 3 },
        "ConvTransposeWithDynamicPads" => F::ConvTranspose { weight: 1 },
        "FusedMatMul"
        | "FusedMatMulActivation"
        | "TransposeMatMul"
        | "MatMulNBits"
        | "MatMulBnb4"
        | "MatMulFpQ4"
        | "MatMulBlockQuantizedFp4Weight"
        | "MatMulBlockQuantizedFp8Weight"
        | "MatMulInteger16"
        | "MatMulIntegerToFloat"
        | "DynamicQuantizeMatMul"
        | "GemmFastGelu"
        | "QOrderedMatMul" => F::MatMul,
        "FusedGemm" | "QGemm" | "GemmFloat8" => F::Gemm,

        "Gelu" | "FastGelu" | "BiasGelu" | "QOrderedGelu" | "BiasSplitGelu" => F::Transcendental(64),
        "QuickGelu" | "ScaledSiLU" | "QLinearSigmoid" => F::Transcendental(32),
        "QLinearAdd" | "QLinearMul" | "QLinearLeakyRelu" | "QLinearWhere" | "QuantizeLinear" | "DequantizeLinear" => {
            F::Elementwise(4)
        }
        "BiasAdd" | "GatedAdd" | "MulInteger" | "IsAllFinite" => F::Elementwise(1),
        "BiasDropout" | "BitmaskDropout" | "BitmaskBiasDropout" => F::Elementwise(10),
        "ComplexMul" | "ComplexMulConj" => F::Elementwise(6),
        "RotaryEmbedding" | "GemmaRotaryEmbedding" | "MRotaryEmbedding" => F::Elementwise(4),

        "LayerNormalization"
        | "SkipLayerNormalization"
        | "EmbedLayerNormalization"
        | "QEmbedLayerNormalization"
        | "QOrderedLayerNormalization"
        | "GroupNorm"
        | "SkipGroupNorm" => F::Normalization(8),
        "SimplifiedLayerNormalization" | "SkipSimplifiedLayerNormalization" | "GatedRMSNorm" | "BranchwiseRMSNorm" => {
            F::Normalization(5)
        }
        "BiasSoftmax" | "QLinearSoftmax" => F::Softmax(20),
        "QLinearReduceMean" | "ReduceSumInteger" => F::Reduce(1),

        "MultiHeadAttention" | "DecoderMaskedMultiHeadAttention" => F::Attention(A::Separate { past: 6 }),
        "GroupQueryAttention" | "SparseAttention" => F::Attention(A::Separate { past: 3 }),
        "Attention" | "DecoderMaskedSelfAttention" | "LongformerAttention" => F::Attention(A::Projected { past: 4 }),
        "QAttention" => F::Attention(A::Projected { past: 8 }),
        "DynamicQuantizeLSTM" | "AttnLSTM" => F::Recurrent { weights: [1, 2] },

        "MaxPool" | "MaxpoolWithMask" | "NhwcMaxPool" => F::Pool,
        "AveragePool" | "QLinearAveragePool" => F::AveragePool,
        "GlobalAveragePool" | "GlobalMaxPool" | "QLinearGlobalAveragePool" => F::GlobalPool,
        "Upsample" | "GridSample" | "CropAndResize" => F::Elementwise(8),

        "QLinearConcat" | "Pad" | "Trilu" | "ExpandDims" | "RemovePadding" | "RestorePadding" => F::Move(K::Copy),
        "UnfoldTensor" => F::Move(K::Transpose),
        "GatherND" | "GatherBlockQuantized" | "TorchEmbedding" => F::Move(K::Gather),
        "Range" => F::Move(K::Broadcast),
        "Unique" => F::Sort,
        // The runtime registers some fused ops under their ONNX names too.
        _ => F::Bytes,
    }
}

/// Operators on images whose channels stand in blocks as wide as a vector: pooling is vectorized, reordering is a copy.
fn blocked(op_type: &str) -> Formula {
    match op_type {
        "ReorderInput" | "ReorderOutput" => Formula::Move(KernelClass::Copy),
        "AveragePool" => Formula::Pool,
        other => microsoft(other),
    }
}

/// Classical machine learning.
fn classic(op_type: &str) -> Formula {
    match op_type {
        "Binarizer" | "Imputer" | "Scaler" => Formula::Elementwise(2),
        "Normalizer" => Formula::Normalization(4),
        "ArrayFeatureExtractor" => Formula::Move(KernelClass::Gather),
        "FeatureVectorizer" => Formula::Move(KernelClass::Copy),
        "OneHotEncoder" => Formula::Move(KernelClass::Broadcast),
        _ => Formula::Bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every op of the default domain up to ONNX 1.19 (operator set 24), those since removed included.
    const STANDARD: &str = "
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool
    BatchNormalization Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast
    CastLike Ceil Celu CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape
    Conv ConvInteger ConvTranspose Cos Cosh CumSum DFT DeformConv DepthToSpace DequantizeLinear Det Div
    Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather
    GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual
    GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If
    ImageDecoder InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log
    LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean
    MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss
    NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow
    QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu Reshape Resize ReverseSequence RoiAlign
    RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid Sign Sin Sinh
    Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt
    Squeeze StringConcat StringNormalizer StringSplit Sub Sum Swish Tan Tanh TensorScatter TfIdfVectorizer
    ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor
    ";

    /// The ops of the standard that are charged by their bytes on purpose.
    const BY_BYTES: &str = "
    DFT Det If ImageDecoder Loop Multinomial NonMaxSuppression RegexFullMatch STFT Scan SequenceMap StringConcat
    StringNormalizer StringSplit TfIdfVectorizer
    ";

    #[test]
    fn every_op_of_the_standard_has_a_formula_or_is_charged_by_bytes_on_purpose() {
        let known = STANDARD.split_whitespace();
        let by_bytes: Vec<&str> = known.filter(|name| formula("", name) == Formula::Bytes).collect();
        assert_eq!(by_bytes, BY_BYTES.split_whitespace().collect::<Vec<_>>());
    }

    /// What ONNX Runtime's optimizers put in the place of several ops.
    const FUSED: &str = "
    Attention BiasGelu BiasSoftmax EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul Gelu GemmFastGelu
    GroupQueryAttention MatMulIntegerToFloat MultiHeadAttention NhwcMaxPool QLinearAdd QuickGelu RotaryEmbedding
    SkipLayerNormalization SkipSimplifiedLayerNormalization
    ";

    #[test]
    fn every_op_that_optimizers_make_has_a_formula() {
        let unknown = FUSED
            .split_whitespace()
            .filter(|name| formula("com.microsoft", name) == Formula::Bytes);
        assert_eq!(unknown.count(), 0);
        assert_ne!(formula("", "SimplifiedLayerNormalization"), Formula::Bytes);
    }

    #[test]
    fn a_name_means_different_ops_in_different_domains() {
        assert_ne!(formula("", "Attention"), formula("com.microsoft", "Attention"));
        assert_ne!(
            formula("", "AveragePool"),
            formula("com.microsoft.nchwc", "AveragePool")
        );
        assert_eq!(
            formula("com.microsoft", "FusedConv"),
            formula("com.microsoft.nchwc", "Conv")
        );
        assert_eq!(formula("ai.onnx", "Relu"), formula("", "Relu"));
        assert_eq!(formula("com.microsoft", "Relu"), Formula::Bytes);
        assert_eq!(formula("org.example", "Relu"), Formula::Bytes);
    }
}
