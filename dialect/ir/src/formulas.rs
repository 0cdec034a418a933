//! Sizes as formulas of the dimensions that the model leaves open.

use std::collections::BTreeMap;

use remat_formula::{Formula, Interval, Variables};
use thiserror::Error;

use crate::{Dim, TensorId, ValueType};

/// What the sizes of a graph are for other sizes of its open dimensions.
///
/// A formula is right wherever the model runs with each open dimension within the bounds that `variables` states. At the sizes given, it is
/// the size that the type of the tensor states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Formulas {
    /// The open dimensions, in the order of the inputs that have them, and what follows from them.
    pub variables: Variables,
    /// By open dimension: the size that was given.
    pub given: Vec<u64>,
    /// By tensor that has dimensions that may have other sizes: its dimensions, as far as they follow from the open ones.
    pub shapes: BTreeMap<TensorId, Vec<Option<Formula>>>,
}

/// Why a graph has no sizes for other sizes of its open dimensions.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NoFormula {
    /// It leaves no dimension open, or was not read with a size for each.
    #[error("the model leaves no dimension open")]
    Graph,
    /// Another number of dimensions is open.
    #[error("{wanted} dimensions are open, and sizes of {given} are given")]
    Dims {
        /// How many are open.
        wanted: usize,
        /// Of how many sizes are given.
        given: usize,
    },
    /// What a tensor takes does not follow from the open dimensions, or is beyond all numbers.
    #[error("the size of `{0}` does not follow from the open dimensions")]
    Tensor(String),
    /// A subgraph has tensors of open sizes.
    #[error("sizes in a subgraph of `{0}` are open")]
    Body(String),
}

impl Formulas {
    /// The dimensions of a dense tensor of this type, by axis; `None` where one has no formula, or not even the rank is known.
    #[must_use]
    pub fn shape(&self, tensor: TensorId, ty: &ValueType) -> Option<Vec<Formula>> {
        let ValueType::Tensor { shape: Some(dims), .. } = ty else {
            return None;
        };
        let found = self.shapes.get(&tensor);
        let formula = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Known(size) => i64::try_from(*size).ok().map(Formula::constant),
            Dim::Free { .. } => found?.get(axis)?.clone(),
            Dim::Symbol(_) | Dim::Unknown => None,
        };
        dims.iter().enumerate().map(formula).collect()
    }

    /// The type of a tensor with the largest size that each dimension has where all variables lie in these intervals.
    pub(crate) fn at_most(&self, tensor: TensorId, ty: &ValueType, variables: &[Interval]) -> Option<ValueType> {
        let mut ty = ty.clone();
        match &mut ty {
            ValueType::Tensor { shape: Some(dims), .. } => {
                let found = self.shapes.get(&tensor);
                for (axis, dim) in dims.iter_mut().enumerate() {
                    if let Dim::Free { size, .. } = dim {
                        let formula = found?.get(axis)?.as_ref()?;
                        *size = u64::try_from(formula.bounds(variables).1).ok()?;
                    }
                }
                Some(ty)
            }
            _ => None,
        }
    }

    /// The bytes of a dense tensor of this type; `None` where a dimension has no formula, or elements that are packed need not fill whole
    /// bytes.
    #[must_use]
    pub fn bytes(&self, tensor: TensorId, ty: &ValueType) -> Option<Formula> {
        let bits = Formula::constant(i64::try_from(ty.element()?.bits()).ok()?);
        let shape = self.shape(tensor, ty)?;
        let bits = shape.iter().try_fold(bits, |product, dim| product.times(dim))?;
        bits.over(&Formula::constant(8))
    }
}

#[cfg(test)]
mod tests {
    use remat_formula::OpenDim;

    use super::*;
    use crate::ElementType;

    #[test]
    fn a_size_is_the_product_of_the_dimensions_and_of_the_element() {
        let free = |size| Dim::Free { size, name: None };
        let tensor = |element, dims| ValueType::Tensor {
            element,
            shape: Some(dims),
        };
        let dim = OpenDim {
            name: "n".to_owned(),
            least: 1,
            most: 9,
        };
        let n = || Some(Formula::variable(0));
        let id = TensorId::new(3);
        let formulas = Formulas {
            variables: Variables::new(vec![dim]),
            given: vec![2],
            shapes: BTreeMap::from([(id, vec![n(), None])]),
        };
        let text = |element, dims| {
            let formula = formulas.bytes(id, &tensor(element, dims));
            formula.map(|formula| formula.to_string())
        };
        let size = text(ElementType::Float16, vec![free(2), Dim::Known(8)]);
        assert_eq!(size.as_deref(), Some("16*d0"));
        let packed = text(ElementType::Int4, vec![free(2), Dim::Known(8)]);
        assert_eq!(packed.as_deref(), Some("4*d0"));
        assert_eq!(text(ElementType::Int4, vec![free(2)]), None);
        assert_eq!(text(ElementType::Float32, vec![free(2), free(3)]), None);
    }
}
