//! Zeros of which a runtime learns only when it runs.
//!
//! `ArgMax` over one element is zero, whatever the element is, NaN included; no optimizer knows. The element is that of a graph input, and where
//! the input may be empty, a constant after what it has. A `Reshape` to zeros keeps every dimension of its operand, copies nothing, and has a
//! result of unknown shape. The runtime does not know how many zeros there are either, and so not the number of axes: its allocation planner holds
//! every result of known axes against all dead buffers, which takes seconds for some thousand nodes (ONNX Runtime 1.31,
//! `core/framework/allocation_planner.cc`).

use std::collections::BTreeMap;

use remat_ir::{Dim, ElementType, ValueType};
use remat_onnx::proto::{GraphProto, NodeProto, tensor_proto};

use crate::build::{constant, int, ints, node, zero};
use crate::names::Names;

/// The first opset in which Reshape takes its shape from an operand and Add broadcasts as it does today.
const OLDEST_OPSET: i64 = 7;
/// The first opset in which Slice takes its bounds from operands.
const SLICE_OPERANDS: i64 = 10;

/// Whether every version of Cast knows the type.
fn is_number(element: ElementType) -> bool {
    use ElementType as T;
    matches!(
        element,
        T::Float32 | T::Float64 | T::Float16 | T::Bool | T::Int8 | T::Int16 | T::Int32 | T::Int64
    ) || matches!(element, T::Uint8 | T::Uint16 | T::Uint32 | T::Uint64)
}

/// Makes vectors of zeros, from one element of a graph input.
pub(crate) struct Zeros {
    anchor: String,
    rank: usize,
    element: ElementType,
    /// Whether it may have no element, at some size of a dimension that the model leaves open.
    may_be_empty: bool,
    opset: i64,
    made: BTreeMap<usize, String>,
    /// Those whose length is not known either.
    of_late_length: BTreeMap<usize, String>,
    nodes: Vec<NodeProto>,
}

impl Zeros {
    /// `None` where the model has no input that serves: a tensor of numbers that has an element.
    pub(crate) fn new<'t>(
        graph: &GraphProto,
        opset: i64,
        type_of: impl Fn(&str) -> Option<&'t ValueType>,
    ) -> Option<Self> {
        if opset < OLDEST_OPSET {
            return None;
        }
        let weights: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        let inputs = graph.input.iter().map(|input| input.name.as_str());
        let candidates = inputs.filter(|name| !weights.contains(name)).filter_map(|name| {
            let ty = type_of(name)?;
            let ValueType::Tensor {
                element,
                shape: Some(dims),
            } = ty
            else {
                return None;
            };
            let serves = is_number(*element) && ty.bytes() != Ok(Some(0));
            let may_be_empty = dims.iter().any(|dim| !matches!(dim, Dim::Known(_)));
            serves.then_some((name, dims.len(), *element, may_be_empty))
        });
        // Those that always have an element first, then numbers that need no cast.
        let (name, rank, element, may_be_empty) =
            candidates.min_by_key(|&(_, _, element, may_be_empty)| (may_be_empty, element != ElementType::Float32))?;
        Some(Self {
            anchor: name.to_owned(),
            rank,
            element,
            may_be_empty,
            opset,
            made: BTreeMap::new(),
            of_late_length: BTreeMap::new(),
            nodes: Vec::new(),
        })
    }

    /// The name of a vector of `length` zeros.
    pub(crate) fn vector(&mut self, length: usize, names: &mut Names) -> String {
        if let Some(name) = self.made.get(&length) {
            return name.clone();
        }
        let name = if length == 1 {
            self.one(names)
        } else {
            let one = self.vector(1, names);
            let name = names.fresh(&format!("remat_zeros_{length}"));
            let parts = vec![one.as_str(); length];
            self.nodes.push(node("Concat", &parts, &name, vec![int("axis", 0)]));
            name
        };
        self.made.insert(length, name.clone());
        name
    }

    /// The name of a vector of `length` zeros whose length is not known either, where bounds of slices can be operands: a slice from a place on
    /// that is late.
    pub(crate) fn vector_of_late_length(&mut self, length: usize, names: &mut Names) -> String {
        if let Some(name) = self.of_late_length.get(&length) {
            return name.clone();
        }
        let (zeros, from) = (self.vector(length, names), self.vector(1, names));
        if self.opset < SLICE_OPERANDS {
            return zeros;
        }
        let (to, name) = (
            names.fresh("remat_all"),
            names.fresh(&format!("remat_late_zeros_{length}")),
        );
        self.nodes.push(constant(&[i64::MAX], &to));
        self.nodes.push(node("Slice", &[&zeros, &from, &to], &name, Vec::new()));
        self.of_late_length.insert(length, name.clone());
        name
    }

    /// One element of the anchor, made into a zero.
    fn one(&mut self, names: &mut Names) -> String {
        let mut value = self.anchor.clone();
        if self.rank > 0 {
            let (starts, ends) = (vec![0; self.rank], vec![1; self.rank]);
            let name = names.fresh("remat_element");
            if self.opset < SLICE_OPERANDS {
                let bounds = vec![ints("starts", &starts), ints("ends", &ends)];
                self.nodes.push(node("Slice", &[&value], &name, bounds));
            } else {
                let (from, to) = (names.fresh("remat_starts"), names.fresh("remat_ends"));
                self.nodes.push(constant(&starts, &from));
                self.nodes.push(constant(&ends, &to));
                self.nodes.push(node("Slice", &[&value, &from, &to], &name, Vec::new()));
            }
            value = name;
        }
        if self.element != ElementType::Float32 {
            let name = names.fresh("remat_number");
            let to = int("to", i64::from(tensor_proto::DataType::FLOAT as i32));
            self.nodes.push(node("Cast", &[&value], &name, vec![to]));
            value = name;
        }
        let vector = names.fresh("remat_vector");
        let (length, known) = if self.may_be_empty {
            ("remat_length", -1)
        } else {
            ("remat_one", 1)
        };
        let length = names.fresh(length);
        self.nodes.push(constant(&[known], &length));
        self.nodes
            .push(node("Reshape", &[&value, &length], &vector, Vec::new()));
        value = if self.may_be_empty {
            self.first_or_constant(&vector, names)
        } else {
            vector
        };
        let zero = names.fresh("remat_zero");
        let first = vec![int("axis", 0), int("keepdims", 1)];
        self.nodes.push(node("ArgMax", &[&value], &zero, first));
        zero
    }

    /// A vector of the one element of a vector, of a constant where it has none.
    fn first_or_constant(&mut self, vector: &str, names: &mut Names) -> String {
        let (number, both) = (names.fresh("remat_constant"), names.fresh("remat_elements"));
        let (place, first) = (names.fresh("remat_first"), names.fresh("remat_taken"));
        self.nodes.push(node(
            "Constant",
            &[],
            &number,
            vec![zero(tensor_proto::DataType::FLOAT, 4)],
        ));
        self.nodes
            .push(node("Concat", &[vector, &number], &both, vec![int("axis", 0)]));
        self.nodes.push(constant(&[0], &place));
        self.nodes
            .push(node("Gather", &[&both, &place], &first, vec![int("axis", 0)]));
        first
    }

    /// The vectors that were made, each with its length.
    pub(crate) fn vectors(&self) -> Vec<(String, usize)> {
        let all = self.made.iter().chain(&self.of_late_length);
        all.map(|(&length, name)| (name.clone(), length)).collect()
    }

    /// The nodes that make the zeros, each after those it reads from.
    pub(crate) fn into_nodes(self) -> Vec<NodeProto> {
        self.nodes
    }
}
