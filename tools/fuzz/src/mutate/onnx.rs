//! Changes of an ONNX model that leave it a message.

use remat_onnx::proto::{
    AttributeProto, GraphProto, Message, ModelProto, NodeProto, TensorProto, ValueInfoProto, tensor_shape_proto,
    type_proto,
};

use crate::Rng;

/// Operators whose shapes are inferred in different ways.
const OPERATORS: &str = "Add Cast Concat ConstantOfShape Conv ConvTranspose Expand Flatten Gather GatherND Gemm Identity MatMul MaxPool \
    NonZero OneHot Pad Range ReduceSum Reshape Resize ScatterND Shape Size Slice SpaceToDepth Split Squeeze Tile \
    TopK Transpose Unsqueeze Where";

/// `None` where the bytes are no model.
pub(super) fn mutate(data: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut model = ModelProto::parse_from_bytes(data).ok()?;
    let graph = model.graph.as_mut()?;
    in_graph(graph, rng);
    model.write_to_bytes().ok()
}

fn in_graph(graph: &mut GraphProto, rng: &mut Rng) {
    // Bodies of subgraphs at times.
    if rng.below(4) == 0 {
        let attributes = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
        let mut bodies: Vec<&mut GraphProto> = attributes.filter_map(|attribute| attribute.g.as_mut()).collect();
        if !bodies.is_empty() {
            let body = rng.below(bodies.len());
            return in_graph(bodies[body], rng);
        }
    }
    let names = names(graph);
    let name = rng.pick(&names).cloned().unwrap_or_default();
    match rng.below(10) {
        0..5 => nodes(graph, &name, rng),
        5 | 6 => weights(&mut graph.initializer, rng),
        _ => types(graph, &name, rng),
    }
}

/// Every value of the graph.
fn names(graph: &GraphProto) -> Vec<String> {
    let results = graph.node.iter().flat_map(|node| &node.output);
    let inputs = graph.input.iter().map(|input| &input.name);
    let weights = graph.initializer.iter().map(|tensor| &tensor.name);
    results.chain(inputs).chain(weights).cloned().collect()
}

fn nodes(graph: &mut GraphProto, name: &str, rng: &mut Rng) {
    if graph.node.is_empty() {
        return;
    }
    let (at, to) = (rng.below(graph.node.len()), rng.below(graph.node.len()));
    match rng.below(5) {
        0 => drop(graph.node.remove(at)),
        1 => graph.node.swap(at, to),
        2 => {
            let mut copy = graph.node[at].clone();
            copy.name.push('_');
            copy.output.iter_mut().for_each(|output| output.push('_'));
            graph.node.insert(to, copy);
        }
        3 => {
            let attributes = graph.node[to].attribute.clone();
            graph.node[at].attribute.extend(rng.pick(&attributes).cloned());
        }
        _ => node(&mut graph.node[at], name, rng),
    }
}

fn node(node: &mut NodeProto, name: &str, rng: &mut Rng) {
    let (input, output) = (rng.below(node.input.len()), rng.below(node.output.len()));
    let attribute = rng.below(node.attribute.len());
    match rng.below(9) {
        0 => {
            let operators: Vec<&str> = OPERATORS.split(' ').collect();
            node.op_type = rng.pick(&operators).copied().unwrap_or_default().to_owned();
        }
        1 if !node.input.is_empty() => name.clone_into(&mut node.input[input]),
        2 if !node.input.is_empty() => drop(node.input.remove(input)),
        3 => node.input.push(name.to_owned()),
        4 if !node.output.is_empty() => node.output[output].clear(),
        5 => node.output.push(format!("{name}+")),
        6 if !node.output.is_empty() => drop(node.output.remove(output)),
        7 if !node.attribute.is_empty() => drop(node.attribute.remove(attribute)),
        _ => node
            .attribute
            .iter_mut()
            .skip(attribute)
            .take(1)
            .for_each(|attribute| number_in(attribute, rng)),
    }
}

fn number_in(attribute: &mut AttributeProto, rng: &mut Rng) {
    let number = signed(rng);
    let at = rng.below(attribute.ints.len());
    match rng.below(4) {
        0 => attribute.ints.push(number),
        1 => attribute.i = number,
        2 => attribute.ints.truncate(at),
        _ => attribute.ints.iter_mut().skip(at).take(1).for_each(|int| *int = number),
    }
    if let Some(tensor) = attribute.t.as_mut() {
        weights(std::slice::from_mut(tensor), rng);
    }
}

fn signed(rng: &mut Rng) -> i64 {
    let number = rng.number().cast_signed();
    if rng.below(3) == 0 {
        number.wrapping_neg()
    } else {
        number
    }
}

fn weights(tensors: &mut [TensorProto], rng: &mut Rng) {
    let at = rng.below(tensors.len());
    let Some(tensor) = tensors.get_mut(at) else { return };
    let number = signed(rng);
    let dim = rng.below(tensor.dims.len());
    match rng.below(6) {
        0 => tensor.dims.push(number),
        1 if !tensor.dims.is_empty() => tensor.dims[dim] = number,
        2 => tensor.dims.truncate(dim),
        3 => tensor.data_type = i32::from(rng.bits() as u8 % 28),
        4 => {
            let at = rng.below(tensor.int64_data.len());
            tensor
                .int64_data
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|int| *int = number);
        }
        _ => {
            let at = rng.below(tensor.raw_data.len() / 8) * 8;
            let bytes = number.to_le_bytes();
            tensor
                .raw_data
                .iter_mut()
                .skip(at)
                .zip(bytes)
                .for_each(|(byte, new)| *byte = new);
        }
    }
}

fn types(graph: &mut GraphProto, name: &str, rng: &mut Rng) {
    let list = match rng.below(3) {
        0 => &mut graph.input,
        1 => &mut graph.output,
        _ => &mut graph.value_info,
    };
    let at = rng.below(list.len());
    match rng.below(5) {
        0 if !list.is_empty() => drop(list.remove(at)),
        1 => {
            let mut copy = list.get(at).cloned().unwrap_or_default();
            name.clone_into(&mut copy.name);
            list.push(copy);
        }
        _ => list.iter_mut().skip(at).take(1).for_each(|value| ty(value, rng)),
    }
}

fn ty(value: &mut ValueInfoProto, rng: &mut Rng) {
    let Some(type_proto::Value::TensorType(tensor)) = value.type_.mut_or_insert_default().value.as_mut() else {
        return;
    };
    if rng.below(4) == 0 {
        tensor.elem_type = i32::from(rng.bits() as u8 % 28);
        return;
    }
    let dims = &mut tensor.shape.mut_or_insert_default().dim;
    let at = rng.below(dims.len());
    let mut dim = dims.get(at).cloned().unwrap_or_default();
    dim.value = match rng.below(3) {
        0 => None,
        1 => Some(tensor_shape_proto::dimension::Value::DimParam("N".to_owned())),
        _ => Some(tensor_shape_proto::dimension::Value::DimValue(signed(rng))),
    };
    match rng.below(4) {
        0 => dims.push(dim),
        1 => dims.truncate(at),
        _ => dims.iter_mut().skip(at).take(1).for_each(|place| *place = dim.clone()),
    }
}
