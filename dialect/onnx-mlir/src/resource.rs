//! Weights, which stand behind the module as blobs of bytes.

use std::io::{self, Write};

use remat_onnx::OnnxModel;
use remat_onnx::proto::TensorProto;

use crate::names::Names;
use crate::{ExportError, text};

/// Bytes that MLIR aligns each blob to; readers map elements of up to 16 bytes.
const ALIGNMENT: u32 = 16;

/// Where a weight of the model lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weight {
    /// The initializer at this position.
    Initializer(usize),
    /// The attribute `value` of the node at this position.
    Constant(usize),
}

impl Weight {
    /// The tensor itself.
    pub(crate) fn tensor(self, model: &OnnxModel) -> Option<&TensorProto> {
        let graph = model.proto().graph.as_ref()?;
        match self {
            Self::Initializer(index) => graph.initializer.get(index),
            Self::Constant(index) => {
                let mut attributes = graph.node.get(index)?.attribute.iter();
                attributes.find(|a| a.name == "value").and_then(|a| a.t.as_ref())
            }
        }
    }
}

/// The blobs that the module refers to, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    names: Names,
    entries: Vec<(String, Weight, u64)>,
}

impl Resources {
    /// The name under which a weight of `bytes` bytes will stand.
    pub(crate) fn add(&mut self, name: &str, weight: Weight, bytes: u64) -> String {
        let known = self.entries.iter().rev().find(|(_, other, _)| *other == weight);
        if let Some((name, ..)) = known {
            return name.clone();
        }
        let name = self.names.fresh(name);
        self.entries.push((name.clone(), weight, bytes));
        name
    }

    /// Bytes of all blobs together.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// Writes the section behind the module. One block of one weight is in memory at a time.
    ///
    /// # Errors
    /// [`ExportError::Onnx`] if values cannot be read, [`ExportError::Io`].
    pub(crate) fn write(&self, model: &OnnxModel, out: &mut dyn Write) -> Result<(), ExportError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        write!(out, "\n{{-#\n  dialect_resources: {{\n    builtin: {{\n")?;
        for (index, (name, weight, bytes)) in self.entries.iter().enumerate() {
            write!(out, "      {name}: \"0x")?;
            text::copy_hex(&mut &ALIGNMENT.to_le_bytes()[..], out)?;
            if let Some(tensor) = weight.tensor(model) {
                let copied = text::copy_hex(&mut *model.values(tensor)?, out)?;
                if copied != *bytes {
                    let why = format!("weight `{name}` has {copied} bytes, its shape needs {bytes}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
                }
            }
            let comma = if index + 1 < self.entries.len() { "," } else { "" };
            writeln!(out, "\"{comma}")?;
        }
        write!(out, "    }}\n  }}\n#-}}\n")?;
        Ok(())
    }
}
