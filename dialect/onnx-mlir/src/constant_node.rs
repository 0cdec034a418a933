//! `Constant` nodes, whichever attribute holds their value.

use std::borrow::Cow;

use remat_ir::Op;
use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::tensor_proto::DataType;
use remat_onnx::proto::{AttributeProto, NodeProto, TensorProto};

use crate::ExportError;
use crate::emit::Emitter;
use crate::level::Level;
use crate::resource::Weight;

impl Emitter<'_> {
    /// Writes the node as initializers are written: one form of constants is enough for readers.
    ///
    /// # Errors
    /// [`ExportError::Unsupported`] for sparse values.
    pub(crate) fn constant_node(
        &mut self,
        level: &mut Level<'_>,
        op: &Op,
        node: &NodeProto,
        place: &str,
    ) -> Result<(), ExportError> {
        let Some(result) = op.results().next() else {
            return Ok(());
        };
        let Some(tensor) = node.attribute.iter().find_map(stated_value) else {
            return Err(self.unsupported(place, "it has no constants but dense tensors, numbers and strings"));
        };
        let weight = match (&tensor, op.source) {
            (Cow::Borrowed(_), Some(source)) if level.is_main => Some(Weight::Constant(source as usize)),
            _ => None,
        };
        let called = &level.graph.tensors[result].name;
        let location = format!("{}{}", level.path, op.name);
        let value = self.constant(level.model, &tensor, (called, &location), place, weight)?;
        level.bind(result, value);
        Ok(())
    }
}

/// The value that an attribute of a `Constant` node states: a tensor, or numbers and strings, of which one is made.
fn stated_value(attribute: &AttributeProto) -> Option<Cow<'_, TensorProto>> {
    use AttributeType as T;
    let vector = |length: usize| vec![i64::try_from(length).unwrap_or(i64::MAX)];
    let made = |data_type: DataType, dims: Vec<i64>| TensorProto {
        name: attribute.name.clone(),
        data_type: data_type as i32,
        dims,
        ..TensorProto::default()
    };
    Some(Cow::Owned(match remat_onnx::attribute_kind(attribute)? {
        T::TENSOR => return attribute.t.as_ref().map(Cow::Borrowed),
        T::INT => TensorProto {
            int64_data: vec![attribute.i],
            ..made(DataType::INT64, Vec::new())
        },
        T::INTS => TensorProto {
            int64_data: attribute.ints.clone(),
            ..made(DataType::INT64, vector(attribute.ints.len()))
        },
        T::FLOAT => TensorProto {
            float_data: vec![attribute.f],
            ..made(DataType::FLOAT, Vec::new())
        },
        T::FLOATS => TensorProto {
            float_data: attribute.floats.clone(),
            ..made(DataType::FLOAT, vector(attribute.floats.len()))
        },
        T::STRING => TensorProto {
            string_data: vec![attribute.s.clone()],
            ..made(DataType::STRING, Vec::new())
        },
        T::STRINGS => TensorProto {
            string_data: attribute.strings.clone(),
            ..made(DataType::STRING, vector(attribute.strings.len()))
        },
        _ => return None,
    }))
}
