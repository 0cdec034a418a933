//! Fields that are written although they hold zero.
//!
//! ONNX files are in version 2 of protobuf, where a field that holds zero differs from one that is not there, and the checker of ONNX
//! asks for some that may hold zero: the element type of a tensor nobody states the type of. The parser is made for version 3, which
//! writes no zeros. So these are stored as unknown fields, which the parser writes as they are.

use onnx_protobuf::{FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, type_proto};
use protobuf::SpecialFields;

use crate::attributes::subgraphs_mut;

/// Field numbers of `onnx.proto`.
const IR_VERSION: u32 = 1;
const FUNCTION_DOMAIN: u32 = 10;
/// The element type of a tensor or sparse tensor and the key type of a map.
const ELEMENT: u32 = 1;

/// Keeps the zeros of a model that was just parsed.
pub(crate) fn keep_zeros(model: &mut ModelProto) {
    if model.ir_version == 0 {
        keep_number(&mut model.special_fields, IR_VERSION);
    }
    model.graph.as_mut().into_iter().for_each(of_graph);
    for training in &mut model.training_info {
        training.initialization.as_mut().into_iter().for_each(of_graph);
        training.algorithm.as_mut().into_iter().for_each(of_graph);
    }
    model.functions.iter_mut().for_each(of_function);
}

fn of_function(function: &mut FunctionProto) {
    if function.domain.is_empty() {
        let unknown = function.special_fields.mut_unknown_fields();
        unknown.remove(FUNCTION_DOMAIN);
        unknown.add_length_delimited(FUNCTION_DOMAIN, Vec::new());
    }
    function.value_info.iter_mut().for_each(of_value);
    function.node.iter_mut().for_each(of_node);
}

fn of_graph(graph: &mut GraphProto) {
    let values = graph.input.iter_mut().chain(&mut graph.output);
    values.chain(&mut graph.value_info).for_each(of_value);
    graph.node.iter_mut().for_each(of_node);
}

fn of_node(node: &mut NodeProto) {
    subgraphs_mut(node).for_each(of_graph);
}

fn of_value(value: &mut ValueInfoProto) {
    value.type_.as_mut().into_iter().for_each(of_type);
}

fn of_type(ty: &mut TypeProto) {
    use type_proto::Value as V;
    match &mut ty.value {
        Some(V::TensorType(tensor)) if tensor.elem_type == 0 => keep_number(&mut tensor.special_fields, ELEMENT),
        Some(V::SparseTensorType(tensor)) if tensor.elem_type == 0 => keep_number(&mut tensor.special_fields, ELEMENT),
        Some(V::SequenceType(sequence)) => sequence.elem_type.as_mut().into_iter().for_each(of_type),
        Some(V::OptionalType(optional)) => optional.elem_type.as_mut().into_iter().for_each(of_type),
        Some(V::MapType(map)) => {
            if map.key_type == 0 {
                keep_number(&mut map.special_fields, ELEMENT);
            }
            map.value_type.as_mut().into_iter().for_each(of_type);
        }
        _ => {}
    }
}

fn keep_number(fields: &mut SpecialFields, number: u32) {
    let unknown = fields.mut_unknown_fields();
    unknown.remove(number);
    unknown.add_varint(number, 0);
}

#[cfg(test)]
mod tests {
    use onnx_protobuf::Message;

    use super::*;

    #[test]
    fn an_element_type_of_zero_is_written_as_it_was_read() {
        // A model of a graph with an input whose type is a tensor of element type 0.
        let bytes = [
            &[0x08, 9, 0x3a, 13][..],
            &[0x5a, 11, 0x0a, 1, b'x', 0x12, 6, 0x0a, 4],
            &[0x08, 0, 0x12, 0],
        ]
        .concat();
        let mut model = ModelProto::parse_from_bytes(&bytes).unwrap();
        assert!(
            model.write_to_bytes().unwrap().len() < bytes.len(),
            "the parser drops it"
        );
        keep_zeros(&mut model);
        let written = model.write_to_bytes().unwrap();
        assert_eq!(written.len(), bytes.len());
        let graph = ModelProto::parse_from_bytes(&written).unwrap().graph.unwrap();
        assert_eq!(
            graph.input[0].type_,
            ModelProto::parse_from_bytes(&bytes).unwrap().graph.input[0].type_
        );
    }
}
