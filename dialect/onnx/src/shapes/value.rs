//! What is known of a value of the model.

use std::rc::Rc;

use onnx_runtime_shape_inference::{DimExpr, NodeIo, ShapeData, TypeInfo};

use super::symbols::data_type;
use crate::values::Tensor;

/// Rank 0 and 1 of at most this many elements are what the inference rules read.
const LISTED: usize = 4096;

/// The type of a value, and its elements where they are known before the model runs.
#[derive(Clone, Default)]
pub(super) struct Value {
    /// As the inference rules take it: the type, and a short list of numbers or symbols.
    pub(super) io: NodeIo,
    /// The elements.
    pub(super) tensor: Option<Rc<Tensor>>,
}

impl From<NodeIo> for Value {
    fn from(io: NodeIo) -> Self {
        Self { io, tensor: None }
    }
}

impl Value {
    /// Puts in the elements, if they are known.
    pub(super) fn know(&mut self, tensor: Option<Tensor>) {
        let Some(tensor) = tensor else { return };
        let dtype = data_type(tensor.element);
        let extents = tensor
            .dims
            .iter()
            .map(|&dim| DimExpr::constant(i64::try_from(dim).unwrap_or(i64::MAX)));
        self.io.type_info = Some(TypeInfo::new(dtype, extents.collect()));
        if tensor.dims.len() <= 1 && tensor.len() <= LISTED {
            self.io.shape_data = Some(ShapeData {
                dtype,
                dims: tensor.dims.clone(),
                elems: tensor
                    .as_integers()
                    .unwrap_or_default()
                    .iter()
                    .map(|&value| DimExpr::constant(value))
                    .collect(),
                float_elems: tensor.as_floats().map(<[f64]>::to_vec),
            });
        }
        self.tensor = Some(Rc::new(tensor));
    }

    /// The shape, where all of it is known.
    pub(super) fn shape(&self) -> Option<Vec<usize>> {
        let extents = self.io.type_info.as_ref()?.shape.iter();
        extents.map(|dim| usize::try_from(dim.as_const()?).ok()).collect()
    }
}
