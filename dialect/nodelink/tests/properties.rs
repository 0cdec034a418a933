//! Whatever document there is, reading ends in an error or in a valid graph.

use proptest::collection::vec;
use proptest::prelude::*;
use remat_nodelink::read;
use serde_json::{Value, json};

/// A small document: nodes with ids from 0 on, and edges between any of them.
fn document() -> impl Strategy<Value = Value> {
    (1_usize..8).prop_flat_map(|nodes| {
        let ends = vec((0..nodes, 0..nodes), 0..10);
        let costs = vec((0_u64..1000, 0_u64..1000), nodes);
        let order = prop::option::of(Just((0..nodes).collect::<Vec<_>>()).prop_shuffle());
        (ends, costs, order).prop_map(|(ends, costs, order)| {
            let node = |(id, (size, time)): (usize, &(u64, u64))| json!({"id": id, "out_cost": size, "cost_cpu": time});
            let nodes: Vec<Value> = costs.iter().enumerate().map(node).collect();
            let links: Vec<Value> = ends.iter().map(|(from, to)| json!({"source": from, "1": to})).collect();
            json!({"graph": {"order": order}, "nodes": nodes, "links": links})
        })
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn a_graph_that_reads_is_valid_and_complete(document in document()) {
        let nodes = document["nodes"].as_array().map_or(0, Vec::len);
        if let Ok(read) = read(document.to_string().as_bytes()) {
            prop_assert_eq!(read.graph.validate(), Ok(()));
            prop_assert_eq!((read.graph.ops.len(), read.durations.len()), (nodes, nodes));
            if let Some(order) = document["graph"]["order"].as_array() {
                let names: Vec<Value> = read.graph.ops.iter().map(|op| json!(op.name.parse::<u64>().ok())).collect();
                prop_assert_eq!(&names, order);
            }
        }
    }

    #[test]
    fn edges_along_a_given_order_are_accepted_and_others_are_not(document in document()) {
        let place = |id: &Value| document["graph"]["order"].as_array()?.iter().position(|at| at == id);
        let links = document["links"].as_array().map_or(&[][..], Vec::as_slice);
        if document["graph"]["order"].is_array() {
            let along = links.iter().all(|edge| place(&edge["source"]) < place(&edge["1"]));
            prop_assert_eq!(read(document.to_string().as_bytes()).is_ok(), along);
        }
    }
}
