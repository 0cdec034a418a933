//! Rows of images that are put back into blocks of channels, so that what reads them has the bits of the whole.
//!
//! ONNX Runtime's `Slice`, and its `Concat` along any axis but that of channels, know no blocks: rows that one of them makes are in none, though the image
//! that they are rows of is. An addition then no longer becomes part of the convolution before it, and is rounded otherwise. A `MaxPool` of single
//! elements gives what it reads, and the runtime puts its operand into blocks. Of what it reads it changes one number: minus infinity, to the
//! least number that is finite (`core/mlas/lib/snchwc.cpp`).

use remat_ir::{Attribute, OpId, OpSpec, Placement, TensorId};
use remat_operators::Blocked;

use crate::FissionError;
use crate::forms::blocked;
use crate::pieces::Writer;

/// Channels of which every machine's blocks are full.
const FULL: u64 = 16;

impl Writer<'_> {
    /// What an op is to read instead of `operands`: where it needs blocks, those outside of them are put back.
    pub(crate) fn in_blocks(
        &mut self,
        op: OpId,
        mut operands: Vec<Option<TensorId>>,
    ) -> Result<Vec<Option<TensorId>>, FissionError> {
        if self.blocks.needed_by.contains(&op) {
            for (old, operand) in self.transfer.graph.ops[op].inputs.iter().zip(&mut operands) {
                if let (&Some(old), Some(operand)) = (old, operand) {
                    *operand = self.back_in_blocks(old, *operand)?;
                }
            }
        }
        Ok(operands)
    }

    /// Notes what of the results of an op is outside of blocks because something that it reads is.
    pub(crate) fn follow_blocks(&mut self, op: OpId, operands: &[Option<TensorId>], results: &[Option<TensorId>]) {
        let enters = matches!(
            blocked(&self.transfer.graph.ops[op]),
            Blocked::Convolution { .. } | Blocked::Pool { global: false, .. }
        );
        if !enters
            && operands
                .iter()
                .flatten()
                .any(|&operand| self.blocks.is_outside(operand))
        {
            for &result in results.iter().flatten() {
                self.blocks.leave(result);
            }
        }
    }

    /// A tensor of the new graph, which holds a box of `tensor`, in blocks.
    fn back_in_blocks(&mut self, tensor: TensorId, held: TensorId) -> Result<TensorId, FissionError> {
        let ranges = self.ranges(tensor, held);
        let fills = ranges.len() == 4 && (ranges[1].end - ranges[1].start).is_multiple_of(FULL);
        if !fills || !self.blocks.is_outside(held) {
            return Ok(held);
        }
        if let Some(&back) = self.blocks.back.get(&held) {
            return Ok(back);
        }
        let (of, rows) = (self.transfer.tensor_of(tensor), &ranges[2]);
        let name = self
            .names
            .tensor(format_args!("{of}_blocks{}_{}", rows.start, rows.end));
        let mut spec = OpSpec::new(String::new(), "MaxPool");
        spec.attributes
            .insert("kernel_shape".to_owned(), Attribute::Ints(vec![1; ranges.len() - 2]));
        spec.inputs = vec![Some(held)];
        let back = self.finish_move(spec, tensor, name, Placement::New, ranges)?;
        self.blocks.back.insert(held, back);
        Ok(back)
    }
}
