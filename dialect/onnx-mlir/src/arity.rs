//! How many operands and results onnx-mlir's ops have.

/// Operands and results of the op of the default domain with this name, as far as it names them one by one; what is left out at
/// the end stands there as `none`.
pub(crate) fn of(op_type: &str) -> (usize, usize) {
    let found = TABLE.binary_search_by_key(&op_type, |&(name, ..)| name);
    found.map_or((0, 0), |at| (TABLE[at].1, TABLE[at].2))
}

/// Ops with operands or results that may be left out at the end.
const TABLE: &[(&str, usize, usize)] = &[
    ("Attention", 7, 4),
    ("BatchNormalization", 0, 3),
    ("Clip", 3, 0),
    ("Conv", 3, 0),
    ("ConvInteger", 4, 0),
    ("ConvTranspose", 3, 0),
    ("DFT", 3, 0),
    ("DeformConv", 5, 0),
    ("DequantizeLinear", 3, 0),
    ("Dropout", 3, 2),
    ("GRU", 6, 2),
    ("Gemm", 3, 0),
    ("LSTM", 8, 3),
    ("LayerNormalization", 3, 3),
    ("Loop", 2, 0),
    ("MatMulInteger", 4, 0),
    ("MaxPool", 0, 2),
    ("MaxUnpool", 3, 0),
    ("NegativeLogLikelihoodLoss", 3, 0),
    ("NonMaxSuppression", 5, 0),
    ("Optional", 1, 0),
    ("OptionalHasElement", 1, 0),
    ("Pad", 4, 0),
    ("QLinearConv", 9, 0),
    ("QuantizeLinear", 3, 0),
    ("RNN", 6, 2),
    ("ReduceL1", 2, 0),
    ("ReduceL2", 2, 0),
    ("ReduceLogSum", 2, 0),
    ("ReduceLogSumExp", 2, 0),
    ("ReduceMax", 2, 0),
    ("ReduceMean", 2, 0),
    ("ReduceMin", 2, 0),
    ("ReduceProd", 2, 0),
    ("ReduceSum", 2, 0),
    ("ReduceSumSquare", 2, 0),
    ("Resize", 4, 0),
    ("RotaryEmbedding", 4, 0),
    ("STFT", 4, 0),
    ("SequenceErase", 2, 0),
    ("SequenceInsert", 3, 0),
    ("Slice", 5, 0),
    ("SoftmaxCrossEntropyLoss", 3, 2),
    ("Split", 2, 0),
    ("SplitToSequence", 2, 0),
    ("Squeeze", 2, 0),
    ("TensorScatter", 3, 0),
    ("Trilu", 2, 0),
    ("Unique", 0, 4),
];
