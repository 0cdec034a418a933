//! Element types, dimensions and value types, with their sizes in bytes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes one string element takes in a runtime, without its characters: the size of a C++ `std::string` on 64-bit targets.
pub const STRING_BYTES: u64 = 32;

/// The size of a value could not be stated as a number of bytes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SizeError {
    /// The product of dimensions and element size does not fit 64 bits.
    #[error("the size of shape {0} overflows 64 bits")]
    Overflow(String),
}

macro_rules! element_types {
    ($($variant:ident $text:literal $bits:literal $doc:literal),+ $(,)?) => {
        /// Element type of a tensor: every type of the ONNX `TensorProto.DataType` enumeration, up to IR version 13.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum ElementType {
            $(#[doc = $doc] $variant,)+
        }

        impl ElementType {
            /// Every element type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name used in the textual form.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Width of one element in bits; sub-byte types are packed.
            #[must_use]
            pub fn bits(self) -> u64 {
                match self { $(Self::$variant => $bits,)+ }
            }

            /// The element type with this name in the textual form.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

element_types! {
    Float32 "f32" 32 "IEEE 754 single precision.",
    Uint8 "u8" 8 "Unsigned 8-bit integer.",
    Int8 "i8" 8 "Signed 8-bit integer.",
    Uint16 "u16" 16 "Unsigned 16-bit integer.",
    Int16 "i16" 16 "Signed 16-bit integer.",
    Int32 "i32" 32 "Signed 32-bit integer.",
    Int64 "i64" 64 "Signed 64-bit integer.",
    String "str" 256 "A character string; counted as [`STRING_BYTES`] without its characters.",
    Bool "bool" 8 "A truth value in one byte.",
    Float16 "f16" 16 "IEEE 754 half precision.",
    Float64 "f64" 64 "IEEE 754 double precision.",
    Uint32 "u32" 32 "Unsigned 32-bit integer.",
    Uint64 "u64" 64 "Unsigned 64-bit integer.",
    Complex64 "c64" 64 "Two single-precision numbers.",
    Complex128 "c128" 128 "Two double-precision numbers.",
    Bfloat16 "bf16" 16 "Truncated single precision.",
    Float8E4M3Fn "f8e4m3fn" 8 "8-bit float, 4 exponent bits, finite.",
    Float8E4M3Fnuz "f8e4m3fnuz" 8 "8-bit float, 4 exponent bits, no negative zero.",
    Float8E5M2 "f8e5m2" 8 "8-bit float, 5 exponent bits.",
    Float8E5M2Fnuz "f8e5m2fnuz" 8 "8-bit float, 5 exponent bits, no negative zero.",
    Uint4 "u4" 4 "Unsigned 4-bit integer, two in a byte.",
    Int4 "i4" 4 "Signed 4-bit integer, two in a byte.",
    Float4E2M1 "f4e2m1" 4 "4-bit float, two in a byte.",
    Float8E8M0 "f8e8m0" 8 "8-bit power-of-two scale.",
    Uint2 "u2" 2 "Unsigned 2-bit integer, four in a byte.",
    Int2 "i2" 2 "Signed 2-bit integer, four in a byte.",
}

/// One dimension of a shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A number of elements.
    Known(u64),
    /// A named dimension whose value the model leaves open.
    Symbol(String),
    /// A dimension that the model leaves open, at a size that it was given: figures are those of this size, and what is written must be right
    /// for every other one, too.
    Free {
        /// Elements, at the size that was given.
        size: u64,
        /// The model's name of it; none where it follows from others.
        name: Option<String>,
    },
    /// A dimension about which nothing is known.
    Unknown,
}

impl Dim {
    /// How many elements it has, as far as that is known or given.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Known(size) | Self::Free { size, .. } => Some(*size),
            Self::Symbol(_) | Self::Unknown => None,
        }
    }

    /// Whether it may have another size in another run.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Free { .. })
    }
}

/// What a value is: a tensor, or a container of tensors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueType {
    /// A dense tensor; `shape` is `None` if not even the rank is known.
    Tensor {
        /// Type of each element.
        element: ElementType,
        /// Dimensions, outermost first.
        shape: Option<Vec<Dim>>,
    },
    /// A sparse tensor in coordinate form.
    SparseTensor {
        /// Type of each element.
        element: ElementType,
        /// Dimensions of the dense equivalent.
        shape: Option<Vec<Dim>>,
    },
    /// A sequence of values of one type; its length is not part of the type.
    Sequence(Box<ValueType>),
    /// A value that may be absent.
    Optional(Box<ValueType>),
    /// A dictionary.
    Map {
        /// Type of the keys.
        key: ElementType,
        /// Type of the values.
        value: Box<ValueType>,
    },
    /// A value of which nothing is known.
    Unknown,
}

