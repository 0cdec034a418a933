//! What a function computes, so that two can be compared: every returned value as a digest of the operations that lead to it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use remat_mlir_passes::mlir::{Function, ImportOptions};

/// A digest of each of the values that the function returns, so many. Fences and markers mean nothing; operations with effects also mean how many of them came before.
pub(crate) fn meaning(function: Function<'_>, returned: usize) -> Vec<u64> {
    let options = ImportOptions {
        scheduled: true,
        ..ImportOptions::default()
    };
    let bodies = function.bodies().expect("it is a function");
    let mut imported = bodies[0].import(&options).expect("the function is read");
    imported.drop_memory_ops();
    let graph = imported.graph();
    let mut digests: BTreeMap<usize, u64> = BTreeMap::new();
    for (id, tensor) in graph
        .tensors
        .iter_enumerated()
        .filter(|(_, tensor)| tensor.producer.is_none())
    {
        // Constants by their types: there is one of each in the generated functions. Arguments by their names.
        let name = if tensor.name.starts_with("arg") {
            &tensor.name
        } else {
            ""
        };
        digests.insert(id.index(), digest(&(name, format!("{:?}", tensor.ty))));
    }
    let mut calls = 0u32;
    for op in &graph.ops {
        let reads: Vec<u64> = op
            .inputs
            .iter()
            .flatten()
            .map(|tensor| digests[&tensor.index()])
            .collect();
        let captures: Vec<u64> = op.captures.iter().map(|tensor| digests[&tensor.index()]).collect();
        if op.domain == "func" {
            calls += 1;
        }
        let is_fence = op.domain == "remat";
        for (index, &result) in op.outputs.iter().flatten().enumerate() {
            let of = (
                &op.domain,
                &op.op_type,
                &reads,
                &captures,
                index,
                if op.domain == "func" { calls } else { 0 },
            );
            let value = if is_fence { reads[0] } else { digest(&of) };
            digests.insert(result.index(), value);
        }
    }
    // Others follow that only stay to the end.
    let returned = graph.outputs.iter().take(returned);
    returned.map(|tensor| digests[&tensor.index()]).collect()
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
