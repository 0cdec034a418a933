//! Measured costs of a model, carried over to the tiles of its ops.

use remat_cost::{Device, OpRecord, ProfileFile, analytic, no_bodies};
use remat_ir::{Graph, Op, OpId};
use rustc_hash::FxHashMap;

/// What a profile of `whole` says of `tiled`: a tile takes the share of its op's time that the cost model gives it, and what fission added, the
/// time that the cost model gives it in proportion to what was measured. Workspace is as modelled, since kernels ask for it by shape.
pub(super) fn profile_of_tiles(file: &ProfileFile, whole: &Graph, tiled: &Graph, device: &Device) -> ProfileFile {
    let [of_whole, of_tiled] = [whole, tiled].map(|graph| analytic(graph, device, no_bodies));
    let modelled = |id: OpId| of_whole.ops[id].duration_ns;
    let stated: FxHashMap<&str, &OpRecord> = file.ops.iter().map(|record| (record.node.as_str(), record)).collect();
    let producers: FxHashMap<&str, OpId> = whole
        .tensors
        .iter()
        .filter_map(|tensor| Some((tensor.name.as_str(), tensor.producer?)))
        .collect();
    let (mut measured, mut estimated) = (0u128, 0u128);
    for (id, op) in whole.ops.iter_enumerated() {
        if let Some(record) = stated.get(op.name.as_str()) {
            measured += u128::from(record.duration_ns);
            estimated += u128::from(modelled(id));
        }
    }
    let original = |op: &Op| {
        let part = op.parts.iter().flatten().next()?;
        producers.get(part.of.as_str()).copied().filter(|_| op.source.is_some())
    };
    let record = |(id, op): (OpId, &Op)| {
        let own = u128::from(of_tiled.ops[id].duration_ns);
        let (numerator, denominator) = match (original(op), op.parts.is_empty()) {
            (_, true) => return stated.get(op.name.as_str()).map(|&record| record.clone()),
            (Some(original), _) => {
                let record = stated.get(whole.ops[original].name.as_str())?;
                (u128::from(record.duration_ns), u128::from(modelled(original)))
            }
            (None, _) => (measured, estimated),
        };
        let duration = own * numerator / denominator.max(1);
        Some(OpRecord {
            node: op.name.clone(),
            duration_ns: u64::try_from(duration).unwrap_or(u64::MAX),
            workspace_bytes: None,
            outputs: Vec::new(),
        })
    };
    ProfileFile {
        ops: tiled.ops.iter_enumerated().filter_map(record).collect(),
        ..file.clone()
    }
}
