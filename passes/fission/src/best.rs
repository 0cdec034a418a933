//! The largest or smallest elements along the axis that tiles cut, with their places, in two passes.
//!
//! The first pass keeps of what lies along the axis as many elements as are asked for, with their places, which tiles find for their rows and put
//! together; the second one gives the elements, or the places. Elements are compared and copied only, so every bit stays.

use remat_ir::{Attribute, Dim, ElementType, Graph, OpId, OpSpec, Part, Placement, ResultSpec, TensorId, ValueType};
use remat_operators::{BEST, BEST_PLACES, BEST_VALUES, STREAMED_DOMAIN, Split, operator};

use crate::FissionError;
use crate::names::Names;
use crate::rules::{Site, softened_axes};
use crate::softened::is_long;
use crate::transfer::Transfer;

/// How many times as many rows there are at least as are kept of them, where two passes are worth while.
const ROWS_FOR_EACH: u64 = 4;

/// An op that finds the largest or smallest elements along an axis.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    pub(crate) op: OpId,
    operand: TensorId,
    /// The results that somebody reads.
    values: Option<TensorId>,
    places: Option<TensorId>,
    axis: usize,
    count: u64,
    is_largest: bool,
    /// Of equal elements the last one.
    is_last: bool,
    /// Whether places have the axis.
    keeps_axis: bool,
    /// Dimensions of the operand.
    dims: Vec<u64>,
}

/// Those of a graph.
pub(crate) fn bests(graph: &Graph) -> Vec<Best> {
    let readers = graph.users();
    let found = |id: OpId| {
        let is_read = |tensor: &TensorId| !readers[*tensor].is_empty() || graph.outputs.contains(tensor);
        let mut best = best(graph, id)?;
        best.values = best.values.filter(is_read);
        best.places = best.places.filter(is_read);
        best.values.or(best.places).map(|_| best)
    };
    graph.ops.keys().filter_map(found).collect()
}

/// The names of those whose operands have at least so many bytes, more rows along the axis than other tiles could cut across it, and many more than
/// are kept.
pub(crate) fn worthwhile(graph: &Graph, bytes: u64) -> Vec<String> {
    let is_large = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].bytes.unwrap_or(0) >= bytes;
    let is_worth = |best: &Best| {
        let rows = best.dims[best.axis];
        is_large(best.operand) && is_long(&best.dims, best.axis) && rows / ROWS_FOR_EACH >= best.count
    };
    let found = bests(graph).into_iter().filter(is_worth);
    found.map(|best| graph.ops[best.op].name.clone()).collect()
}

fn best(graph: &Graph, id: OpId) -> Option<Best> {
    let op = &graph.ops[id];
    let operand = op.inputs.first().copied().flatten()?;
    let ty = &graph.tensors[operand].ty;
    let dims = ty.known_shape()?;
    let result = |place: usize| op.outputs.get(place).copied().flatten();
    let site = Site::of_all(graph, op)?;
    let found = match (operator(&op.domain, &op.op_type).split, op.inputs.len()) {
        (Split::Position { largest }, 1) => Best {
            op: id,
            operand,
            values: None,
            places: result(0),
            axis: site.axis_of(site.int("axis", 0), dims.len()).ok()?,
            count: 1,
            is_largest: largest,
            is_last: site.int("select_last_index", 0) != 0,
            keeps_axis: site.int("keepdims", 1) != 0,
            dims,
        },
        (Split::Ranked, 2) if site.int("sorted", 1) == 1 => Best {
            op: id,
            operand,
            values: result(0),
            places: result(1),
            axis: softened_axes(&site).ok().filter(|axes| axes.len() == 1)?.start,
            count: match site.integers(1) {
                Ok(Some(&[count])) => u64::try_from(count).ok()?,
                _ => return None,
            },
            is_largest: site.int("largest", 1) != 0,
            is_last: false,
            keeps_axis: true,
            dims,
        },
        _ => return None,
    };
    let is_ordered = ty.element().is_some_and(is_ordered);
    let is_there = (1..=found.dims[found.axis]).contains(&found.count);
    Some(found).filter(|found| is_ordered && is_there && !ty.is_free(found.axis))
}

