//! Sets of operators: their domain and version.

use std::collections::HashMap;

use onnx_protobuf::OperatorSetIdProto;

/// The default domain is written as nothing or as `ai.onnx`.
pub(crate) fn domain(text: &str) -> &str {
    if text == "ai.onnx" { "" } else { text }
}

/// Versions of operator sets by domain. A domain that is not imported counts as version 1.
pub(crate) type Opsets = HashMap<String, u64>;

/// The imports of a model or function.
pub(crate) fn opsets(imports: &[OperatorSetIdProto]) -> Opsets {
    imports
        .iter()
        .map(|i| {
            (
                domain(&i.domain).to_owned(),
                u64::try_from(i.version).unwrap_or(1).max(1),
            )
        })
        .collect()
}
