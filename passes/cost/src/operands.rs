//! What formulas ask of an op: shapes, bytes and attributes, with counts that saturate instead of overflowing.

use remat_ir::{Attribute, Graph, Op, TensorId, ValueType};

/// An op in its graph.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    graph: &'a Graph,
    op: &'a Op,
}

impl<'a> Operands<'a> {
    pub(crate) fn new(graph: &'a Graph, op: &'a Op) -> Self {
        Self { graph, op }
    }

    fn ty(&self, tensor: TensorId) -> &'a ValueType {
        &self.graph.tensors[tensor].ty
    }

    /// Type of operand `index`; `None` where it is left out.
    pub(crate) fn input(&self, index: usize) -> Option<&'a ValueType> {
        let tensor = (*self.op.inputs.get(index)?)?;
        Some(self.ty(tensor))
    }

    /// Type of result `index`; `None` where it is left out.
    pub(crate) fn output(&self, index: usize) -> Option<&'a ValueType> {
        let tensor = (*self.op.outputs.get(index)?)?;
        Some(self.ty(tensor))
    }

    /// Number of operands that are given.
    pub(crate) fn input_count(&self) -> usize {
        self.op.inputs.iter().flatten().count()
    }

    /// Number of operands, those left out included.
    pub(crate) fn operand_slots(&self) -> usize {
        self.op.inputs.len()
    }

    /// Number of results, those left out included.
    pub(crate) fn result_slots(&self) -> usize {
        self.op.outputs.len()
    }

    /// Dimensions of operand `index`, if all are known.
    pub(crate) fn input_shape(&self, index: usize) -> Option<Vec<u64>> {
        self.input(index)?.known_shape()
    }

    /// Elements of operand `index`, if its shape is known.
    pub(crate) fn input_elements(&self, index: usize) -> Option<u128> {
        Some(product(&self.input_shape(index)?))
    }

    /// Elements of result `index`, if its shape is known.
    pub(crate) fn output_elements(&self, index: usize) -> Option<u128> {
        Some(product(&self.output(index)?.known_shape()?))
    }

    /// Known bytes of operand `index`; 0 where nothing is known.
    pub(crate) fn input_bytes(&self, index: usize) -> u128 {
        self.input(index).map_or(0, value_bytes)
    }

    /// Known bytes of everything the op reads, each tensor once.
    pub(crate) fn read_bytes(&self) -> u128 {
        let mut tensors: Vec<TensorId> = self.op.reads().collect();
        tensors.sort_unstable();
        tensors.dedup();
        total(tensors.into_iter().map(|t| value_bytes(self.ty(t))))
    }

    /// Known bytes of everything the op defines.
    pub(crate) fn written_bytes(&self) -> u128 {
        total(self.op.results().map(|t| value_bytes(self.ty(t))))
    }

    /// An integer attribute.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.op.attributes.get(name).and_then(Attribute::as_int)
    }

    /// A list of integers.
    pub(crate) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.op.attributes.get(name).and_then(Attribute::as_ints)
    }

    /// A text attribute.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.op.attributes.get(name).and_then(Attribute::as_str)
    }

    /// Whether an integer attribute is set and not 0.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|value| value != 0)
    }
}

/// Product of dimensions.
pub(crate) fn product(dims: &[u64]) -> u128 {
    if dims.contains(&0) {
        return 0;
    }
    dims.iter().fold(1u128, |acc, &d| acc.saturating_mul(u128::from(d)))
}

fn total(values: impl Iterator<Item = u128>) -> u128 {
    values.fold(0, u128::saturating_add)
}

/// Bytes of a value: 0 if its type does not say, all there are if they overflow.
pub(crate) fn value_bytes(ty: &ValueType) -> u128 {
    match ty.bytes() {
        Ok(bytes) => bytes.map_or(0, u128::from),
        Err(_) => u128::from(u64::MAX),
    }
}

/// Bits of one element.
pub(crate) fn bits(ty: &ValueType) -> Option<u128> {
    ty.element().map(|element| u128::from(element.bits()))
}
