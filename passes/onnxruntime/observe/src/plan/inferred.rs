//! Recorded sizes beside those that are inferred from the model.

use std::collections::{HashMap, HashSet};

use remat_formula::{Fit, Formula, OpenDim, Ranges, Shape, Variables};
use remat_onnxruntime_arena::Plans;

/// Random shapes with which formulas are compared, besides the corners of the ranges.
const SHAPES: usize = 24;

/// Bytes of tensors as formulas of the dimensions that a model leaves open, right for every size of them.
#[derive(Clone, Debug, Default)]
pub struct InferredSizes {
    /// The dimensions, and what follows from them.
    pub variables: Variables,
    /// Of every tensor of which the size is known.
    pub bytes: Vec<Formula>,
}

/// How many different sizes a buffer has at least, where it is taken for a tensor because all of them are those of that.
const LEAST_SIZES: usize = 3;

/// The sizes of tensors in recorded runs.
pub(super) struct TensorSizes<'i> {
    variables: &'i Variables,
    /// Which of the dimensions of the runs each of the variables' is.
    places: Vec<usize>,
    /// By their sizes in all of the runs.
    formulas: HashMap<Vec<u64>, &'i Formula>,
}

impl TensorSizes<'_> {
    /// The formula of a tensor that has these sizes, over the variables of `fit`.
    pub(super) fn formula(&self, sizes: &[u64], fit: &mut Fit) -> Option<Formula> {
        let different: HashSet<&u64> = sizes.iter().collect();
        let formula = self.formulas.get(sizes).filter(|_| different.len() >= LEAST_SIZES)?;
        fit.adopted(formula, self.variables, &self.places)
    }
}

impl InferredSizes {
    /// The sizes of tensors in runs with these sizes of the dimensions.
    pub(super) fn in_samples<'s>(&self, dims: &[OpenDim], samples: impl Iterator<Item = &'s [u64]>) -> TensorSizes<'_> {
        let own = self.variables.dims().iter();
        let places = own.map(|own| dims.iter().position(|dim| dim.name == own.name));
        let places: Vec<usize> = places.collect::<Option<_>>().unwrap_or_default();
        let is_known = places.len() == self.variables.dims().len();
        let values = samples.map(|sample| {
            let sizes: Vec<u64> = places.iter().filter_map(|&place| sample.get(place).copied()).collect();
            self.variables.values(&sizes)
        });
        let values: Vec<Vec<i128>> = values.collect::<Option<_>>().unwrap_or_default();
        let sizes = |formula: &Formula| -> Option<Vec<u64>> {
            let sizes = values.iter().map(|values| u64::try_from(formula.value(values)?).ok());
            sizes.collect()
        };
        let formulas = self.bytes.iter().filter(|_| is_known);
        TensorSizes {
            variables: &self.variables,
            places,
            formulas: formulas
                .filter_map(|formula| Some((sizes(formula)?, formula)))
                .collect(),
        }
    }

    /// How many buffers of a plan have the size of a tensor in all shapes that are tried; what `given` does not say of a dimension makes it none.
    pub(super) fn among(&self, plans: &Plans, plan: usize, ranges: &Ranges, given: &Shape) -> usize {
        let shapes: Vec<Shape> = ranges.corners().into_iter().chain(ranges.sample(SHAPES, 0)).collect();
        let size = |shape: &Shape, name: &str| shape.get(name).or_else(|| given.get(name)).copied();
        let values = shapes.iter().map(|shape| {
            let dims: Option<Vec<u64>> = self.variables.dims().iter().map(|dim| size(shape, &dim.name)).collect();
            self.variables.values(&dims?)
        });
        let Some(values) = values.collect::<Option<Vec<Vec<i128>>>>() else {
            return 0;
        };
        let at_all = |formula: &Formula| {
            values
                .iter()
                .map(|values| formula.value(values))
                .collect::<Option<Vec<i128>>>()
        };
        let tensors: HashSet<Vec<i128>> = self.bytes.iter().filter_map(at_all).collect();
        let runs = shapes.iter().map(|shape| {
            let dims = ranges.names().map(|name| size(shape, name).unwrap_or(1));
            plans.shape_with_least(plan, &dims.collect::<Vec<_>>())
        });
        let Some(runs) = runs.collect::<Option<Vec<_>>>() else {
            return 0;
        };
        let buffers = runs.first().map_or(0, |run| run.sizes().len());
        let is_inferred = |&place: &usize| {
            let sizes = runs
                .iter()
                .map(|run| run.sizes().get(place).map(|&size| i128::from(size)));
            sizes
                .collect::<Option<Vec<i128>>>()
                .is_some_and(|sizes| tensors.contains(&sizes))
        };
        (0..buffers).filter(is_inferred).count()
    }
}
