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
    PageOut,
    /// Waits for that.
    PageOutEnd,
    /// Begins to read ahead.
    PageInBegin,
    /// Makes the tensor again.
    PageIn,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::PageOut, Self::PageOutEnd, Self::PageInBegin, Self::PageIn];

    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::PageOut => c"PageOut",
            Self::PageOutEnd => c"PageOutEnd",
            Self::PageInBegin => c"PageInBegin",
            Self::PageIn => c"PageIn",
        }
    }

    pub(crate) fn operands(self) -> &'static [c_int] {
        match self {
            Self::PageOut => &[ANY],
            Self::PageInBegin => &[INT64],
            Self::PageOutEnd | Self::PageIn => &[INT64, ANY],
        }
    }

    pub(crate) fn results(self) -> &'static [c_int] {
        match self {
            Self::PageOut | Self::PageOutEnd | Self::PageInBegin => &[INT64],
            Self::PageIn => &[ANY, INT64],
        }
    }
}
