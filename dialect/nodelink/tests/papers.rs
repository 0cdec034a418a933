//! The graphs of the Moccasin and Checkmate papers: peaks of their reference orders.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use remat_ir::{Graph, OpId, TensorId};
use remat_nodelink::{is_node_link, read};
use remat_testing::{Need, run, trial, workspace};

fn main() -> ExitCode {
    run([trial!(the_reference_orders_have_the_published_peaks, Need::Graphs)])
}

/// The most bytes resident while an op runs: what it reads, its result, and whatever later ops still read.
fn peak(graph: &Graph) -> u64 {
    let mut last: BTreeMap<TensorId, OpId> = BTreeMap::new();
    for (id, op) in graph.ops.iter_enumerated() {
        last.extend(op.results().chain(op.reads()).map(|tensor| (tensor, id)));
    }
    let bytes = |tensor: TensorId| {
        graph.storages[graph.tensors[tensor].storage]
            .bytes
            .expect("every node has a size")
    };
    let (mut resident, mut peak) = (0, 0);
    for (id, op) in graph.ops.iter_enumerated() {
        resident += op.results().map(bytes).sum::<u64>();
        peak = peak.max(resident);
        let dying = op.results().chain(op.reads()).filter(|tensor| last[tensor] == id);
        resident -= dying.map(bytes).sum::<u64>();
    }
    assert_eq!(resident, 0);
    peak
}

fn the_reference_orders_have_the_published_peaks() {
    let folder = workspace().join("../shared/graphs");
    for (file, nodes, expected) in [
        ("rl_n100", 100, 46_319),
        ("rl_n250", 250, 146_840),
        ("rl_n1000", 1000, 608_619),
        ("cm_resnet50_train", 353, 38_059_356_160),
        ("cm_fcn8_train", 73, 13_484_795_520),
        ("cm_mobilenet_train", 185, 34_701_056_000),
        ("cm_vgg16_train", 45, 15_825_108_992),
    ] {
        let bytes = fs::read(folder.join(file).with_extension("json")).unwrap();
        assert!(is_node_link(&bytes), "{file}");
        let read = read(&bytes).unwrap();
        assert_eq!(read.graph.validate(), Ok(()), "{file}");
        assert_eq!((read.graph.ops.len(), read.durations.len()), (nodes, nodes), "{file}");
        assert_eq!(peak(&read.graph), expected, "{file}");
        assert_eq!(Graph::parse(&read.graph.to_string()), Ok(read.graph), "{file}");
    }
}
