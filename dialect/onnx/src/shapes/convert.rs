//! Nodes of the file as the inference rules take them.

use onnx_protobuf::attribute_proto::AttributeType;
use onnx_protobuf::{AttributeProto, NodeProto, TensorProto};
use onnx_runtime_ir::{Attribute, DataType, Node, NodeId, TensorData, ValueId};
use onnx_runtime_shape_inference::{NodeIo, TypeInfo};
use remat_ir::ValueType;
use rustc_hash::FxHashMap;

use crate::attributes::{attribute, kind};
use crate::external::Folder;
use crate::opsets::domain;
use crate::tensor::{small_values, sparse_type};
use crate::types::element;
use crate::values::Tensor;

use super::value::Value;

/// Attributes of the call that a function body may refer to.
pub(super) type Bindings<'m> = FxHashMap<&'m str, &'m AttributeProto>;

/// The attribute itself, or the one of the enclosing call that it refers to.
pub(super) fn resolve<'m>(
    attribute: &'m AttributeProto,
    bindings: Option<&Bindings<'m>>,
) -> Option<&'m AttributeProto> {
    if attribute.ref_attr_name.is_empty() {
        return Some(attribute);
    }
    bindings?.get(attribute.ref_attr_name.as_str()).copied()
}

/// The node with its attributes. The rules read operands through separate arguments, so ids only say which are there.
pub(super) fn node<'m>(proto: &'m NodeProto, bindings: Option<&Bindings<'m>>, folder: Option<&Folder>) -> Node {
    let ids = || (0_u32..).map(ValueId);
    let inputs = proto
        .input
        .iter()
        .zip(ids())
        .map(|(name, id)| (!name.is_empty()).then_some(id))
        .collect();
    let outputs = ids().take(proto.output.len()).collect();
    let mut node = Node::new(NodeId(0), proto.op_type.clone(), inputs, outputs);
    node.domain = domain(&proto.domain).to_owned();
    for attribute in &proto.attribute {
        if let Some(value) = resolve(attribute, bindings).and_then(|a| value(a, folder)) {
            node.attributes.insert(attribute.name.clone(), value);
        }
    }
    node
}

fn value(attribute: &AttributeProto, folder: Option<&Folder>) -> Option<Attribute> {
    use AttributeType as T;
    Some(match kind(attribute)? {
        T::FLOAT => Attribute::Float(attribute.f),
        T::INT => Attribute::Int(attribute.i),
        T::STRING => Attribute::String(attribute.s.clone()),
        T::FLOATS => Attribute::Floats(attribute.floats.clone()),
        T::INTS => Attribute::Ints(attribute.ints.clone()),
        T::STRINGS => Attribute::Strings(attribute.strings.clone()),
        T::TENSOR => Attribute::Tensor(tensor(attribute.t.as_ref()?, folder)?),
        // Subgraphs are entered by this crate itself; no rule reads the rest.
        T::TENSORS | T::GRAPH | T::GRAPHS | T::SPARSE_TENSOR | T::SPARSE_TENSORS | T::TYPE_PROTO | T::TYPE_PROTOS => {
            return None;
        }
        T::UNDEFINED => return None,
    })
}

/// Type and shape of a tensor, with its values if they are few.
fn tensor(proto: &TensorProto, folder: Option<&Folder>) -> Option<TensorData> {
    let dtype = DataType::from_onnx(proto.data_type)?;
    let dims = proto
        .dims
        .iter()
        .map(|&d| usize::try_from(d).ok())
        .collect::<Option<_>>()?;
    Some(TensorData::from_raw(
        dtype,
        dims,
        small_values(proto, folder).unwrap_or_default(),
    ))
}

/// The type of a `Constant` whose value is sparse.
pub(super) fn sparse_constant(node: &NodeProto) -> Option<ValueType> {
    let value = attribute(node, "sparse_value").filter(|_| node.op_type == "Constant")?;
    sparse_type(value.sparse_tensor.as_ref()?, &node.name).ok()
}

/// What is known of an initializer before the model runs: its type, and the elements of a small one.
pub(super) fn initializer(proto: &TensorProto, info: Option<TypeInfo>, folder: Option<&Folder>) -> Value {
    let tensor = small_values(proto, folder).and_then(|data| {
        let dims = proto.dims.iter().map(|&dim| usize::try_from(dim).ok());
        Tensor::from_bytes(
            element(proto.data_type).ok().flatten()?,
            dims.collect::<Option<_>>()?,
            &data,
        )
    });
    let mut value = Value::from(NodeIo {
        type_info: info,
        ..NodeIo::default()
    });
    value.know(tensor);
    value
}
