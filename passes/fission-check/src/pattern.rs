//! What normalization the ops of the original compute together, read from its result back.

use remat_ir::{Attribute, Dim, ElementType, Graph, Op, StorageClass, TensorId, ValueType};

use super::site::axis;
use super::values::Numbers;

/// What normalizations add to the variance where they do not say.
const EPSILON: f32 = 1e-5;

/// The normalization over an image whose result is `result`, `N x C x ...`: one op, or instances between two reshapes; then, if they are there, a
/// product with a constant for each channel, and a sum with one.
///
/// Then, where each element has a factor and a summand instead, what these are: they have the last axes of the image.
pub(super) fn normalization(graph: &Graph, result: TensorId) -> Option<(Numbers, [Option<TensorId>; 2])> {
    let image = dims(graph, result)?;
    let mut numbers = [None; 4];
    let mut at = result;
    for (place, name) in [(3, "Add"), (2, "Mul")] {
        if let Some((number, rest)) = by_channel(graph, at, name, &image) {
            (numbers[place], at) = (Some(number), rest);
        }
    }
    let last = maker(graph, at)?;
    let is_between_reshapes = is_plain(last, "Reshape");
    let op = match is_between_reshapes {
        true => maker(graph, operand(last, 0)?)?,
        false => last,
    };
    let inner = operand(op, 0)?;
    let of = match is_between_reshapes {
        true => {
            let first = maker(graph, inner).filter(|first| is_plain(first, "Reshape"))?;
            operand(first, 0)?
        }
        false => inner,
    };
    let (scale, bias) = (operand(op, 1)?, operand(op, 2));
    (numbers[0], numbers[1]) = (Some(scale), bias);
    let mut of_elements = [None; 2];
    let (&images, &channels) = (image.first()?, image.get(1)?);
    let instances = dims(graph, inner)?;
    let int = |name: &str, default: i64| match op.attributes.get(name) {
        Some(value) => value.as_int(),
        None => Some(default),
    };
    let (groups, lengths) = match op.op_type.as_str() {
        "InstanceNormalization" if int("channels_last", 0)? == 0 => {
            let groups = *instances.get(1)?;
            (groups, vec![groups])
        }
        "GroupNormalization" if !is_between_reshapes && int("stash_type", 1)? == 1 => {
            let groups = u64::try_from(op.attributes.get("num_groups")?.as_int()?).ok()?;
            (groups, vec![groups, channels])
        }
        "LayerNormalization" if at == result && !is_between_reshapes && int("stash_type", 1)? == 1 => {
            let first = axis(int("axis", -1)?, image.len()).ok()?;
            of_elements = [Some(scale), bias];
            numbers = [None; 4];
            let groups = match first {
                1 => 1,
                2 => channels,
                _ => return None,
            };
            let has_last_axes = |&number: &TensorId| dims(graph, number).is_some_and(|dims| dims == image[first..]);
            if !of_elements.iter().flatten().all(has_last_axes) {
                return None;
            }
            (groups, Vec::new())
        }
        _ => return None,
    };
    let epsilon = match op.attributes.get("epsilon") {
        Some(Attribute::Float(epsilon)) => *epsilon,
        None => EPSILON,
        Some(_) => return None,
    };
    let fits = |number: TensorId| {
        let dims = dims(graph, number).unwrap_or_default();
        lengths.iter().any(|&length| dims == [length])
    };
    let ty = &graph.tensors[of].ty;
    let is_understood = is_plain(op, &op.op_type)
        && image.len() > 2
        && dims(graph, of)? == image
        && *instances.first()? == images
        && groups > 0
        && channels.is_multiple_of(groups)
        && op.inputs.len() <= 3
        && (of_elements[0].is_some() || fits(scale) && fits(bias?))
        && is_averaged(ty.element()?)
        && [of, inner, result]
            .iter()
            .all(|&tensor| is_fixed_but_images(&graph.tensors[tensor].ty));
    let numbers = Numbers {
        of,
        channels: [0..images, 0..channels],
        groups,
        epsilon: epsilon.to_bits(),
        numbers,
    };
    is_understood.then_some((numbers, of_elements))
}

/// Whether nothing but the number of images is left open: with as many elements in each image, every size of a batch keeps its place.
pub(super) fn is_fixed_but_images(ty: &ValueType) -> bool {
    !ty.dims().iter().skip(1).any(Dim::is_free)
}

/// Whether statistics in single precision are no less precise than elements of this type.
pub(super) fn is_averaged(element: ElementType) -> bool {
    matches!(
        element,
        ElementType::Float32 | ElementType::Float16 | ElementType::Bfloat16
    )
}

pub(super) fn dims(graph: &Graph, tensor: TensorId) -> Option<Vec<u64>> {
    graph.tensors[tensor].ty.known_shape()
}

pub(super) fn maker(graph: &Graph, tensor: TensorId) -> Option<&Op> {
    Some(&graph.ops[graph.tensors[tensor].producer?])
}

pub(super) fn operand(op: &Op, place: usize) -> Option<TensorId> {
    op.inputs.get(place).copied().flatten()
}

fn is_plain(op: &Op, name: &str) -> bool {
    op.domain.is_empty() && op.op_type == name && op.results().count() == 1
}

/// Of a product or sum with a constant for each channel: that constant, and the other operand, which has the dimensions of the result.
fn by_channel(graph: &Graph, result: TensorId, name: &str, image: &[u64]) -> Option<(TensorId, TensorId)> {
    let op = maker(graph, result).filter(|op| is_plain(op, name))?;
    let &[Some(left), Some(right)] = &op.inputs[..] else {
        return None;
    };
    let is_number = |tensor: TensorId| {
        let class = graph.storages[graph.tensors[tensor].storage].class;
        class == StorageClass::Constant && dims(graph, tensor).is_some_and(|dims| is_per_channel(&dims, image))
    };
    let (number, rest) = match (is_number(left), is_number(right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return None,
    };
    (dims(graph, rest)? == image).then_some((number, rest))
}

/// Whether a tensor of these dimensions has an element for each channel of an image to which it is broadcast.
fn is_per_channel(dims: &[u64], image: &[u64]) -> bool {
    let Some(channel) = (dims.len() + 1).checked_sub(image.len()) else {
        return false;
    };
    let expected = |axis: usize| if axis == channel { image[1] } else { 1 };
    channel <= 1 && dims.iter().enumerate().all(|(axis, &dim)| dim == expected(axis))
}
