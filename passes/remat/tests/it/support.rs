//! What the tests of the pipeline share.

use std::path::Path;

use proptest::prelude::*;
use remat::profile::{OpRecord, PROFILE_FORMAT, ProfileFile};
use remat::{LoadOptions, Model};

/// A file below `test/`.
pub(crate) fn open(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test").join(name);
    Model::open(&path, &LoadOptions::default()).expect("the model opens")
}

/// A profile of one op.
pub(crate) fn profile_of(node: String, duration_ns: u64, workspace_bytes: u64) -> ProfileFile {
    ProfileFile {
        format: PROFILE_FORMAT.to_owned(),
        device: "mine".to_owned(),
        method: "by hand".to_owned(),
        date: None,
        run: None,
        ops: vec![OpRecord {
            node,
            duration_ns,
            workspace_bytes: Some(workspace_bytes),
            outputs: Vec::new(),
        }],
    }
}

/// A model from node-link JSON.
pub(crate) fn open_text(text: &str) -> Model {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("graph.json");
    std::fs::write(&path, text).expect("written");
    Model::open(&path, &LoadOptions::default()).expect("the graph opens")
}

/// A random graph as node-link JSON: each node reads some of the few nodes before it.
pub(crate) fn graph() -> impl Strategy<Value = String> {
    let node = (1u64..50, 1u64..50, any::<u8>());
    proptest::collection::vec(node, 3..24).prop_map(|nodes| {
        let list = nodes
            .iter()
            .enumerate()
            .map(|(id, (bytes, time, _))| serde_json::json!({ "id": id, "cost_ram": bytes, "cost_cpu": time }));
        let links = nodes.iter().enumerate().flat_map(|(id, &(_, _, mask))| {
            let reads = (0..8usize).filter(move |bit| mask >> bit & 1 == 1 && *bit < id);
            reads.map(move |bit| serde_json::json!({ "source": id - bit - 1, "target": id }))
        });
        let (list, links): (Vec<_>, Vec<_>) = (list.collect(), links.collect());
        serde_json::json!({ "directed": true, "graph": {}, "nodes": list, "links": links }).to_string()
    })
}
