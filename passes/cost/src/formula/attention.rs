//! Attention in one kernel: `softmax(Q K^T) V`, with or without the projections before it.

use remat_operators::AttentionLayout;

use crate::operands::{Operands, product};

/// Operations per score for scaling, mask and softmax.
const PER_SCORE: u128 = 8;

/// A batch of sequences.
#[derive(Clone, Copy)]
struct Sequences {
    batch: u64,
    length: u64,
    /// Width of an element of the sequence, all heads together.
    hidden: u64,
}

impl Sequences {
    /// From `B x S x hidden`, `B x heads x S x H`, or the packed `B x S x heads x parts x H`.
    fn of(shape: &[u64]) -> Option<Self> {
        match *shape {
            [batch, length, hidden] => Some(Self { batch, length, hidden }),
            [batch, heads, length, size] | [batch, length, heads, _, size] => Some(Self {
                batch,
                length,
                hidden: heads.saturating_mul(size),
            }),
            _ => None,
        }
    }
}

pub(crate) fn flops(operands: &Operands<'_>, layout: AttentionLayout) -> Option<u128> {
    match layout {
        AttentionLayout::Separate { past } => {
            let q = Sequences::of(&operands.input_shape(0)?)?;
            let other = |index: usize| operands.input_shape(index).and_then(|shape| Sequences::of(&shape));
            let (k, v) = (other(1).unwrap_or(q), other(2).unwrap_or(q));
            let keys = k.length.saturating_add(past_length(operands, past));
            // Grouped queries: several heads of Q share a head of V, so the result is as wide as Q has heads.
            let width = operands
                .output(0)
                .and_then(|ty| Sequences::of(&ty.known_shape()?))
                .map_or(v.hidden, |out| out.hidden);
            Some(scores(operands, q, keys, width))
        }
        AttentionLayout::Projected { past } => {
            let x = Sequences::of(&operands.input_shape(0)?)?;
            let weights = operands.input_shape(1)?;
            let projected = *weights.last()?;
            let projection = product(&[x.batch, x.length])
                .saturating_mul(2)
                .saturating_mul(product(&weights));
            let third = Sequences {
                hidden: projected / 3,
                ..x
            };
            let keys = x.length.saturating_add(past_length(operands, past));
            Some(projection.saturating_add(scores(operands, third, keys, third.hidden)))
        }
    }
}

/// `Q K^T` over the width of Q, the softmax of every head, and the product with V over the width of the result.
fn scores(operands: &Operands<'_>, q: Sequences, keys: u64, width: u64) -> u128 {
    let pairs = product(&[q.batch, q.length, keys]);
    let heads = operands
        .int("num_heads")
        .or_else(|| operands.int("q_num_heads"))
        .and_then(|heads| u128::try_from(heads).ok())
        .unwrap_or(1);
    let products = u128::from(q.hidden).saturating_add(u128::from(width)).saturating_mul(2);
    pairs.saturating_mul(products.saturating_add(heads.saturating_mul(PER_SCORE)))
}

/// Length of the cached sequence: the last dimension but one of the cache.
fn past_length(operands: &Operands<'_>, past: usize) -> u64 {
    let shape = operands.input_shape(past).unwrap_or_default();
    shape.len().checked_sub(2).map_or(0, |axis| shape[axis])
}
