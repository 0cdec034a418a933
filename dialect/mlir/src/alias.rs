//! Where results live: in the memory of an operand, or in memory of their own.
//!
//! For operations that can be bufferized as they are, `BufferizableOpInterface` decides. The operations named below are first lowered to
//! such ones by the passes of their dialects; their results are then views.

use melior::ir::OperationRef;
use remat_operators::operator;

use crate::ffi::{self, Alias};

/// The operands and results of an operation of this domain and type that may share memory.
pub(crate) fn aliases(op: OperationRef<'_, '_>, domain: &str, op_type: &str) -> Vec<Alias> {
    if operator(domain, op_type).is_view() {
        let view = Alias {
            operand: 0,
            result: 0,
            written: false,
        };
        vec![view]
    } else {
        ffi::aliases(op)
    }
}
