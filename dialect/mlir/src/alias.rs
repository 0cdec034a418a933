//! Where results live: in the memory of an operand, or in memory of their own.
//!
//! For operations that can be bufferized as they are, `BufferizableOpInterface` decides. The operations named below are first lowered to
//! such ones by the passes of their dialects; their results are then views.

use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use remat_operators::{Sharing, operator};

use crate::ffi::{self, Alias};

/// The operands and results of an operation of this domain and type that may share memory.
pub(crate) fn aliases(op: OperationRef<'_, '_>, domain: &str, op_type: &str) -> Vec<Alias> {
    let view = |number| Alias {
        operand: number,
        result: number,
        written: false,
    };
    match operator(domain, op_type).shares {
        Sharing::View => vec![view(0)],
        Sharing::EachView => (0..op.result_count().min(op.operand_count())).map(view).collect(),
        Sharing::Nothing | Sharing::Wrapper => ffi::aliases(op),
    }
}
