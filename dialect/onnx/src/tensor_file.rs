//! Files that hold one tensor, as the test data of models do.

use onnx_protobuf::{Message, TensorProto};

use crate::{OnnxError, tensor, wire};

/// A tensor with its values, from a file that holds a `TensorProto` (`onnx.save_tensor` writes such files).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorFile {
    /// Name of the tensor; may be empty.
    pub name: String,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// The elements, little-endian and densely packed.
    pub bytes: Vec<u8>,
}

impl TensorFile {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// [`OnnxError`] for what is no tensor; [`OnnxError::BadTensor`] for tensors of strings or sub-byte elements, for values in another file
    /// and for values that do not fit the shape.
    pub fn read(bytes: &[u8]) -> Result<Self, OnnxError> {
        wire::scan_tensor(bytes)?;
        let proto = TensorProto::parse_from_bytes(bytes).map_err(|error| OnnxError::NotOnnx {
            offset: 0,
            why: error.to_string(),
        })?;
        let ty = tensor::dense_type(&proto, "a tensor file")?;
        let bad = |why: &str| OnnxError::BadTensor {
            tensor: proto.name.clone(),
            why: why.to_owned(),
        };
        let values =
            tensor::values(&proto).ok_or_else(|| bad("its values are elsewhere, strings or parts of bytes"))?;
        if ty.bytes().ok().flatten() != Some(values.len() as u64) {
            return Err(bad("its values do not fit its shape"));
        }
        Ok(Self {
            shape: ty.known_shape().unwrap_or_default(),
            bytes: values,
            name: proto.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use onnx_protobuf::tensor_proto::DataLocation;

    use super::*;

    fn proto() -> TensorProto {
        TensorProto {
            name: "x".to_owned(),
            dims: vec![2, 1],
            data_type: 1,
            float_data: vec![1.0, -2.0],
            ..TensorProto::default()
        }
    }

    fn read(proto: &TensorProto) -> Result<TensorFile, OnnxError> {
        TensorFile::read(&proto.write_to_bytes().expect("it can be written"))
    }

    #[test]
    fn values_are_read_wherever_the_tensor_keeps_them() {
        let typed = read(&proto()).expect("it is a tensor");
        assert_eq!((typed.name.as_str(), &typed.shape[..]), ("x", &[2, 1][..]));
        let raw = TensorProto {
            float_data: Vec::new(),
            raw_data: typed.bytes.clone(),
            ..proto()
        };
        assert_eq!(read(&raw).expect("it is a tensor"), typed);
    }

    #[test]
    fn what_holds_no_values_or_too_few_is_refused() {
        let too_few = TensorProto {
            dims: vec![3],
            ..proto()
        };
        let strings = TensorProto {
            data_type: 8,
            ..proto()
        };
        let elsewhere = TensorProto {
            data_location: DataLocation::EXTERNAL.into(),
            ..proto()
        };
        for broken in [too_few, strings, elsewhere] {
            assert!(matches!(read(&broken), Err(OnnxError::BadTensor { .. })), "{broken:?}");
        }
        assert!(TensorFile::read(b"").is_err());
        assert!(TensorFile::read(b"\x93NUMPY").is_err());
    }
}
