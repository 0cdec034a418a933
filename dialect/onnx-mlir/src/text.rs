//! The small pieces of MLIR's syntax: strings, numbers, indentation, bytes in hexadecimal.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

/// A string literal: quoted, with everything that is not printable ASCII as two hexadecimal digits.
pub(crate) fn string(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => _ = write!(text, "\\{byte:02X}"),
        }
    }
    text.push('"');
    text
}

/// A single-precision number without its type: decimal if that reads back to the same bits, else the bits in hexadecimal.
pub(crate) fn float(value: f32) -> String {
    if !value.is_finite() {
        return format!("0x{:08X}", value.to_bits());
    }
    // MLIR reads the decimal as a double and rounds that: so must the check.
    let text = with_point(format!("{value:e}"));
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is imitated")]
    let back = text.parse::<f64>().map(|double| double as f32);
    if back.map(f32::to_bits) == Ok(value.to_bits()) {
        text
    } else {
        with_point(format!("{:e}", f64::from(value)))
    }
}

/// A double-precision number without its type.
pub(crate) fn double(value: f64) -> String {
    if value.is_finite() {
        with_point(format!("{value:e}"))
    } else {
        format!("0x{:016X}", value.to_bits())
    }
}

/// MLIR's numbers need a point, Rust's have one only if digits follow.
fn with_point(mut text: String) -> String {
    if !text.contains('.') {
        let at = text.find('e').unwrap_or(text.len());
        text.insert_str(at, ".0");
    }
    match text.strip_suffix("e0") {
        Some(plain) => plain.to_owned(),
        None => text,
    }
}

/// Copies all bytes of `from` as hexadecimal digits, a block at a time.
pub(crate) fn copy_hex(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<u64> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut block = vec![0; 1 << 15];
    let mut digits = Vec::with_capacity(2 * block.len());
    let mut total = 0;
    loop {
        let count = match from.read(&mut block) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digits.clear();
        for byte in &block[..count] {
            digits.push(DIGITS[usize::from(byte >> 4)]);
            digits.push(DIGITS[usize::from(byte & 15)]);
        }
        to.write_all(&digits)?;
        total += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_byte_by_byte() {
        assert_eq!(string(b"a\"b\\c\n\xff~"), r#""a\"b\\c\0A\FF~""#);
    }

    #[test]
    fn floats_read_back_to_the_same_bits() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "1.0e-1"),
            (1e-5, "1.0e-5"),
            (f32::MAX, "3.4028235e38"),
            (f32::INFINITY, "0x7F800000"),
            (f32::NEG_INFINITY, "0xFF800000"),
            (f32::from_bits(0x7FC0_0001), "0x7FC00001"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
            if let Ok(back) = text.parse::<f64>() {
                assert_eq!((back as f32).to_bits(), value.to_bits());
            }
        }
        assert_eq!(double(f64::NAN), "0x7FF8000000000000");
        assert_eq!(double(2.5e300), "2.5e300");
    }

    #[test]
    fn bytes_become_digits_across_blocks() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| (i % 251) as u8).collect();
        let mut out = Vec::new();
        assert_eq!(
            copy_hex(&mut &bytes[..], &mut out).expect("memory can be written"),
            70_000
        );
        assert_eq!(&out[..8], b"00010203");
        assert_eq!(out.len(), 140_000);
    }
}
