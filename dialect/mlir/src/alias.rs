//! Where results live: operations whose result looks into the memory of an operand.
//!
//! `BufferizableOpInterface` says so for what can be bufferized as it is. The operations below are lowered to such ones first, by
//! the passes of their dialects, and their results are views then.

use crate::ffi::Bufferization;

/// Operations whose only result is a view of operand 0, by domain.
const VIEWS: &[(&str, &[&str])] = &[
    ("tosa", &["identity", "reshape", "slice"]),
    ("stablehlo", &["reshape"]),
    ("", &["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"]),
    ("remat", &["recompute"]),
];

/// Whether result 0 of the operation looks into the memory of operand 0, by name.
pub(crate) fn is_view(domain: &str, op_type: &str) -> bool {
    VIEWS
        .iter()
        .any(|&(known, ops)| known == domain && ops.contains(&op_type))
}

/// What bufferization may make of operand `index`.
pub(crate) fn operand(domain: &str, op_type: &str, index: usize, said: Bufferization) -> Bufferization {
    if index == 0 && is_view(domain, op_type) {
        Bufferization::View(0)
    } else {
        said
    }
}