impl ValueType {
    /// A dense tensor of known shape.
    #[must_use]
    pub fn tensor(element: ElementType, shape: &[u64]) -> Self {
        Self::Tensor {
            element,
            shape: Some(shape.iter().map(|&d| Dim::Known(d)).collect()),
        }
    }

    /// The dimensions if the value is a dense tensor and all of them are known or given.
    #[must_use]
    pub fn known_shape(&self) -> Option<Vec<u64>> {
        let Self::Tensor { shape: Some(dims), .. } = self else {
            return None;
        };
        dims.iter().map(Dim::size).collect()
    }

    /// The dimensions, where the rank of a tensor is known; none of other values.
    #[must_use]
    pub fn dims(&self) -> &[Dim] {
        match self {
            Self::Tensor { shape: Some(dims), .. } | Self::SparseTensor { shape: Some(dims), .. } => dims,
            _ => &[],
        }
    }

    /// Whether the dimension may have another size in another run.
    #[must_use]
    pub fn is_free(&self, axis: usize) -> bool {
        self.dims().get(axis).is_some_and(Dim::is_free)
    }

    /// Whether any dimension may have another size in another run.
    #[must_use]
    pub fn has_free_dims(&self) -> bool {
        self.dims().iter().any(Dim::is_free)
    }

    /// The element type of a dense or sparse tensor.
    #[must_use]
    pub fn element(&self) -> Option<ElementType> {
        match self {
            Self::Tensor { element, .. } | Self::SparseTensor { element, .. } => Some(*element),
            Self::Sequence(_) | Self::Optional(_) | Self::Map { .. } | Self::Unknown => None,
        }
    }

    /// Bytes the value takes, or `None` where the type does not say (an unknown dimension, a sequence, a sparse tensor).
    ///
    /// Sub-byte elements are packed and rounded up to whole bytes. An optional counts as its content.
    ///
    /// # Errors
    /// [`SizeError::Overflow`] if the size does not fit 64 bits.
    pub fn bytes(&self) -> Result<Option<u64>, SizeError> {
        match self {
            Self::Tensor {
                element,
                shape: Some(dims),
            } => {
                let Some(known) = self.known_shape() else {
                    return Ok(if dims.contains(&Dim::Known(0)) { Some(0) } else { None });
                };
                if known.contains(&0) {
                    return Ok(Some(0));
                }
                let bits = known.iter().try_fold(element.bits(), |acc, &d| acc.checked_mul(d));
                let overflow = || SizeError::Overflow(format!("{known:?} of {}", element.name()));
                Ok(Some(bits.ok_or_else(overflow)?.div_ceil(8)))
            }
            Self::Optional(inner) => inner.bytes(),
            Self::Tensor { shape: None, .. }
            | Self::SparseTensor { .. }
            | Self::Sequence(_)
            | Self::Map { .. }
            | Self::Unknown => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_byte_elements_are_packed_and_rounded_up() {
        assert_eq!(ValueType::tensor(ElementType::Int4, &[3]).bytes(), Ok(Some(2)));
        assert_eq!(ValueType::tensor(ElementType::Uint2, &[3, 3]).bytes(), Ok(Some(3)));
        assert_eq!(ValueType::tensor(ElementType::Float32, &[]).bytes(), Ok(Some(4)));
    }

    #[test]
    fn an_absurd_shape_is_an_error_and_an_empty_one_is_not() {
        let absurd = ValueType::tensor(ElementType::Float32, &[u64::MAX, 2]);
        assert!(matches!(absurd.bytes(), Err(SizeError::Overflow(_))));
        assert_eq!(
            ValueType::tensor(ElementType::Float32, &[u64::MAX, 0]).bytes(),
            Ok(Some(0))
        );
    }

    #[test]
    fn an_open_dimension_leaves_the_size_open() {
        let ty = ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(vec![Dim::Symbol("N".into())]),
        };
        assert_eq!(ty.bytes(), Ok(None));
        assert_eq!(ValueType::Sequence(Box::new(ty)).bytes(), Ok(None));
    }

    #[test]
    fn names_of_element_types_parse_back() {
        for &element in ElementType::ALL {
            assert_eq!(ElementType::from_name(element.name()), Some(element));
        }
    }
}
