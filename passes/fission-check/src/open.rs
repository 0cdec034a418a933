//! Dimensions that the model leaves open: what is written is right for all of their sizes.

use remat_ir::{Op, OpId, TensorId};
use remat_verify::Code;

use super::Checker;
use super::values::Rows;

impl Checker<'_> {
    /// Whether nothing is cut along an axis of a tensor of the original that is left open.
    pub(super) fn cuts_nothing_open(&mut self, id: OpId, op: &Op, of: TensorId, rows: &[Rows]) {
        let was = &self.original.tensors[of];
        let axes = was.ty.dims().iter().zip(rows).enumerate();
        let cut = axes
            .filter(|(_, (dim, rows))| dim.is_free() && dim.size() != Some(rows.end - rows.start))
            .map(|(axis, _)| axis);
        for axis in cut {
            self.add(Code::F016, id, || {
                format!(
                    "`{}` cuts axis {axis} of `{}`, whose size is left open",
                    op.name, was.name
                )
            });
        }
    }

    /// Whether a result leaves these axes open, and no others.
    pub(super) fn leaves_open(&mut self, id: OpId, op: &Op, result: TensorId, is_open: impl Fn(usize) -> bool) {
        let tensor = &self.tiled.tensors[result];
        for axis in 0..tensor.ty.dims().len() {
            let should = if is_open(axis) { "is" } else { "is not" };
            if tensor.ty.is_free(axis) != is_open(axis) {
                self.add(Code::F016, id, || {
                    let (name, ty) = (&tensor.name, &tensor.ty);
                    format!("`{name}` of `{}` is {ty}, axis {axis} {should} left open", op.name)
                });
            }
        }
    }
}
