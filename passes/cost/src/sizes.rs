//! Memory as formulas of the dimensions that the model leaves open.

use remat_formula::{Formula, Variables};
use remat_ir::{Graph, StorageId};
use remat_plan::{Problem, StorageRole};
use typed_index_collections::TiVec;

/// The sizes of a problem's storages as formulas.
///
/// At the sizes that the graph was imported at, each formula is the number that the problem has.
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
    /// The bytes of all others, at the sizes that were given.
    pub rest: u64,
}

impl SizeFormulas {
    /// The formulas of `problem`, which was made from `graph` with this alignment; `None` where the graph has none.
    #[must_use]
    pub fn of(graph: &Graph, problem: &Problem, alignment: u64) -> Option<Self> {
        let formulas = graph.formulas.as_ref()?;
        let mut variables = formulas.variables.clone();
        let alignment = u32::try_from(alignment.max(1)).ok()?;
        let mut aligned = |id: StorageId| {
            let bytes = graph.bytes_formula(graph.storages[id].root)?;
            let blocks = variables.ceil(&bytes, alignment)?;
            blocks.times(&Formula::constant(alignment.into()))
        };
        let storages = problem.storages.iter_enumerated();
        let mut storages: TiVec<_, _> = storages
            .map(|(id, storage)| aligned(id).filter(|_| storage.role != StorageRole::External))
            .collect();
        let given = formulas.given.clone();
        let values = variables.values(&given)?;
        for (formula, storage) in storages.iter_mut().zip(&problem.storages) {
            formula.take_if(|formula| formula.value(&values) != Some(storage.bytes.into()));
        }
        Some(Self {
            variables,
            given,
            storages,
        })
    }

    /// The bytes of a storage that counts.
    #[must_use]
    pub fn bytes(&self, storage: StorageId) -> Option<&Formula> {
        self.storages.get(storage)?.as_ref()
    }

    /// The sum of what is in memory, of which the bytes are given; `workspace` is the bytes that a kernel takes besides.
    #[must_use]
    pub fn load(&self, resident: &[(StorageId, u64)], workspace: u64) -> Load {
        let start = Load {
            formula: Formula::default(),
            rest: workspace,
        };
        resident.iter().fold(start, |load, &(storage, bytes)| {
            let sum = self.bytes(storage).and_then(|formula| load.formula.plus(formula));
            match sum {
                Some(formula) => Load { formula, ..load },
                None => Load {
                    rest: load.rest.saturating_add(bytes),
                    ..load
                },
            }
        })
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
    fn sizes_are_aligned_and_what_has_no_formula_counts_as_it_is() {
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
        let sizes = SizeFormulas::of(&graph, &problem, profile.alignment).unwrap();
        let storage = |tensor: remat_ir::TensorId| problem.tensors[tensor].storage;
        let names = sizes.variables.names();
        let text = |tensor| sizes.bytes(storage(tensor)).map(|bytes| names.text(bytes));
        assert_eq!([x, data, wrong].map(text), [None, None, None]);
        assert_eq!(text(same).as_deref(), Some("64*floor((n+15)/16)"));
        let load = sizes.load(&[(storage(same), 64), (storage(data), 128)], 1000);
        assert_eq!((names.text(&load.formula), load.rest), (text(same).unwrap(), 1128));
    }
}