/// Whether the kernels of ONNX Runtime find the best of elements of this type, one and several of them.
fn is_ordered(element: ElementType) -> bool {
    matches!(
        element,
        ElementType::Float16
            | ElementType::Float32
            | ElementType::Float64
            | ElementType::Int8
            | ElementType::Uint8
            | ElementType::Int32
            | ElementType::Int64
    )
}

impl Best {
    /// Bytes of the largest result.
    pub(crate) fn kept(&self, graph: &Graph) -> u64 {
        let bytes = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].bytes.unwrap_or(0);
        let results = [self.values, self.places].into_iter().flatten();
        results.map(bytes).max().unwrap_or(0)
    }

    /// Writes both passes instead of the op.
    pub(crate) fn write(&self, transfer: &mut Transfer<'_>, names: &mut Names) -> Result<(), FissionError> {
        let graph = transfer.graph;
        let own = &graph.ops[self.op].name;
        let missing = || FissionError::NotStreamed(own.clone());
        let integer = |value: u64| Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let flag = |value: bool| Attribute::Int(i64::from(value));
        let axis = ("axis", integer(self.axis as u64));

        let mut kept = graph.tensors[self.operand].ty.dims().to_vec();
        kept[self.axis] = Dim::Known(self.count);
        kept.push(Dim::Known(2));
        let name = names.op(format!("{own}_best"));
        let operand = transfer.whole[self.operand].ok_or_else(missing)?;
        let part = Part {
            is_sum: true,
            ..Part::whole(graph.tensors[self.operand].name.clone(), &self.dims)
        };
        let told = vec![
            axis.clone(),
            ("count", integer(self.count)),
            ("largest", flag(self.is_largest)),
            ("last", flag(self.is_last)),
            ("from", integer(0)),
        ];
        let ty = ValueType::Tensor {
            element: ElementType::Int64,
            shape: Some(kept),
        };
        let result = (names.tensor(&name), ty);
        let kept = transfer.add(self.op, spec(name, BEST, operand, told, part, result))?;
        let kept = kept.into_iter().flatten().next().ok_or_else(missing)?;

        let values_name = self.places.map(|_| names.op(format!("{own}_values")));
        let values = (BEST_VALUES, values_name.unwrap_or_else(|| own.clone()), Vec::new());
        let told = vec![axis, ("keepdims", flag(self.keeps_axis))];
        let places = (BEST_PLACES, own.clone(), told);
        for (result, (op_type, name, told)) in [(self.values, values), (self.places, places)] {
            let Some(result) = result else { continue };
            let tensor = &graph.tensors[result];
            let part = Part::whole(tensor.name.clone(), &tensor.ty.known_shape().ok_or_else(missing)?);
            let named = (tensor.name.clone(), tensor.ty.clone());
            let made = transfer.add(self.op, spec(name, op_type, kept, told, part, named))?;
            let made = made.into_iter().flatten().next().ok_or_else(missing)?;
            transfer.name_whole(result, made);
        }
        Ok(())
    }
}

/// An op of one operand and one result.
fn spec(
    name: String,
    op_type: &str,
    operand: TensorId,
    attributes: Vec<(&str, Attribute)>,
    part: Part,
    (result, ty): (String, ValueType),
) -> OpSpec {
    let mut spec = OpSpec::new(name, op_type);
    spec.domain = STREAMED_DOMAIN.to_owned();
    spec.inputs = vec![Some(operand)];
    spec.attributes
        .extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
    spec.parts = vec![Some(part)];
    spec.results = vec![Some(ResultSpec {
        name: result,
        ty,
        placement: Placement::New,
    })];
    spec
}
