//! Where results live: in the memory of an operand, or in memory of their own.
//!
//! For operations that can be bufferized as they are, `BufferizableOpInterface` decides. The operations named below are first lowered to
//! such ones by the passes of their dialects; their results are then views.

use melior::ir::OperationRef;

use crate::ffi::{self, Alias};

/// Operations whose only result is a view of operand 0, by domain.
const VIEWS: &[(&str, &[&str])] = &[
    ("tosa", &["identity", "reshape", "slice"]),
    ("stablehlo", &["reshape"]),
    ("", &["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"]),
];

/// The operands and results of an operation of this domain and type that may share memory.
pub(crate) fn aliases(op: OperationRef<'_, '_>, domain: &str, op_type: &str) -> Vec<Alias> {
    let named = VIEWS
        .iter()
        .any(|&(known, ops)| known == domain && ops.contains(&op_type));
    if named {
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
