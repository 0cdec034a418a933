//! Recorded sizes beside those that are inferred from the model.

use std::collections::HashSet;

use remat_formula::{Formula, Ranges, Shape, Variables};
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

impl InferredSizes {
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
