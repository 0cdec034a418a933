//! The graph with the elements of its integer constants: shapes, bounds of slices, indices.

use onnx_protobuf::{NodeProto, TensorProto};
use remat_ir::{ElementType, Graph};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::attributes::attribute;
use crate::import::import;
use crate::opsets::domain;
use crate::tensor::small_values;
use crate::types::element;
use crate::values::Follows;
use crate::{ImportOptions, OnnxError, OnnxModel};

/// Before this version of the format, initializers are listed among the inputs and yet cannot be overridden.
const INPUTS_OVERRIDE: i64 = 4;

impl OnnxModel {
    /// The graph as it is imported, with no result in the storage of what its kernel writes over, and with the elements of all constants of 64-bit and 32-bit integers that have at most 65,536 of them, from
    /// initializers and `Constant` nodes ([`Graph::values`]).
    ///
    /// Left out are constants that whoever runs the model may replace (inputs with a default), and those whose file cannot be read.
    ///
    /// # Errors
    /// Those of [`OnnxModel::open_for_run`], for other options than those that the model was read with.
    pub fn graph_with_integers(&self, options: &ImportOptions) -> Result<Graph, OnnxError> {
        let mut graph = import(&self.proto, self.folder.as_ref(), Follows::All, &options.of_fixed())?.graph;
        let known = self.integers();
        for (id, tensor) in graph.tensors.iter_enumerated() {
            if let Some(elements) = known.get(tensor.name.as_str()) {
                graph.values.insert(id, elements.clone());
            }
        }
        Ok(graph)
    }

    fn integers(&self) -> FxHashMap<&str, Vec<i64>> {
        let main = self.proto.graph.get_or_default();
        let inputs = main.input.iter().map(|input| input.name.as_str());
        let overridable: FxHashSet<&str> = inputs.filter(|_| self.proto.ir_version >= INPUTS_OVERRIDE).collect();
        let held = main
            .initializer
            .iter()
            .filter(|tensor| !overridable.contains(tensor.name.as_str()))
            .map(|tensor| (tensor.name.as_str(), self.elements(tensor)));
        let made = main.node.iter().filter_map(|node| {
            let is_constant = domain(&node.domain).is_empty() && node.op_type == "Constant";
            let name = node.output.first().filter(|_| is_constant)?;
            Some((name.as_str(), self.constant(node)))
        });
        held.chain(made)
            .filter_map(|(name, elements)| Some((name, elements?)))
            .collect()
    }

    /// The elements that a `Constant` node makes, if they are integers.
    fn constant(&self, node: &NodeProto) -> Option<Vec<i64>> {
        if let Some(value) = attribute(node, "value") {
            return self.elements(value.t.as_ref()?);
        }
        if let Some(value) = attribute(node, "value_int") {
            return Some(vec![value.i]);
        }
        attribute(node, "value_ints").map(|value| value.ints.clone())
    }

    /// The elements of a small tensor of integers.
    fn elements(&self, tensor: &TensorProto) -> Option<Vec<i64>> {
        let element = element(tensor.data_type).ok().flatten()?;
        if !matches!(element, ElementType::Int64 | ElementType::Int32) {
            return None;
        }
        let bytes = small_values(tensor, self.folder.as_ref())?;
        Some(match element {
            ElementType::Int64 => bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect(),
            _ => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| i64::from(i32::from_le_bytes(b)))
                .collect(),
        })
    }
}
