//! What was given for values and nodes of a model, carried over to what the runtime made of it.
//!
//! The runtime drops names when it fuses nodes, but never that of a value which others still read: a fused node computes the value that the
//! last of the nodes computed which it stands for. These are, read backwards from that value, all nodes up to values that the fused model
//! still has. So the time of a fused node is the sum of theirs.

use std::collections::HashSet;
use std::path::Path;

use remat::{Error, LoadOptions, Model, ReadError};
use remat_cost::{OpRecord, OutputRecord, ProfileFile};
use remat_ir::{Graph, Op, OpId, StorageClass, TensorId};
use remat_onnx::{OnnxError, OnnxModel};
use remat_onnxruntime_run::{ChildLimits, Host};
use rustc_hash::FxHashMap;

use crate::DeployError;
use crate::sizes::{looked_at, open_model};

/// Carries over what `load` states by name for the model at `original`, of which the runtime made that at `fused`.
///
/// # Errors
/// If one of them cannot be read.
pub(crate) fn map_to_fused(original: &Path, fused: &Path, mut load: LoadOptions) -> Result<LoadOptions, DeployError> {
    if load.profile.is_none() && load.sizes.is_empty() {
        return Ok(load);
    }
    let open = |path: &Path| OnnxModel::open(path, &looked_at());
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

/// Opens what the runtime made of a model. Dimensions of values that it dropped are given in vain.
///
/// # Errors
/// Those of [`open_model`].
pub(crate) fn open_fused(
    path: &Path,
    mut load: LoadOptions,
    runtime: Option<(&Host, ChildLimits<'_>)>,
) -> Result<Model, DeployError> {
    loop {
        match open_model(path, &load, runtime) {
            Err(DeployError::Pipeline(Error::Read(ReadError::Onnx(OnnxError::UnknownDim { name, .. }))))
                if load.dims.remove(&name).is_some() =>
            {
                load.fixed_dims.remove(&name);
            }
            other => return other,
        }
    }
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
mod tests {
    use remat_cost::PROFILE_FORMAT;

    use super::*;

    /// Conv, bias, an activation, and two readers.
    const ORIGINAL: &str = r#"graph "original" {
  input %x : f32[8]
  const %w : f32[8]
  %c : f32[8] = compute @conv Conv(%x, %w)
  %b : f32[8] = compute @bias Add(%c, %w)
  %f : f32[8] view of %b = compute @flat Flatten(%b)
  %r : f32[8] = compute @relu Relu(%f)
  (%s : f32[4], %t : f32[4]) = compute @split Split(%r)
  %y : f32[4] = compute @exp Exp(%s)
  %z : f32[4] = compute @neg Neg(%t)
  output %y
  output %z
}"#;

    /// The first four are one node, the last of which reads a value under another name.
    const FUSED: &str = r#"graph "fused" {
  input %x : f32[8]
  const %w : f32[8]
  %inserted : f32[8] = compute @reorder ReorderInput(%x)
  %r : f32[8] = compute @fused_conv FusedConv(%inserted, %w)
  (%s : f32[4], %other : f32[4]) = compute @split Split(%r)
  %y : f32[4] = compute @exp Exp(%s)
  %z : f32[4] = compute @neg Neg(%other)
  output %y
  output %z
}"#;

    fn file(times: &[(&str, u64)]) -> ProfileFile {
        let record = |&(node, duration_ns): &(&str, u64)| OpRecord {
            node: node.to_owned(),
            duration_ns,
            workspace_bytes: Some(duration_ns),
            outputs: vec![OutputRecord {
                tensor: if node == "relu" { "r" } else { "gone" }.to_owned(),
                element: "float".to_owned(),
                shape: vec![8],
                bytes: Some(32),
            }],
        };
        ProfileFile {
            format: PROFILE_FORMAT.to_owned(),
            device: String::new(),
            method: String::new(),
            date: None,
            run: None,
            ops: times.iter().map(record).collect(),
        }
    }

    fn carried(times: &[(&str, u64)]) -> Vec<(String, u64, Option<u64>, usize)> {
        let [original, fused] = [ORIGINAL, FUSED].map(|text| text.parse::<Graph>().expect("it is a graph"));
        let file = Carry::new(&original, &fused).profile(file(times));
        let of = |record: OpRecord| {
            (
                record.node,
                record.duration_ns,
                record.workspace_bytes,
                record.outputs.len(),
            )
        };
        file.ops.into_iter().map(of).collect()
    }

    #[test]
    fn a_fused_node_takes_what_the_nodes_took_that_it_stands_for() {
        let times = [
            ("conv", 100),
            ("bias", 20),
            ("relu", 3),
            ("split", 5),
            ("exp", 7),
            ("neg", 8),
        ];
        let expected = [
            ("fused_conv", 123, None, 1),
            ("split", 5, Some(5), 0),
            ("exp", 7, Some(7), 0),
            ("neg", 8, Some(8), 0),
        ];
        assert_eq!(
            carried(&times),
            expected.map(|(node, time, workspace, outputs)| (node.to_owned(), time, workspace, outputs))
        );
    }

    #[test]
    fn a_part_without_a_time_leaves_the_fused_node_without_one() {
        let names = |times: &[(&str, u64)]| carried(times).into_iter().map(|(node, ..)| node).collect::<Vec<_>>();
        assert_eq!(names(&[("conv", 100), ("relu", 3), ("exp", 7)]), ["exp"]);
        assert_eq!(names(&[("fused_conv", 100), ("reorder", 3)]), ["reorder", "fused_conv"]);
        assert_eq!(names(&[("exp", 7), ("nowhere", 3)]), ["exp", "nowhere"]);
    }

    #[test]
    fn sizes_of_values_that_are_gone_are_dropped_and_unknown_names_stay_for_the_error() {
        let [original, fused] = [ORIGINAL, FUSED].map(|text| text.parse::<Graph>().expect("it is a graph"));
        let carry = Carry::new(&original, &fused);
        assert_eq!(
            ["r", "c", "nowhere"].map(|name| carry.is_left(name)),
            [true, false, true]
        );
    }
}
