//! What is known of the operands of one node.

use std::rc::Rc;

use onnx_runtime_ir::{Attribute, Node};

use super::tensor::Tensor;

/// Which values are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follows {
    /// All that are the same whatever the model runs on.
    All,
    /// Those that a runtime follows when it loads a model: not through an operator that gives the same whatever its operand holds.
    AtLoad,
}

/// A node, and what is known of its operands.
pub(crate) struct Operands<'a> {
    /// The node, its attributes resolved.
    pub(crate) node: &'a Node,
    /// Version of the operator set that the node is of.
    pub(crate) version: u64,
    /// Which values are followed.
    pub(crate) follows: Follows,
    /// By operand: its value where it is known.
    pub(crate) values: &'a [Option<Rc<Tensor>>],
    /// By operand: its shape where all of it is known.
    pub(crate) shapes: &'a [Option<Vec<usize>>],
}

impl Operands<'_> {
    /// Whether the node has this operand; optional ones may be left out.
    pub(super) fn has(&self, index: usize) -> bool {
        self.node.inputs.get(index).is_some_and(Option::is_some)
    }

    /// The value of an operand.
    pub(super) fn value(&self, index: usize) -> Option<&Tensor> {
        self.values.get(index)?.as_deref()
    }

    /// The values of all operands.
    pub(super) fn all(&self) -> Option<Vec<&Tensor>> {
        (0..self.node.inputs.len()).map(|index| self.value(index)).collect()
    }

    /// An operand that may be left out: `None` where it is there and not known, `Some(None)` where it is left out.
    pub(super) fn optional(&self, index: usize) -> Option<Option<&Tensor>> {
        if self.has(index) {
            self.value(index).map(Some)
        } else {
            Some(None)
        }
    }

    /// Integers that are an attribute in older operator sets, an operand in newer ones; `Some(None)` where both are left out.
    pub(super) fn integers(&self, name: &str, index: usize) -> Option<Option<Vec<i64>>> {
        if let Some(values) = self.node.attr(name).and_then(Attribute::as_ints) {
            return Some(Some(values.to_vec()));
        }
        match self.optional(index)? {
            Some(tensor) => tensor.as_integers().map(|values| Some(values.to_vec())),
            None => Some(None),
        }
    }

    /// An attribute.
    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.node.attr(name).and_then(Attribute::as_int).unwrap_or(default)
    }

    /// An attribute.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.node.attr(name).and_then(Attribute::as_str)
    }
}

/// An axis counted from the front; negative ones count from the end.
pub(crate) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let rank_signed = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis + rank_signed } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// Axes counted from the front, each at most once.
pub(super) fn axes(list: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut found: Vec<usize> = list.iter().map(|&value| axis(value, rank)).collect::<Option<_>>()?;
    let given = found.len();
    found.sort_unstable();
    found.dedup();
    (found.len() == given).then_some(found)
}
