//! Names as the model has them.
//!
//! What is planned may be what a runtime or a pass made of the model: fused, in tiles, in blocks of channels. Its ops and tensors are called
//! by those of the model that they come from, as far as names and results tell.

use std::collections::HashMap;

use remat_plan::{OpId, Problem, StorageId};

/// What a name that is not the model's has after the one it comes from, of an op that tiles run again.
const AGAIN: &str = "_again";

/// Ops and tensors of the model by name.
pub(crate) struct Names<'a> {
    model: &'a Problem,
    ops: HashMap<&'a str, OpId>,
    /// Tensors and what makes them.
    tensors: HashMap<&'a str, Option<OpId>>,
}

/// A name of the model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) name: &'a str,
    /// Whether it is the name of a clone that runs again.
    pub(crate) is_again: bool,
}

impl<'a> Names<'a> {
    pub(crate) fn of(model: &'a Problem) -> Self {
        let ops = model.ops.iter_enumerated().map(|(id, op)| (op.name.as_str(), id));
        let tensors = model
            .tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor.producer));
        Self {
            model,
            ops: ops.collect(),
            tensors: tensors.collect(),
        }
    }

    /// The op of the model that an op of `problem` comes from.
    pub(crate) fn op(&self, problem: &'a Problem, id: OpId) -> Origin<'a> {
        let op = &problem.ops[id];
        if let Some(found) = origin(&op.name, &self.ops) {
            return found;
        }
        let results = op.defines.iter().map(|&tensor| problem.tensors[tensor].name.as_str());
        let makers = results.filter_map(|name| {
            let found = origin(name, &self.tensors)?;
            let maker = self.tensors.get(found.name).copied().flatten()?;
            Some(Origin {
                name: &self.model.ops[maker].name,
                ..found
            })
        });
        makers.take(1).last().unwrap_or(Origin::own(&op.name))
    }

    /// The tensor of the model that a storage of `problem` is made for.
    pub(crate) fn tensor(&self, problem: &'a Problem, id: StorageId) -> Origin<'a> {
        let name = problem.storage_name(id);
        if let Some(found) = origin(name, &self.tensors) {
            return found;
        }
        let root = problem.storages[id].root;
        let maker = problem.tensors[root].producer;
        let result = maker.and_then(|maker| {
            let found = self.op(problem, maker);
            let op = &self.model.ops[*self.ops.get(found.name)?];
            let place = problem.ops[maker].defines.iter().position(|&tensor| tensor == root)?;
            let result = *op.defines.get(place)?;
            Some(Origin {
                name: &self.model.tensors[result].name,
                ..found
            })
        });
        result.unwrap_or(Origin::own(name))
    }
}

impl<'a> Origin<'a> {
    fn own(name: &'a str) -> Self {
        Self { name, is_again: false }
    }
}

/// The longest beginning of a name that is known, up to a mark that endings are joined with.
fn origin<'a, T>(name: &'a str, known: &HashMap<&'a str, T>) -> Option<Origin<'a>> {
    let ends = std::iter::once(name.len()).chain(name.rmatch_indices(['_', '/']).map(|(place, _)| place));
    let mut beginnings = ends.map(|end| name.split_at(end));
    let (name, ending) = beginnings.find(|(beginning, _)| known.contains_key(beginning))?;
    Some(Origin {
        name,
        is_again: ending.starts_with(AGAIN),
    })
}

#[cfg(test)]
mod tests {
    use remat_testing::net::{Net, transient};

    use super::*;

    fn made(op: &str, tensor: &str) -> Problem {
        Net::new()
            .input("x")
            .op(op, 1, &["x"], &[(tensor, transient(64))])
            .done()
    }

    #[test]
    fn what_was_made_of_an_op_is_called_by_it() {
        let model = made("conv_1", "y");
        let names = Names::of(&model);
        for (op, tensor, is_again) in [
            ("conv_1", "y", false),
            ("conv_1_nchwc", "reorder_token_0", false),
            ("conv_1_tile3", "y_tile3", false),
            ("conv_1_again", "y_again", true),
            ("Fused/7", "y", false),
        ] {
            let written = made(op, tensor);
            let found = names.op(&written, OpId::new(0));
            assert_eq!((found.name, found.is_again), ("conv_1", is_again), "{op}");
            let storage = written.storages.last_key().expect("it makes one");
            assert_eq!(names.tensor(&written, storage).name, "y", "{tensor}");
        }
    }

    #[test]
    fn what_nothing_tells_the_origin_of_keeps_its_name() {
        let (model, written) = (made("conv_1", "y"), made("conv_12", "z"));
        assert_eq!(Names::of(&model).op(&written, OpId::new(0)), Origin::own("conv_12"));
    }
}
