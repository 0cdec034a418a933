//! Weights: blobs of bytes after the module, or entries of a file beside it.

use std::io::{self, Read, Write};

use remat_ir::ElementType;
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

/// A weight that stands in a file beside the module.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// The global's name.
    pub(crate) symbol: String,
    /// The name in the file: that of the tensor.
    pub(crate) key: String,
    /// The type of the global.
    pub(crate) ty: String,
    pub(crate) weight: Weight,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: u64,
}

/// The blobs that the module refers to, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    names: Names,
    entries: Vec<(String, Weight, u64)>,
    /// Whether weights go into a file beside the module where they can.
    pub(crate) are_parameters: bool,
    /// Those that do.
    pub(crate) parameters: Vec<Parameter>,
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
        let parameters = self.parameters.iter().map(|parameter| parameter.bytes);
        self.entries.iter().map(|(_, _, bytes)| *bytes).chain(parameters).sum()
    }

    /// A name that no blob and no global has.
    pub(crate) fn claim(&mut self, name: &str) -> String {
        self.names.fresh(name)
    }

    /// Writes the section after the module. One block of one weight is in memory at a time.
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
            copy_values(model, *weight, name, *bytes, &mut |values| text::copy_hex(values, out))?;
            let comma = if index + 1 < self.entries.len() { "," } else { "" };
            writeln!(out, "\"{comma}")?;
        }
        write!(out, "    }}\n  }}\n#-}}\n")?;
        Ok(())
    }
}

/// Has `copy` copy the values of a weight, and counts them.
///
/// # Errors
/// [`ExportError::Onnx`] if values cannot be read, [`ExportError::Io`] if there are not `bytes` of them.
pub(crate) fn copy_values(
    model: &OnnxModel,
    weight: Weight,
    name: &str,
    bytes: u64,
    copy: &mut dyn FnMut(&mut dyn Read) -> io::Result<u64>,
) -> Result<(), ExportError> {
    let Some(tensor) = weight.tensor(model) else {
        return Ok(());
    };
    let copied = copy(&mut *model.values(tensor)?)?;
    if copied == bytes {
        return Ok(());
    }
    let why = format!("weight `{name}` has {copied} bytes, its shape needs {bytes}");
    Err(io::Error::new(io::ErrorKind::InvalidData, why).into())
}
