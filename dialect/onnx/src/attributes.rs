//! Attributes of nodes: their kind, the graphs inside them, and their form in the graph.

use std::collections::BTreeMap;

use onnx_protobuf::attribute_proto::AttributeType;
use onnx_protobuf::{AttributeProto, GraphProto, NodeProto};
use remat_ir::Attribute;

use crate::opsets::domain;

/// The attribute of this name.
pub(crate) fn attribute<'n>(node: &'n NodeProto, name: &str) -> Option<&'n AttributeProto> {
    node.attribute.iter().find(|a| a.name == name)
}

/// The integer attribute of this name.
pub(crate) fn int(node: &NodeProto, name: &str) -> Option<i64> {
    attribute(node, name)
        .filter(|a| kind(a) == Some(AttributeType::INT))
        .map(|a| a.i)
}

/// Which field of the attribute is in use. Files before IR version 2 leave the type out; then it is the field that is
/// filled. `None` for kinds that this version of the format does not know.
#[must_use]
pub fn kind(attribute: &AttributeProto) -> Option<AttributeType> {
    use AttributeType as T;
    let stated = attribute.type_.enum_value().ok()?;
    if stated != T::UNDEFINED {
        return Some(stated);
    }
    Some(match attribute {
        a if a.g.is_some() => T::GRAPH,
        a if !a.graphs.is_empty() => T::GRAPHS,
        a if a.t.is_some() => T::TENSOR,
        a if !a.tensors.is_empty() => T::TENSORS,
        a if a.sparse_tensor.is_some() => T::SPARSE_TENSOR,
        a if !a.sparse_tensors.is_empty() => T::SPARSE_TENSORS,
        a if a.tp.is_some() => T::TYPE_PROTO,
        a if !a.type_protos.is_empty() => T::TYPE_PROTOS,
        a if !a.floats.is_empty() => T::FLOATS,
        a if !a.ints.is_empty() => T::INTS,
        a if !a.strings.is_empty() => T::STRINGS,
        a if !a.s.is_empty() => T::STRING,
        a if a.f.to_bits() != 0 => T::FLOAT,
        _ => T::INT,
    })
}

/// The graphs inside a node's attributes, in file order.
pub(crate) fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs))
}

/// The graphs inside a node's attributes, to be changed.
pub(crate) fn subgraphs_mut(node: &mut NodeProto) -> impl Iterator<Item = &mut GraphProto> {
    node.attribute
        .iter_mut()
        .flat_map(|a| a.g.0.as_deref_mut().into_iter().chain(&mut a.graphs))
}

/// From this version of the operators on `Softmax` sums over one axis.
const ONE_AXIS: u64 = 13;

/// The attributes in the form of the graph. What only the file can hold (tensors, graphs, types) is named, not copied.
///
/// `version` is that of the operators of ONNX: before 13, `Softmax` and its like sum over all axes from `axis` on, which `flattens` says.
pub(crate) fn to_graph(node: &NodeProto, version: Option<u64>) -> BTreeMap<String, Attribute> {
    let mut attributes: BTreeMap<String, Attribute> =
        node.attribute.iter().map(|a| (a.name.clone(), value(a))).collect();
    let is_early = version.unwrap_or(1) < ONE_AXIS && domain(&node.domain).is_empty();
    if is_early && matches!(node.op_type.as_str(), "Softmax" | "LogSoftmax" | "Hardmax") {
        attributes.insert("flattens".to_owned(), Attribute::Int(1));
    }
    attributes
}

/// An attribute of a node with this value; `None` where only the file can hold it.
pub(crate) fn to_proto(name: &str, value: &Attribute) -> Option<AttributeProto> {
    use AttributeType as T;
    let mut attribute = AttributeProto {
        name: name.to_owned(),
        ..AttributeProto::default()
    };
    let kind = match value {
        Attribute::Int(value) => {
            attribute.i = *value;
            T::INT
        }
        Attribute::Float(value) => {
            attribute.f = *value;
            T::FLOAT
        }
        Attribute::String(value) => {
            attribute.s.clone_from(value);
            T::STRING
        }
        Attribute::Ints(values) => {
            attribute.ints.clone_from(values);
            T::INTS
        }
        Attribute::Floats(values) => {
            attribute.floats.clone_from(values);
            T::FLOATS
        }
        Attribute::Strings(values) => {
            attribute.strings.clone_from(values);
            T::STRINGS
        }
        Attribute::Opaque(_) => return None,
    };
    attribute.type_ = kind.into();
    Some(attribute)
}

/// Gives the node these attributes: what it has already stays as it is, whatever the graph does not hold of it included. The name of the
/// first attribute that only the file can hold and that the node does not have is an error.
pub(crate) fn change<'n>(
    node: &mut NodeProto,
    wanted: &'n BTreeMap<String, Attribute>,
    version: Option<u64>,
) -> Result<(), &'n str> {
    let has = to_graph(node, version);
    node.attribute.retain(|attribute| {
        let name = &attribute.name;
        wanted.get(name).is_some_and(|wanted| has.get(name) == Some(wanted))
    });
    for (name, value) in wanted.iter().filter(|&(name, value)| has.get(name) != Some(value)) {
        node.attribute.push(to_proto(name, value).ok_or(name.as_str())?);
    }
    Ok(())
}

fn value(attribute: &AttributeProto) -> Attribute {
    use AttributeType as T;
    let opaque = |what: &str| Attribute::Opaque(what.to_owned());
    if !attribute.ref_attr_name.is_empty() {
        return Attribute::Opaque(format!("attribute {}", attribute.ref_attr_name));
    }
    match kind(attribute) {
        Some(T::FLOAT) => Attribute::Float(attribute.f),
        Some(T::INT) => Attribute::Int(attribute.i),
        Some(T::STRING) => Attribute::String(attribute.s.clone()),
        Some(T::FLOATS) => Attribute::Floats(attribute.floats.clone()),
        Some(T::INTS) => Attribute::Ints(attribute.ints.clone()),
        Some(T::STRINGS) => Attribute::Strings(attribute.strings.clone()),
        Some(T::TENSOR) => opaque("tensor"),
        Some(T::TENSORS) => opaque("tensors"),
        Some(T::GRAPH) => opaque("graph"),
        Some(T::GRAPHS) => opaque("graphs"),
        Some(T::SPARSE_TENSOR) => opaque("sparse tensor"),
        Some(T::SPARSE_TENSORS) => opaque("sparse tensors"),
        Some(T::TYPE_PROTO) => opaque("type"),
        Some(T::TYPE_PROTOS) => opaque("types"),
        Some(T::UNDEFINED) | None => opaque("unknown"),
    }
}
