//! Element types, and single elements as literals.

use remat_ir::ElementType;

use crate::Form;
use crate::text;

/// The element type as text; `None` if the form has none.
pub(crate) fn element(element: ElementType, form: Form) -> Option<&'static str> {
    use ElementType as E;
    Some(match element {
        E::Float32 => "f32",
        E::Float64 => "f64",
        E::Float16 => "f16",
        E::Bfloat16 => "bf16",
        E::Float8E4M3Fn => "f8E4M3FN",
        E::Float8E4M3Fnuz => "f8E4M3FNUZ",
        E::Float8E5M2 => "f8E5M2",
        E::Float8E5M2Fnuz => "f8E5M2FNUZ",
        E::Bool => "i1",
        E::Complex64 => "complex<f32>",
        E::Complex128 => "complex<f64>",
        E::Uint8 => "ui8",
        E::Uint16 => "ui16",
        E::Uint32 => "ui32",
        E::Uint64 => "ui64",
        E::Uint4 => "ui4",
        // Signed integers carry their sign in torch's types; builtin arithmetic has none.
        E::Int4 | E::Int8 | E::Int16 | E::Int32 | E::Int64 if form == Form::Torch => match element.bits() {
            4 => "si4",
            8 => "si8",
            16 => "si16",
            32 => "si32",
            _ => "si64",
        },
        E::Int4 => "i4",
        E::Int8 => "i8",
        E::Int16 => "i16",
        E::Int32 => "i32",
        E::Int64 => "i64",
        E::String | E::Uint2 | E::Int2 | E::Float4E2M1 | E::Float8E8M0 if form == Form::Torch => return None,
        E::String => "!onnx.String",
        E::Uint2 => "ui2",
        E::Int2 => "i2",
        E::Float4E2M1 => "f4E2M1FN",
        E::Float8E8M0 => "f8E8M0FNU",
    })
}

/// How elements of this type stand inside `dense<[…]>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    /// `true` or `false`.
    Bool,
    /// A decimal number with a sign, from that many bits.
    Signed(u32),
    /// A decimal number, from that many bits.
    Unsigned(u32),
    /// A decimal number with a point.
    Float,
    /// The same in double precision.
    Double,
    /// The bits of a small float in hexadecimal.
    Bits(u32),
    /// Two numbers, which are written as bytes only.
    Complex,
}

/// The literal of an element type; `None` for strings.
pub(crate) fn literal(element: ElementType) -> Option<Literal> {
    use ElementType as E;
    let bits = u32::try_from(element.bits()).unwrap_or(u32::MAX);
    Some(match element {
        E::String => return None,
        E::Bool => Literal::Bool,
        E::Int2 | E::Int4 | E::Int8 | E::Int16 | E::Int32 | E::Int64 => Literal::Signed(bits),
        E::Uint2 | E::Uint4 | E::Uint8 | E::Uint16 | E::Uint32 | E::Uint64 => Literal::Unsigned(bits),
        E::Float32 => Literal::Float,
        E::Float64 => Literal::Double,
        E::Float16 | E::Bfloat16 => Literal::Bits(bits),
        E::Float8E4M3Fn | E::Float8E4M3Fnuz | E::Float8E5M2 | E::Float8E5M2Fnuz => Literal::Bits(bits),
        E::Float4E2M1 | E::Float8E8M0 => Literal::Bits(bits),
        E::Complex64 | E::Complex128 => Literal::Complex,
    })
}

impl Literal {
    /// Whether the bytes in memory are those of MLIR's own raw form: one element after the other, whole bytes each.
    pub(crate) fn is_raw(self) -> bool {
        match self {
            Self::Bool => false,
            Self::Signed(bits) | Self::Unsigned(bits) | Self::Bits(bits) => bits >= 8,
            Self::Float | Self::Double | Self::Complex => true,
        }
    }

    /// The element whose bits are the low ones of `bits`.
    pub(crate) fn text(self, bits: u64) -> String {
        match self {
            Self::Bool => (bits != 0).to_string(),
            Self::Unsigned(_) => bits.to_string(),
            Self::Signed(width) => {
                let unused = 64 - width;
                (bits.cast_signed() << unused >> unused).to_string()
            }
            #[expect(clippy::cast_possible_truncation, reason = "the element has 32 bits")]
            Self::Float => text::float(f32::from_bits(bits as u32)),
            Self::Double => text::double(f64::from_bits(bits)),
            Self::Bits(width) => format!("0x{bits:0digits$X}", digits = (width as usize).div_ceil(4)),
            // Never asked for: complex numbers are raw.
            Self::Complex => String::new(),
        }
    }
}

/// The elements of a tensor from its packed little-endian bytes. Elements of less than a byte are packed from the low bits up.
pub(crate) fn elements(bytes: &[u8], element: ElementType) -> impl Iterator<Item = u64> + '_ {
    let bits = usize::try_from(element.bits()).unwrap_or(64).clamp(1, 64);
    let count = bytes.len() * 8 / bits;
    (0..count).map(move |index| {
        if bits < 8 {
            let (byte, shift) = (index * bits / 8, index * bits % 8);
            return u64::from(bytes[byte] >> shift) & ((1 << bits) - 1);
        }
        let width = bits / 8;
        let element = &bytes[index * width..(index + 1) * width];
        element
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8], ty: ElementType) -> Vec<String> {
        let literal = literal(ty).expect("it is no string");
        elements(bytes, ty).map(|bits| literal.text(bits)).collect()
    }

    #[test]
    fn elements_are_read_with_their_width_and_sign() {
        assert_eq!(texts(&[0xFF, 0x01], ElementType::Int8), ["-1", "1"]);
        assert_eq!(texts(&[0xFF, 0x01], ElementType::Uint8), ["255", "1"]);
        assert_eq!(texts(&[0xFE, 0xFF, 0x01, 0x00], ElementType::Int16), ["-2", "1"]);
        assert_eq!(texts(&[0x8F, 0x01], ElementType::Int4), ["-1", "-8", "1", "0"]);
        assert_eq!(texts(&[0x1B], ElementType::Uint2), ["3", "2", "1", "0"]);
        assert_eq!(texts(&[0, 1], ElementType::Bool), ["false", "true"]);
        assert_eq!(texts(&[0, 0x3C], ElementType::Float16), ["0x3C00"]);
        assert_eq!(texts(&1.5_f32.to_le_bytes(), ElementType::Float32), ["1.5"]);
    }

    #[test]
    fn torch_has_signs_and_no_strings() {
        assert_eq!(element(ElementType::Int64, Form::Torch), Some("si64"));
        assert_eq!(element(ElementType::Int64, Form::Remat), Some("i64"));
        assert_eq!(element(ElementType::String, Form::Torch), None);
        for &ty in ElementType::ALL {
            assert!(element(ty, Form::OnnxMlir).is_some());
        }
    }
}
