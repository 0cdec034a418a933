//! The operators, their operands and their results.

use std::ffi::{CStr, c_int};

/// The domain of the operators.
pub(crate) const DOMAIN: &CStr = c"com.remat";
/// `ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED`: any.
pub(crate) const ANY: c_int = 0;
/// The type of 64-bit integers, as the runtime numbers it.
pub(crate) const INT64: c_int = 7;

/// The operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Begins to write a tensor.
    Out,
    /// Waits for that.
    OutEnd,
    /// Begins to read ahead.
    InBegin,
    /// Makes the tensor again.
    In,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Out, Self::OutEnd, Self::InBegin, Self::In];

    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::Out => c"PageOut",
            Self::OutEnd => c"PageOutEnd",
            Self::InBegin => c"PageInBegin",
            Self::In => c"PageIn",
        }
    }

    pub(crate) fn operands(self) -> &'static [c_int] {
        match self {
            Self::Out => &[ANY],
            Self::InBegin => &[INT64],
            Self::OutEnd | Self::In => &[INT64, ANY],
        }
    }

    pub(crate) fn results(self) -> &'static [c_int] {
        match self {
            Self::Out | Self::OutEnd | Self::InBegin => &[INT64],
            Self::In => &[ANY, INT64],
        }
    }
}
