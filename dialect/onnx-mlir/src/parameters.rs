//! Weights in a file beside the module, which IREE binds at run time.
//!
//! The file has the safetensors format (the length of a JSON header, the header, then the bytes of all tensors without gaps), which IREE maps:
//! `iree-run-module --parameters=model=FILE.safetensors`. The module refers to its entries by name as globals.

use std::cmp::Reverse;
use std::io::Write;

use remat_ir::ElementType;
use remat_onnx::OnnxModel;

use crate::emit::Emitter;
use crate::resource::{Parameter, copy_values};
use crate::{ExportError, text};

/// The scope under which the module looks for its parameters.
const SCOPE: &str = "model";

/// Bytes at whose multiples the data of the file begin, and tensors as long as their sizes are multiples.
const ALIGNMENT: usize = 64;

/// The element type in the words of safetensors; `None` where it has none.
pub(crate) fn dtype(element: ElementType) -> Option<&'static str> {
    use ElementType as E;
    Some(match element {
        E::Float64 => "F64",
        E::Float32 => "F32",
        E::Float16 => "F16",
        E::Bfloat16 => "BF16",
        E::Float8E4M3Fn => "F8_E4M3",
        E::Float8E5M2 => "F8_E5M2",
        E::Int64 => "I64",
        E::Int32 => "I32",
        E::Int16 => "I16",
        E::Int8 => "I8",
        E::Uint64 => "U64",
        E::Uint32 => "U32",
        E::Uint16 => "U16",
        E::Uint8 => "U8",
        _ => return None,
    })
}

/// Writes the file. One block of one weight is in memory at a time.
///
/// # Errors
/// [`ExportError::Onnx`] if values cannot be read, [`ExportError::Io`].
pub(crate) fn write_file(parameters: &[Parameter], model: &OnnxModel, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut order: Vec<&Parameter> = parameters.iter().collect();
    // Gaps are not allowed, so what is not a multiple of the alignment stands last.
    order.sort_by_key(|parameter| Reverse(parameter.bytes.trailing_zeros().min(ALIGNMENT.trailing_zeros())));
    let mut header = String::from("{");
    let mut offset = 0;
    for parameter in &order {
        let comma = if offset == 0 && header.len() == 1 { "" } else { "," };
        let (key, end) = (json(&parameter.key), offset + parameter.bytes);
        let (dtype, shape) = (dtype(parameter.element).unwrap_or("U8"), &parameter.shape);
        header +=
            &format!("{comma}{key}:{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{offset},{end}]}}");
        offset = end;
    }
    header.push('}');
    let length = (8 + header.len()).next_multiple_of(ALIGNMENT) - 8;
    out.write_all(&(length as u64).to_le_bytes())?;
    write!(out, "{header:length$}")?;
    for parameter in order {
        copy_values(
            model,
            parameter.weight,
            &parameter.key,
            parameter.bytes,
            &mut |values| std::io::copy(values, out),
        )?;
    }
    Ok(())
}

/// A string of JSON.
fn json(key: &str) -> String {
    let mut text = String::from("\"");
    for c in key.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if u32::from(c) < 0x20 => text += &format!("\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

impl Emitter<'_> {
    /// Writes the globals that stand for parameters.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn globals(&mut self) -> Result<(), ExportError> {
        for Parameter { symbol, key, ty, .. } in &self.resources.parameters {
            let (scope, key) = (text::string(SCOPE.as_bytes()), text::string(key.as_bytes()));
            writeln!(
                self.out,
                "  util.global private @{symbol} = #flow.parameter.named<{scope}::{key}> : {ty}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_strings_of_json() {
        assert_eq!(json("a\"b\\\n\u{e9}"), "\"a\\\"b\\\\\\u000a\u{e9}\"");
    }
}
