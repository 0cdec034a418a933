//! Classes of kernels that reach a like share of a device's peak.

use serde::{Deserialize, Serialize};

/// A class of kernels with an efficiency of its own in the device table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelClass {
    /// No kernel to speak of: the result looks into memory of an operand.
    View,
    /// Evaluated once, when the model is loaded.
    Constant,
    /// Dense and grouped convolution.
    Conv,
    /// Convolution of every channel by itself.
    DepthwiseConv,
    /// Transposed convolution.
    ConvTranspose,
    /// Products of matrices.
    MatMul,
    /// Attention in one kernel.
    Attention,
    /// LSTM, GRU, RNN.
    Recurrent,
    /// A few operations per element.
    Elementwise,
    /// Functions computed by series or tables, per element.
    Transcendental,
    /// Sums and the like along axes.
    Reduce,
    /// Statistics along axes, then a few operations per element.
    Normalization,
    /// Exponentials and their sum along an axis.
    Softmax,
    /// Maxima of windows that slide over an image.
    Pool,
    /// Means of windows that slide over an image.
    AveragePool,
    /// Bytes moved in long runs.
    Copy,
    /// Bytes moved with strides.
    Transpose,
    /// Bytes moved from or to computed positions.
    Gather,
    /// One element repeated into many.
    Broadcast,
    /// Ops that sort.
    Sort,
    /// Ops of which only the bytes are known.
    Unknown,
}

impl KernelClass {
    /// Every class.
    pub const ALL: &'static [Self] = &[
        Self::View,
        Self::Constant,
        Self::Conv,
        Self::DepthwiseConv,
        Self::ConvTranspose,
        Self::MatMul,
        Self::Attention,
        Self::Recurrent,
        Self::Elementwise,
        Self::Transcendental,
        Self::Reduce,
        Self::Normalization,
        Self::Softmax,
        Self::Pool,
        Self::AveragePool,
        Self::Copy,
        Self::Transpose,
        Self::Gather,
        Self::Broadcast,
        Self::Sort,
        Self::Unknown,
    ];
}
