//! What is printed of blocks of channels that fill the memory.

use remat_files::shown;
use remat_onnxruntime_deploy::Padding;

use crate::units::{bytes, count};

/// What fills the memory because of the runtime's layout.
pub(crate) fn padding_text(padding: &Padding) -> String {
    let kept = match padding.padded_channels > padding.channels {
        true => format!("{} channels for {}", padding.padded_channels, padding.channels),
        false => count(usize::try_from(padding.channels).unwrap_or(usize::MAX), "channel"),
    };
    format!(
        "ONNX Runtime keeps the result of `{}` ({}) in blocks, {kept}: {}, and copies it back: {}; both are there at once \
         in every plan that keeps this layout",
        shown(&padding.node),
        shown(&padding.op_type),
        bytes(padding.blocked_bytes),
        bytes(padding.copied_bytes),
    )
}
