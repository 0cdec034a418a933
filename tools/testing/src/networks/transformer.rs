//! BERT without its embedding: attention heads are fused into three layers.

use super::layer::Layers;

const TOKENS: u64 = 512;
const HIDDEN: u64 = 768;
const HEADS: u64 = 12;
const PER_HEAD: u64 = 64;

/// BERT base with so many blocks.
pub(super) fn bert(blocks: usize) -> Layers {
    let mut net = Layers::input(&[TOKENS, HIDDEN]);
    for _ in 0..blocks {
        block(&mut net);
    }
    net.loss(TOKENS, net.last());
    net
}

fn block(net: &mut Layers) {
    let input = net.last();
    // Queries, keys and values in one.
    let all = TOKENS * HIDDEN * PER_HEAD * HEADS;
    let x = net.push("qkv", vec![3 * TOKENS, PER_HEAD, HEADS], 3 * all, &[input]);
    // Products of queries and keys, masked and dropped out.
    let scores = vec![TOKENS, TOKENS, HEADS];
    let elements: u64 = scores.iter().product();
    let products = TOKENS * PER_HEAD * TOKENS * HEADS;
    let x = net.push("scores", scores, products + 2 * elements, &[x]);
    // Applied to the values, and concatenated.
    let applied = TOKENS * TOKENS * PER_HEAD * HEADS;
    let x = net.push("attend", vec![TOKENS, PER_HEAD * HEADS], 2 * applied, &[x]);
    let x = net.linear(HIDDEN, x);
    let middle = net.add(input, x);
    let wide = 4 * HIDDEN;
    let with_relu = 2 * (HIDDEN + 1) * wide + wide + TOKENS * wide;
    let x = net.push("linear_relu", vec![TOKENS, wide], with_relu, &[middle]);
    let x = net.linear(HIDDEN, x);
    // The published program reads the layer four places back here, which is the projection of the attention.
    net.add(x - 3, x);
}
