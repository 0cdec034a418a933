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
    let sources = whole.ops.iter_enumerated();
    let sources: FxHashMap<u32, OpId> = sources.filter_map(|(id, op)| Some((op.source?, id))).collect();
    let (mut measured, mut estimated) = (0u128, 0u128);
    for (id, op) in whole.ops.iter_enumerated() {
        if let Some(record) = stated.get(op.name.as_str()) {
            measured += u128::from(record.duration_ns);
            estimated += u128::from(modelled(id));
        }
    }
    let original = |op: &Op| sources.get(&op.source?).copied();
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

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"graph "g" {
      input %x : f32[1, 1, 8]
      %a : f32[1, 1, 8] = compute @relu Relu(%x) source 0
      %m : f32[1, 1, 1] = compute @mean ReduceMean(%a) {axes = [2]} source 1
      output %m
    }"#;

    const TILED: &str = r#"graph "g" {
      input %x : f32[1, 1, 8]
      %a0 : f32[1, 1, 8] part of a[0:1, 0:1, 0:8] = compute @relu0 Relu(%x) source 0
      %m0 : f32[1, 1, 1] part over a[0:1, 0:1, 0:8] = compute @mean0 ReduceMean(%a0) {axes = [2]} source 1
      output %m0
    }"#;

    #[test]
    fn a_sum_over_a_part_takes_a_share_of_its_own_op_and_not_of_the_one_that_makes_the_part() {
        let [whole, tiled] = [WHOLE, TILED].map(|text| Graph::parse(text).unwrap());
        let device = Device::preset(Device::DEFAULT).unwrap();
        let record = |node: &str, duration_ns| OpRecord {
            node: node.to_owned(),
            duration_ns,
            workspace_bytes: None,
            outputs: Vec::new(),
        };
        let file = ProfileFile {
            format: remat_cost::PROFILE_FORMAT.to_owned(),
            device: "a machine".to_owned(),
            method: "by hand".to_owned(),
            date: None,
            run: None,
            ops: vec![record("relu", 100), record("mean", 7_000)],
        };
        let found = profile_of_tiles(&file, &whole, &tiled, &device);
        let found: Vec<(&str, u64)> = found
            .ops
            .iter()
            .map(|one| (one.node.as_str(), one.duration_ns))
            .collect();
        assert_eq!(found, [("relu0", 100), ("mean0", 7_000)]);
    }
}
