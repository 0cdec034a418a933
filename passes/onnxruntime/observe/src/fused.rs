//! What was given for values and nodes of a model, mapped to what the runtime made of it.
//!
//! The runtime drops names when it fuses nodes, but never that of a value which others still read: a fused node computes the value that the
//! last of the nodes computed which it stands for. These are, read backwards from that value, all nodes up to values that the fused model
//! still has. So the time of a fused node is the sum of theirs.

use std::collections::HashSet;
use std::path::Path;

use remat::LoadOptions;
use remat_cost::{OpRecord, OutputRecord, ProfileFile};
use remat_ir::{Graph, Op, OpId, StorageClass, TensorId};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use rustc_hash::FxHashMap;

/// Carries over what `load` states by name for the model at `original`, of which the runtime made that at `fused`.
///
/// # Errors
/// If one of them cannot be read.
pub fn map_to_fused(original: &Path, fused: &Path, mut load: LoadOptions) -> Result<LoadOptions, OnnxError> {
    if load.profile.is_none() && load.sizes.is_empty() {
        return Ok(load);
    }
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let open = |path: &Path| OnnxModel::open(path, &looked_at);
    let (original, fused) = (open(original)?, open(fused)?);
    let carry = Carry::new(original.graph(), fused.graph());
    load.sizes.retain(|name, _| carry.is_left(name));
    if let Some(file) = load.profile.take() {
        for output in file.ops.iter().flat_map(|record| &record.outputs) {
            if let Some(bytes) = output.bytes.filter(|_| carry.has(&output.tensor)) {
                load.sizes.entry(output.tensor.clone()).or_insert(bytes);
            }
        }
        load.profile = Some(carry.profile(file));
    }
    Ok(load)
}

/// Two graphs that compute the same.
struct Carry<'g> {
    original: &'g Graph,
    fused: &'g Graph,
    /// Values of the original by name.
    values: FxHashMap<&'g str, TensorId>,
    /// Names of the values of the fused graph.
    left: HashSet<&'g str>,
}

impl<'g> Carry<'g> {
    fn new(original: &'g Graph, fused: &'g Graph) -> Self {
        let named = original.tensors.iter_enumerated();
        Self {
            original,
            fused,
            values: named.map(|(id, tensor)| (tensor.name.as_str(), id)).collect(),
            left: fused.tensors.iter().map(|tensor| tensor.name.as_str()).collect(),
        }
    }

    /// Whether the fused graph has the value.
    fn has(&self, name: &str) -> bool {
        self.left.contains(name)
    }

    /// Whether what is stated for the value is still about one: the fused graph has it, or neither has, which is the caller's mistake.
    fn is_left(&self, name: &str) -> bool {
        self.has(name) || !self.values.contains_key(name)
    }

    /// What a profile of the original says of the fused graph. What it says of nodes that only the fused graph has, it says of it directly.
    fn profile(&self, mut file: ProfileFile) -> ProfileFile {
        let stated: FxHashMap<&str, &OpRecord> = file.ops.iter().map(|record| (record.node.as_str(), record)).collect();
        let seen = file.ops.iter().flat_map(|record| &record.outputs);
        let seen: FxHashMap<&str, &OutputRecord> = seen.map(|output| (output.tensor.as_str(), output)).collect();
        let known: HashSet<&str> = self.original.ops.iter().map(|op| op.name.as_str()).collect();
        let outputs = |op: &Op| {
            let results = op.results().map(|result| self.fused.tensors[result].name.as_str());
            results
                .filter_map(|name| seen.get(name).map(|&output| output.clone()))
                .collect()
        };
        let carried = |op: &Op| {
            if let Some(&direct) = stated
                .get(op.name.as_str())
                .filter(|_| !known.contains(op.name.as_str()))
            {
                return Some(direct.clone());
            }
            let parts = self.stands_for(op);
            let records: Vec<&OpRecord> = parts
                .iter()
                .filter(|&&part| self.takes_time(part))
                .map(|&part| stated.get(self.original.ops[part].name.as_str()).copied())
                .collect::<Option<_>>()?;
            let workspace_bytes = match records[..] {
                [] => return None,
                [only] => only.workspace_bytes,
                // What a fused kernel takes is not what its parts took.
                _ => None,
            };
            let durations = records.iter().map(|record| record.duration_ns);
            Some(OpRecord {
                node: op.name.clone(),
                duration_ns: durations.fold(0, u64::saturating_add),
                workspace_bytes,
                outputs: outputs(op),
            })
        };
        let ops: Vec<OpRecord> = self.fused.ops.iter().filter_map(carried).collect();
        let unknown = |record: &&OpRecord| {
            // Of nodes that neither graph has, the error is told where the profile is used.
            !known.contains(record.node.as_str()) && ops.iter().all(|carried| carried.node != record.node)
        };
        let unknown: Vec<OpRecord> = file.ops.iter().filter(unknown).cloned().collect();
        tracing::debug!(
            stated = file.ops.len(),
            carried = ops.len(),
            nodes = self.fused.ops.len(),
            "measured times were carried over to fused nodes"
        );
        file.ops = ops;
        file.ops.extend(unknown);
        file
    }

    /// The ops of the original that an op of the fused graph stands for.
    fn stands_for(&self, op: &Op) -> Vec<OpId> {
        let mut found = Vec::new();
        let named = op
            .results()
            .filter_map(|result| self.values.get(self.fused.tensors[result].name.as_str()));
        let mut pending: Vec<OpId> = named
            .filter_map(|&value| self.original.tensors[value].producer)
            .collect();
        while let Some(id) = pending.pop() {
            if found.contains(&id) {
                continue;
            }
            found.push(id);
            let part = &self.original.ops[id];
            let producers = part
                .reads()
                .filter_map(|operand| self.original.tensors[operand].producer);
            pending.extend(producers.filter(|&producer| !self.is_there(producer)));
        }
        found
    }

    /// Whether the fused graph still has any of the op's results.
    fn is_there(&self, op: OpId) -> bool {
        let mut results = self.original.ops[op].results();
        results.any(|result| self.has(&self.original.tensors[result].name))
    }

    /// Whether an op runs whenever the model runs: what makes constants only runs when the model is loaded, and views are free.
    fn takes_time(&self, op: OpId) -> bool {
        let graph = self.original;
        let is_made = |result: TensorId| {
            let storage = &graph.storages[graph.tensors[result].storage];
            storage.root == result && storage.class != StorageClass::Constant
        };
        let mut results = graph.ops[op].results().peekable();
        results.peek().is_none() || results.any(is_made)
    }
}

#[cfg(test)]
#[path = "fused_tests.rs"]
mod tests;
