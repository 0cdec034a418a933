//! Memory as formulas of the dimensions that the model leaves open.

use remat_formula::{Formula, Variables};
use remat_ir::{Graph, StorageId};
use remat_plan::{Problem, ProblemStorage, StorageRole};
use typed_index_collections::TiVec;

/// The sizes of a problem's storages as formulas: bytes before they are rounded up to multiples of the alignment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeFormulas {
    /// The open dimensions, and what follows from them.
    pub variables: Variables,
    /// By open dimension: the size that the graph was imported at.
    pub given: Vec<u64>,
    storages: TiVec<StorageId, Option<Formula>>,
}

/// What is in memory at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The bytes of all storages that have a formula.
    pub formula: Formula,
    /// That at the sizes given.
    pub bytes: u64,
    /// The bytes beyond, at the sizes given: of kernels, of what has no formula, and of what is rounded up.
    pub rest: u64,
}

impl SizeFormulas {
    /// The formulas of `problem`, which was made from `graph`; `None` where the graph has none.
    #[must_use]
    pub fn of(graph: &Graph, problem: &Problem) -> Option<Self> {
        let formulas = graph.formulas.as_ref()?;
        let values = formulas.variables.values(&formulas.given)?;
        let formula = |(id, storage): (StorageId, &ProblemStorage)| {
            let own = graph
                .storages
                .get(id)
                .filter(|_| storage.role != StorageRole::External)?;
            let formula = graph.bytes_formula(own.root)?;
            (formula.value(&values) == own.bytes.map(i128::from)).then_some(formula)
        };
        Some(Self {
            variables: formulas.variables.clone(),
            given: formulas.given.clone(),
            storages: problem.storages.iter_enumerated().map(formula).collect(),
        })
    }

    /// The bytes of a storage that counts.
    #[must_use]
    pub fn bytes(&self, storage: StorageId) -> Option<&Formula> {
        self.storages.get(storage)?.as_ref()
    }

    /// The sum of what is in memory, where that comes to so many bytes with the kernel's.
    #[must_use]
    pub fn load(&self, resident: impl IntoIterator<Item = StorageId>, total: u64) -> Load {
        let formulas = resident.into_iter().filter_map(|storage| self.bytes(storage));
        let formula = formulas.fold(Formula::default(), |sum, formula| sum.plus(formula).unwrap_or(sum));
        let value = self
            .variables
            .values(&self.given)
            .and_then(|values| formula.value(&values));
        let bytes = value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
        Load {
            formula,
            bytes,
            rest: total.saturating_sub(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use remat_formula::OpenDim;
    use remat_ir::{Dim, ElementType, Formulas, GraphBuilder, OpSpec, ValueType};

    use super::*;
    use crate::{Device, ProblemOptions, analytic, no_bodies, problem};

    #[test]
    fn what_has_no_formula_and_what_is_rounded_up_is_told_apart() {
        let open = |size| ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(vec![Dim::Free { size, name: None }]),
        };
        let mut builder = GraphBuilder::new("g");
        let x = builder.input("x", open(5)).unwrap();
        let mut op = |name: &str, size| {
            let op = OpSpec::new(name, "Relu").reads(x).defines(name, open(size));
            builder.op(op).unwrap().1[0].unwrap()
        };
        let (same, data, wrong) = (op("same", 5), op("data", 20), op("wrong", 60));
        let mut graph = builder.finish();
        let n = || vec![Some(Formula::variable(0))];
        let dim = OpenDim {
            name: "n".to_owned(),
            least: 1,
            most: 99,
        };
        graph.formulas = Some(Formulas {
            variables: Variables::new(vec![dim]),
            given: vec![5],
            shapes: BTreeMap::from([(x, n()), (same, n()), (wrong, n())]),
        });
        let profile = analytic(&graph, &Device::default(), no_bodies);
        let problem = problem(&graph, &profile, &ProblemOptions::default()).unwrap();
        let sizes = SizeFormulas::of(&graph, &problem).unwrap();
        let storage = |tensor: remat_ir::TensorId| problem.tensors[tensor].storage;
        let text = |tensor| sizes.bytes(storage(tensor)).map(ToString::to_string);
        assert_eq!([x, data, wrong].map(text), [None, None, None]);
        assert_eq!(text(same).as_deref(), Some("4*d0"));
        let load = sizes.load([same, data].map(storage), 64 + 128 + 1000);
        assert_eq!(
            (load.formula.to_string(), load.bytes, load.rest),
            ("4*d0".to_owned(), 20, 1172)
        );
    }
}
