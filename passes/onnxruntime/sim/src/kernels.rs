//! Which results live in the memory of an operand: what the runtime's CPU kernels declare.

use remat_operators::{Operator, Sharing, operator};

use crate::Node;

/// What is known of the node's operator.
pub(crate) fn row(node: &Node) -> &'static Operator {
    operator(&node.domain, &node.op_type)
}

/// The operand whose memory result `output` is, whatever the sizes; `tensor` says whether that result is a dense tensor.
pub(crate) fn alias(node: &Node, output: usize, tensor: bool) -> Option<usize> {
    let alias = match row(node).shares {
        Sharing::Nothing | Sharing::EachView => false,
        Sharing::View => tensor,
        Sharing::Wrapper => true,
    };
    let updated = row(node).updates.operand_of(output).filter(|_| tensor);
    updated.or((output == 0 && alias).then_some(0))
}

/// The operand that result `output` may overwrite, if nobody needs it any more and the sizes are equal.
pub(crate) fn in_place(node: &Node, output: usize) -> Option<usize> {
    row(node).overwrites.filter(|_| output == 0)
}
