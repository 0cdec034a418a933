//! How much shape inference may store: the memory is bounded by the size of the model.
//!
//! Shapes are short. Values and shapes that are longer than those of real models share one limit for the whole model. Beyond it, such
//! values count as unknown, as any value that inference cannot follow.

use onnx_runtime_shape_inference::{NodeIo, TypeInfo, ValueType as Container};

use super::value::Value;

/// Elements of a value that are followed at most.
pub(super) const MAX_ELEMENTS: usize = 4096;

/// Values and shapes up to this length cost nothing.
const SHORT: usize = 16;

/// Elements of longer ones, in all values of a model together.
const LONG_ELEMENTS: usize = 1 << 20;

/// Elements of longer tensors whose elements are known, in all of a model together.
const TENSOR_ELEMENTS: usize = 1 << 23;

/// Elements of a sequence that are listed at most.
pub(super) const MAX_LISTED: usize = 256;

/// Elements of all sequences together.
const LISTED_ELEMENTS: usize = 1 << 16;

/// Elements and dimensions of all inputs of one node that are handed to its rule.
const MAX_INPUTS: usize = 1 << 16;

/// The account of one model.
#[derive(Debug)]
pub(super) struct Budget {
    /// For types and the lists that rules read.
    short: Account,
    /// For the elements of tensors.
    elements: Account,
    /// Elements of sequences that may still be listed.
    sequences: usize,
}

#[derive(Debug)]
struct Account {
    left: usize,
}

impl Account {
    fn pays(&mut self, elements: usize) -> bool {
        if elements <= SHORT {
            return true;
        }
        let left = self.left.checked_sub(elements);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            short: Account { left: LONG_ELEMENTS },
            elements: Account { left: TENSOR_ELEMENTS },
            sequences: LISTED_ELEMENTS,
        }
    }

    /// Forgets what there is too much of in a value.
    pub(super) fn admit(&mut self, value: &mut Value) {
        value.elements.take_if(|elements| {
            let left = self
                .sequences
                .checked_sub(elements.len())
                .filter(|_| elements.len() <= MAX_LISTED);
            self.sequences = left.unwrap_or(self.sequences);
            left.is_none()
        });
        value.tensor.take_if(|tensor| !self.elements.pays(tensor.len()));
        let io = &mut value.io;
        io.shape_data.take_if(|data| {
            let elements = data.elems.len().max(data.float_elems.as_ref().map_or(0, Vec::len));
            elements > MAX_ELEMENTS || !self.short.pays(elements)
        });
        io.type_info.take_if(|info| !self.short.pays(info.rank()));
        io.value_type
            .take_if(|container| !self.short.pays(dimensions(container)));
    }
}

/// Copies what is known of the inputs of one node, of too many and too long ones nothing.
pub(super) fn inputs<'v>(values: impl Iterator<Item = Option<&'v Value>>) -> Vec<Value> {
    let mut left = MAX_INPUTS;
    let copied = values.map(|value| {
        let value = value?;
        left = left.checked_sub(length(&value.io))?;
        Some(value.clone())
    });
    copied.map(Option::unwrap_or_default).collect()
}

fn length(io: &NodeIo) -> usize {
    let elements = io.shape_data.as_ref().map_or(0, |data| data.elems.len());
    let rank = io.type_info.as_ref().map_or(0, TypeInfo::rank);
    elements + rank + io.value_type.as_ref().map_or(0, dimensions)
}

/// Dimensions of all tensors inside a container.
fn dimensions(container: &Container) -> usize {
    match container {
        Container::Tensor(tensor) => tensor.shape.as_ref().map_or(0, Vec::len),
        Container::Sequence(inner) | Container::Optional(inner) | Container::Map(_, inner) => 1 + dimensions(inner),
    }
}

#[cfg(test)]
mod tests {
    use onnx_runtime_ir::DataType;
    use onnx_runtime_shape_inference::{DimExpr, ShapeData};

    use super::*;

    fn value(elements: usize) -> Value {
        Value::from(NodeIo {
            shape_data: Some(ShapeData::vector(DataType::Int64, vec![DimExpr::constant(1); elements])),
            ..NodeIo::default()
        })
    }

    fn is_followed(budget: &mut Budget, elements: usize) -> bool {
        let mut value = value(elements);
        budget.admit(&mut value);
        value.io.shape_data.is_some()
    }

    #[test]
    fn a_value_is_followed_up_to_a_length_and_all_long_ones_up_to_a_sum() {
        let mut budget = Budget::new();
        assert!(!is_followed(&mut budget, MAX_ELEMENTS + 1));
        for _ in 0..LONG_ELEMENTS / MAX_ELEMENTS {
            assert!(is_followed(&mut budget, MAX_ELEMENTS));
        }
        assert!(!is_followed(&mut budget, MAX_ELEMENTS));
        assert!(is_followed(&mut budget, SHORT));
    }

    #[test]
    fn a_node_gets_no_more_of_its_inputs_than_a_sum() {
        let io = value(MAX_ELEMENTS);
        let copied = inputs(std::iter::repeat_n(Some(&io), 100));
        let known = copied.iter().filter(|value| value.io.shape_data.is_some()).count();
        assert_eq!((copied.len(), known), (100, MAX_INPUTS / MAX_ELEMENTS));
    }
}
