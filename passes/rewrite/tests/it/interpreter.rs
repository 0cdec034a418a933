//! Runs a graph on made-up values: every op hashes what it reads, so that any wrong operand changes the outputs.

use std::hash::{DefaultHasher, Hash, Hasher};

use remat_ir::{Graph, TensorId};

/// The values of the graph outputs.
pub(crate) fn outputs(graph: &Graph) -> Vec<u64> {
    let mut values: Vec<Option<u64>> = vec![None; graph.tensors.len()];
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if tensor.producer.is_none() {
            values[id.index()] = Some(hash(&tensor.name));
        }
    }
    for op in graph.ops.iter().filter(|op| op.kind.is_run()) {
        let read = |tensor: &TensorId| values[tensor.index()].unwrap();
        let inputs: Vec<Option<u64>> = op.inputs.iter().map(|input| input.as_ref().map(read)).collect();
        let captures: Vec<u64> = op.captures.iter().map(read).collect();
        let attributes = format!("{:?}", op.attributes);
        for (position, output) in op.outputs.iter().enumerate() {
            if let Some(tensor) = output {
                let value = hash(&(&op.domain, &op.op_type, &attributes, &inputs, &captures, position));
                values[tensor.index()] = Some(value);
            }
        }
    }
    graph
        .outputs
        .iter()
        .map(|output| values[output.index()].unwrap())
        .collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
