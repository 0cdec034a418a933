//! What is changed of a graph.

use remat_ir::{Attribute, ElementType, Graph, OpId, TensorId, ValueType};

use super::super::tests::Random;

/// What of an op is changed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// The number of an attribute.
    Number,
    /// An attribute is gone.
    Attribute,
    /// An operand is another tensor of its type.
    Operand,
    /// Two operands have changed places.
    Order,
    /// The operator is another one of its kind.
    Operator,
    /// An operand is added, left out or gone.
    Operands,
    /// What is stated of a result.
    Part,
    /// The elements of a constant.
    Elements,
    /// The type of a result.
    Type,
}

/// After these an op is one of ONNX still.
pub(super) const IN_ONNX: [Change; 5] = [
    Change::Number,
    Change::Attribute,
    Change::Operand,
    Change::Order,
    Change::Operator,
];

/// Anything; what is likely to matter more often.
pub(super) const ALL: [Change; 12] = [
    Change::Number,
    Change::Number,
    Change::Attribute,
    Change::Operand,
    Change::Operand,
    Change::Order,
    Change::Operator,
    Change::Operands,
    Change::Part,
    Change::Part,
    Change::Elements,
    Change::Type,
];

/// Operators that have the same operands.
const ALIKE: [&[&str]; 10] = [
    &["Sum", "Max", "Min", "CombineMeans"],
    &["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"],
    &["GlobalAveragePool", "GlobalMaxPool"],
    &["Moments", "CombineMoments"],
    &["Add", "Mul"],
    &["Softmax", "LogSoftmax"],
    &["Exponentials", "CombineExponentials", "Weighed"],
    &["ArgMax", "ArgMin"],
    &["Best", "CombineBest"],
    &["BestValues", "BestPlaces"],
];

/// A graph in which one thing is another.
pub(super) fn changed(graph: &Graph, random: &mut Random, change: Change) -> Graph {
    let mut graph = graph.clone();
    let id = OpId::new(random.index(graph.ops.len()));
    let way = if random.is() { 1 } else { -1 };
    let types: Vec<ValueType> = graph.tensors.iter().map(|tensor| tensor.ty.clone()).collect();
    let names: Vec<String> = graph.tensors.iter().map(|tensor| tensor.name.clone()).collect();
    let op = &mut graph.ops[id];
    let (place, attribute) = (random.index(op.inputs.len()), random.index(op.attributes.len()));
    match change {
        Change::Number => match op.attributes.values_mut().nth(attribute) {
            Some(Attribute::Int(value)) => *value += way,
            Some(Attribute::Float(value)) => *value *= 1.5,
            Some(Attribute::Ints(values)) if random.below(4) == 0 => {
                values.pop();
            }
            Some(Attribute::Ints(values)) => {
                let at = random.index(values.len());
                values[at] += way;
            }
            _ => {}
        },
        Change::Attribute => {
            if let Some(name) = op.attributes.keys().nth(attribute).cloned() {
                op.attributes.remove(&name);
            }
        }
        Change::Operand => {
            let is_alike = |other: &usize| op.inputs[place].is_none_or(|own| types[own.index()] == types[*other]);
            let alike: Vec<usize> = (0..types.len()).filter(is_alike).collect();
            op.inputs[place] = Some(TensorId::new(random.one_of(&alike)));
        }
        Change::Order => op.inputs.swap(0, place),
        Change::Operator => {
            if let Some(alike) = ALIKE.iter().find(|alike| alike.contains(&&*op.op_type)) {
                random.one_of(alike).clone_into(&mut op.op_type);
            }
        }
        Change::Operands => match random.below(3) {
            0 => op.inputs[place] = None,
            1 => op.inputs.insert(place, op.inputs[place]),
            _ => {
                op.inputs.remove(place);
            }
        },
        Change::Part => {
            if let Some(part) = op.parts[0].as_mut().filter(|part| !part.ranges.is_empty()) {
                let axis = random.index(part.ranges.len());
                let rows = &mut part.ranges[axis];
                match random.below(6) {
                    0 | 1 => rows.start = rows.start.wrapping_add_signed(way),
                    2 | 3 => rows.end = rows.end.wrapping_add_signed(way),
                    4 => part.is_sum = !part.is_sum,
                    _ => part.of.clone_from(&names[random.index(names.len())]),
                }
            }
        }
        Change::Elements => {
            let place = random.index(graph.values.len());
            if let Some(elements) = graph.values.values_mut().nth(place) {
                let at = random.index(elements.len());
                elements[at] += way;
            }
        }
        Change::Type => {
            if let Some(result) = op.results().next() {
                let dims = types[result.index()].known_shape().unwrap_or_default();
                graph.tensors[result].ty = ValueType::tensor(ElementType::Float16, &dims);
            }
        }
    }
    graph
}
