//! Formulas of sizes, checked against the sizes that were inferred at the values given.

use std::collections::HashMap;

use remat_formula::Formula;
use remat_ir::{Dim, Formulas, Graph, Tensor};

use crate::shapes::{Shape, Table};

/// The formulas of the graph's dimensions that may have other sizes, but none that contradicts the size that the dimension has.
pub(super) fn checked(graph: &Graph, table: Table, mut shapes: HashMap<String, Shape>) -> Option<Formulas> {
    let Table { variables, given, .. } = table;
    let values = variables.values(&given)?;
    let is_right = |formula: &Formula, dim: &Dim, tensor: &Tensor| {
        let value = formula.value(&values).and_then(|value| u64::try_from(value).ok());
        let is_right = value.is_some() && value == dim.size();
        if !is_right {
            tracing::debug!(tensor = tensor.name, ?dim, %formula, "a formula contradicts the size; it is dropped");
        }
        is_right
    };
    let mut found = Formulas {
        variables,
        given,
        ..Formulas::default()
    };
    for (id, tensor) in graph
        .tensors
        .iter_enumerated()
        .filter(|(_, tensor)| tensor.ty.has_free_dims())
    {
        let dims = tensor.ty.dims();
        let Some(shape) = shapes.remove(&tensor.name).filter(|shape| shape.len() == dims.len()) else {
            continue;
        };
        let checked = shape.into_iter().zip(dims);
        let checked = checked.map(|(formula, dim)| formula.filter(|formula| is_right(formula, dim, tensor)));
        found.shapes.insert(id, checked.collect());
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use remat_ir::{ElementType, GraphBuilder, ValueType};

    use super::*;

    #[test]
    fn a_formula_that_contradicts_the_size_is_dropped() {
        let free = |size| Dim::Free { size, name: None };
        let ty = ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(vec![free(4), free(5), Dim::Known(6), free(7)]),
        };
        let mut builder = GraphBuilder::new("g");
        let x = builder.input("x", ty).unwrap();
        let table = Table::of_sizes(&[("n", 4)]);
        let n = || Some(Formula::variable(0));
        let shapes = HashMap::from([("x".to_owned(), vec![n(), n(), None, None])]);
        let formulas = checked(&builder.finish(), table, shapes).unwrap();
        assert_eq!(formulas.shapes[&x], [n(), None, None, None]);
        assert_eq!(formulas.given, [4]);
    }
}
