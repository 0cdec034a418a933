//! The elements of outputs as numbers.

use crate::Output;

/// Those that are floating-point numbers, in double precision; none of other types.
pub(super) fn numbers(output: &Output) -> Box<dyn Iterator<Item = f64> + '_> {
    let bytes = &output.bytes;
    match output.plain_element() {
        Some("f64") => Box::new(bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes))),
        Some("f32") => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes).into()),
        ),
        Some("f16") => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&bytes| half::f16::from_le_bytes(bytes).into()),
        ),
        Some("bf16") => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&bytes| half::bf16::from_le_bytes(bytes).into()),
        ),
        _ => Box::new(std::iter::empty()),
    }
}

/// How many elements have other bits.
pub(super) fn differing(before: &Output, after: &Output) -> u64 {
    let width = before.element_bytes();
    let pairs = before.bytes.chunks(width).zip(after.bytes.chunks(width));
    let missing = before.bytes.len().abs_diff(after.bytes.len()) / width;
    (pairs.filter(|(before, after)| before != after).count() + missing) as u64
}
