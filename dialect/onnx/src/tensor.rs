//! Tensors in the file: their shape, and the values of the small ones.
//!
//! Only values that shape inference can use are ever read.

use std::io::Read;

use onnx_protobuf::{SparseTensorProto, TensorProto};
use remat_ir::{ElementType, ValueType};

use crate::OnnxError;
use crate::external::{Folder, is_external};
use crate::types::MAX_RANK;
use crate::types::element;
use crate::values::MAX_ELEMENTS;

/// Values of larger tensors are not read, but for lists of indices.
const SMALL: u64 = 1024;

/// Element type and shape of a dense tensor.
///
/// # Errors
/// [`OnnxError::ShapeOverflow`] for negative dimensions or a size beyond 64 bits, [`OnnxError::BadTensor`] if the element
/// type is missing or unknown, or if there are more or fewer bytes of raw data than the shape says.
pub(crate) fn dense_type(tensor: &TensorProto, node: &str) -> Result<ValueType, OnnxError> {
    let ty = stated_type(&tensor.name, tensor.data_type, &tensor.dims, node)?;
    let raw = tensor.raw_data.len() as u64;
    let expected = ty.bytes().ok().flatten().unwrap_or(0);
    if raw != 0 && !is_external(tensor) && raw != expected && ty.element() != Some(ElementType::String) {
        let why = format!("its shape needs {expected} bytes, the file has {raw}");
        return Err(OnnxError::BadTensor {
            tensor: tensor.name.clone(),
            why,
        });
    }
    Ok(ty)
}

/// Element type and shape of the dense tensor that a sparse one stands for; runtimes expand sparse initializers at load.
///
/// # Errors
/// Those of [`dense_type`].
pub(crate) fn sparse_type(tensor: &SparseTensorProto, node: &str) -> Result<ValueType, OnnxError> {
    let values = tensor.values.get_or_default();
    stated_type(&values.name, values.data_type, &tensor.dims, node)
}

fn stated_type(name: &str, code: i32, dims: &[i64], node: &str) -> Result<ValueType, OnnxError> {
    let bad_type = |why: String| OnnxError::BadTensor {
        tensor: name.to_owned(),
        why,
    };
    let impossible = |why: String| OnnxError::ShapeOverflow {
        node: node.to_owned(),
        tensor: name.to_owned(),
        why,
    };
    let element = element(code)
        .map_err(bad_type)?
        .ok_or_else(|| bad_type("it has no element type".to_owned()))?;
    if dims.len() > MAX_RANK {
        return Err(impossible(format!(
            "{} dimensions are more than {MAX_RANK}",
            dims.len()
        )));
    }
    let dims: Vec<u64> = dims
        .iter()
        .map(|&d| u64::try_from(d).map_err(|_| impossible(format!("dimension {d} is negative"))))
        .collect::<Result<_, _>>()?;
    let ty = ValueType::tensor(element, &dims);
    ty.bytes().map_err(|error| impossible(error.to_string()))?;
    Ok(ty)
}

/// The elements of a small tensor of numbers as little-endian bytes, densely packed as in `raw_data`.
///
/// `None` if the tensor is large, of strings or sub-byte elements, broken, or external and unreadable.
pub(crate) fn small_values(tensor: &TensorProto, folder: Option<&Folder>) -> Option<Vec<u8>> {
    let element = element(tensor.data_type).ok().flatten()?;
    let limit = match element {
        // Lists of indices and masks, from which shapes follow.
        ElementType::Int64 | ElementType::Int32 | ElementType::Bool => MAX_ELEMENTS as u64,
        _ => SMALL,
    };
    let mut dims = tensor.dims.iter().map(|&dim| u64::try_from(dim).ok());
    let count = dims
        .try_fold(1_u64, |count, dim| count.checked_mul(dim?))
        .filter(|&count| count <= limit)?;
    if element == ElementType::String || element.bits() < 8 {
        return None;
    }
    let bytes = usize::try_from(count * element.bits() / 8).ok()?;
    let data = if is_external(tensor) {
        folder?.read(tensor, bytes)?
    } else {
        values(tensor)?
    };
    (data.len() == bytes).then_some(data)
}

/// The elements of a tensor of numbers; see [`crate::OnnxModel::values`].
pub(crate) fn reader<'m>(tensor: &'m TensorProto, folder: Option<&Folder>) -> Result<Box<dyn Read + 'm>, OnnxError> {
    let ty = dense_type(tensor, "a tensor")?;
    let bytes = ty.bytes().ok().flatten().unwrap_or(0);
    if ty.element() == Some(ElementType::String) {
        let why = "its elements are strings".to_owned();
        return Err(OnnxError::BadTensor {
            tensor: tensor.name.clone(),
            why,
        });
    }
    if is_external(tensor) {
        let folder = folder.ok_or_else(|| OnnxError::ExternalData {
            tensor: tensor.name.clone(),
            why: "the model came without its folder".to_owned(),
        })?;
        return Ok(Box::new(folder.reader(tensor, bytes)?));
    }
    if tensor.raw_data.is_empty() {
        let element = ty.element().unwrap_or(ElementType::Float32);
        return Ok(Box::new(std::io::Cursor::new(typed_values(tensor, element))));
    }
    Ok(Box::new(&tensor.raw_data[..]))
}

/// The elements of a tensor of numbers as little-endian bytes, densely packed as in `raw_data`.
///
/// `None` if the values are in another file, strings, or smaller than a byte.
pub(crate) fn values(tensor: &TensorProto) -> Option<Vec<u8>> {
    let element = element(tensor.data_type).ok().flatten()?;
    if is_external(tensor) || element == ElementType::String || element.bits() < 8 {
        return None;
    }
    Some(if tensor.raw_data.is_empty() {
        typed_values(tensor, element)
    } else {
        tensor.raw_data.clone()
    })
}

/// Bytes of the values in the typed fields. Which field holds which type: `onnx.proto`, message `TensorProto`.
fn typed_values(tensor: &TensorProto, element: ElementType) -> Vec<u8> {
    match element {
        ElementType::Float32 | ElementType::Complex64 => {
            tensor.float_data.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
        ElementType::Float64 | ElementType::Complex128 => {
            tensor.double_data.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
        ElementType::Int64 => tensor.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ElementType::Uint64 => tensor.uint64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ElementType::Uint32 => tensor
            .uint64_data
            .iter()
            .flat_map(|v| v.to_le_bytes()[..4].to_vec())
            .collect(),
        _ => {
            // Parts of bytes are packed to whole bytes, one in each number.
            let width = usize::try_from(element.bits() / 8).unwrap_or(4).clamp(1, 4);
            tensor
                .int32_data
                .iter()
                .flat_map(|v| v.to_le_bytes()[..width].to_vec())
                .collect()
        }
    }
}
