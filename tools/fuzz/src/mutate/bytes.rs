//! Changes of bytes that mean nothing.

use crate::Rng;

/// Flips, overwrites, inserts, removes, doubles, cuts off, or takes a part of `other`.
pub(super) fn mutate(data: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut data = data.to_vec();
    let at = rng.below(data.len());
    let end = (at + 1 + rng.below(16)).min(data.len());
    match rng.below(8) {
        0 if !data.is_empty() => data[at] ^= 1 << rng.below(8),
        1 if !data.is_empty() => data[at] = rng.bits() as u8,
        2 => data.insert(at, rng.bits() as u8),
        3 if !data.is_empty() => drop(data.drain(at..end)),
        4 if !data.is_empty() => {
            let copy = data[at..end].to_vec();
            data.splice(at..at, copy);
        }
        5 => data.truncate(at),
        6 if !data.is_empty() => {
            let number = rng.number().to_le_bytes();
            let width = 1 << rng.below(4);
            for (byte, new) in data[at..].iter_mut().zip(&number[..width]) {
                *byte = *new;
            }
        }
        _ => {
            let from = rng.below(other.len());
            let to = (from + 1 + rng.below(64)).min(other.len());
            data.splice(at..end.max(at), other[from..to].iter().copied());
        }
    }
    data
}
