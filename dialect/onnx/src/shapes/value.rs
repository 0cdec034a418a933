//! What is known of a value of the model.

use std::rc::Rc;

use onnx_runtime_shape_inference::{DimExpr, NodeIo, ShapeData, TypeInfo};

use super::symbols::{data_type, element_type};
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
    /// The elements of a sequence, where they are known one by one.
    pub(super) elements: Option<Rc<Vec<Self>>>,
}

impl From<NodeIo> for Value {
    fn from(io: NodeIo) -> Self {
        Self { io, ..Self::default() }
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

    /// Forgets the elements of a sequence, unless those of `other` have the same types one by one.
    pub(super) fn keep_elements_like(&mut self, other: &Self) {
        let Some((mine, theirs)) = self.elements.take().zip(other.elements.as_ref()) else {
            return;
        };
        let is_same =
            |(mine, theirs): (&Self, &Self)| mine.io.type_info.is_some() && mine.io.type_info == theirs.io.type_info;
        if mine.len() == theirs.len() && mine.iter().zip(theirs.iter()).all(is_same) {
            let typed = |element: &Self| {
                Self::from(NodeIo {
                    type_info: element.io.type_info.clone(),
                    ..NodeIo::default()
                })
            };
            self.elements = Some(Rc::new(mine.iter().map(typed).collect()));
        }
    }

    /// Puts in the elements of a tensor that has none.
    pub(super) fn know_if_empty(&mut self) {
        let is_empty = |info: &&TypeInfo| info.shape.iter().any(|dim| dim.as_const() == Some(0));
        if self.tensor.is_none()
            && let Some(info) = self.io.type_info.as_ref().filter(is_empty)
            && let Some((dims, element)) = self.shape().zip(element_type(info.dtype))
        {
            self.know(Tensor::from_bytes(element, dims, &[]));
        }
    }

    /// The shape, where all of it is known.
    pub(super) fn shape(&self) -> Option<Vec<usize>> {
        let extents = self.io.type_info.as_ref()?.shape.iter();
        extents.map(|dim| usize::try_from(dim.as_const()?).ok()).collect()
    }
}
