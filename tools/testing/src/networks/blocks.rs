//! Training steps of networks that repeat blocks: gradients follow every edge, as automatic differentiation makes them.

use remat_plan::Problem;

use crate::net::paper;

/// What the gradient of a forward op reads besides the gradient of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Saved {
    /// Nothing: a sum.
    Nothing,
    /// All operands.
    Operands,
    /// The result.
    Result,
}

/// A forward op.
#[derive(Clone, Debug)]
struct Forward {
    duration: u64,
    bytes: u64,
    reads: Vec<usize>,
    saved: Saved,
    has_weights: bool,
}

/// A network to be trained, forward op by forward op. A value is the number of the op that makes it.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    ops: Vec<Forward>,
}

impl Blocks {
    fn push(&mut self, duration: u64, bytes: u64, reads: &[usize], saved: Saved, has_weights: bool) -> usize {
        self.ops.push(Forward {
            duration,
            bytes,
            reads: reads.to_vec(),
            saved,
            has_weights,
        });
        self.ops.len() - 1
    }

    /// An op that takes little time for what it makes.
    fn cheap(&mut self, bytes: u64, reads: &[usize], saved: Saved) -> usize {
        self.push(bytes / 4 + 1, bytes, reads, saved, false)
    }

    /// An op with weights.
    fn dense(&mut self, duration: u64, bytes: u64, read: usize) -> usize {
        self.push(duration, bytes, &[read], Saved::Operands, true)
    }

    fn attention(&mut self, x: usize, bytes: u64, scores: u64) -> usize {
        let normal = self.cheap(bytes, &[x], Saved::Operands);
        let query = self.dense(bytes, bytes, normal);
        let key = self.dense(bytes, bytes, normal);
        let value = self.dense(bytes, bytes, normal);
        let products = self.push(scores, scores, &[query, key], Saved::Operands, false);
        let weights = self.cheap(scores, &[products], Saved::Result);
        let dropped = self.cheap(scores, &[weights], Saved::Nothing);
        let mixed = self.push(scores, bytes, &[dropped, value], Saved::Operands, false);
        let out = self.dense(bytes, bytes, mixed);
        self.cheap(bytes, &[x, out], Saved::Nothing)
    }

    fn perceptron(&mut self, x: usize, bytes: u64) -> usize {
        let normal = self.cheap(bytes, &[x], Saved::Operands);
        let wide = self.dense(4 * bytes, 4 * bytes, normal);
        let active = self.cheap(4 * bytes, &[wide], Saved::Operands);
        let narrow = self.dense(4 * bytes, bytes, active);
        self.cheap(bytes, &[x, narrow], Saved::Nothing)
    }

    /// Normalization, activation and convolution.
    fn convolution(&mut self, x: usize, time: u64, bytes: u64, read: u64) -> usize {
        let normal = self.cheap(read, &[x], Saved::Operands);
        let active = self.cheap(read, &[normal], Saved::Result);
        self.dense(time, bytes, active)
    }

    /// A transformer of so many layers.
    #[must_use]
    pub fn transformer(layers: usize) -> Self {
        let mut net = Self::default();
        let mut x = net.cheap(64, &[], Saved::Nothing);
        for _ in 0..layers {
            x = net.attention(x, 64, 160);
            x = net.perceptron(x, 64);
        }
        let logits = net.dense(900, 700, x);
        net.cheap(8, &[logits], Saved::Operands);
        net
    }

    /// Three stages of so many bottleneck blocks each.
    #[must_use]
    pub fn residual(blocks: usize) -> Self {
        let mut net = Self::default();
        let mut x = net.cheap(256, &[], Saved::Nothing);
        for stage in 0..3 {
            let (wide, narrow) = (256 >> stage, 64 >> stage);
            x = net.convolution(x, 120, wide, wide);
            for _ in 0..blocks {
                let down = net.convolution(x, 90, narrow, wide);
                let middle = net.convolution(down, 150, narrow, narrow);
                let up = net.convolution(middle, 90, wide, narrow);
                x = net.cheap(wide, &[x, up], Saved::Nothing);
            }
        }
        net.cheap(8, &[x], Saved::Operands);
        net
    }

    /// Levels of so many blocks of convolutions and attention each, down and up again, with connections across.
    #[must_use]
    pub fn u_net(blocks: usize) -> Self {
        let mut net = Self::default();
        let mut x = net.cheap(512, &[], Saved::Nothing);
        let mut skipped = Vec::new();
        for level in 0..4 {
            let bytes = 512 >> level;
            for _ in 0..blocks {
                x = net.diffusion_block(x, bytes, bytes);
                skipped.push(x);
            }
            x = net.dense(100, bytes / 2, x);
        }
        for level in (0..4).rev() {
            let bytes = 512 >> level;
            x = net.dense(100, bytes, x);
            for _ in 0..blocks {
                let other = skipped.pop().unwrap_or(x);
                let both = net.cheap(2 * bytes, &[x, other], Saved::Nothing);
                x = net.diffusion_block(both, bytes, 2 * bytes);
            }
        }
        net.cheap(8, &[x], Saved::Operands);
        net
    }

    fn diffusion_block(&mut self, x: usize, bytes: u64, read: u64) -> usize {
        let first = self.convolution(x, 200, bytes, read);
        let second = self.convolution(first, 200, bytes, bytes);
        let shortcut = self.dense(50, bytes, x);
        let sum = self.cheap(bytes, &[second, shortcut], Saved::Nothing);
        let attended = self.attention(sum, bytes, 64);
        self.perceptron(attended, bytes)
    }

    /// The training step in fixed order and paper accounting, without budget. A gradient of an operand is an op of its own, as are sums
    /// of gradients and the gradients of weights, which are nobody's operands.
    #[must_use]
    pub fn training(&self) -> Problem {
        let mut ops: Vec<(u64, u64, Vec<usize>)> = Vec::new();
        for op in &self.ops {
            ops.push((op.duration, op.bytes, op.reads.clone()));
        }
        let mut gradients: Vec<Option<usize>> = vec![None; self.ops.len()];
        for (value, op) in self.ops.iter().enumerate().rev() {
            let mut reads: Vec<usize> = gradients[value].into_iter().collect();
            match op.saved {
                Saved::Nothing => {}
                Saved::Operands => reads.extend(&op.reads),
                Saved::Result => reads.push(value),
            }
            for &read in &op.reads {
                let bytes = self.ops[read].bytes;
                ops.push((op.duration, bytes, reads.clone()));
                let new = ops.len() - 1;
                gradients[read] = Some(match gradients[read] {
                    None => new,
                    Some(other) => {
                        ops.push((bytes / 4 + 1, bytes, vec![other, new]));
                        ops.len() - 1
                    }
                });
            }
            if op.has_weights {
                ops.push((op.duration, 16, reads));
            }
        }
        paper(&ops)
    }
}
