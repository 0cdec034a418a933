//! Graphs as networkx writes them.

use remat_cost::paper_problem;

use crate::{graph, judge};

/// Reads a graph, plans it, and applies the plans.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(read) = remat_nodelink::read(data) else {
        return false;
    };
    assert_eq!(read.graph.validate(), Ok(()));
    assert_eq!(read.graph.ops.len(), read.durations.len());
    match paper_problem(&read.graph, &read.durations) {
        Ok(problem) => graph::apply(&read.graph, &judge::plans(&problem)),
        Err(error) => assert!(
            graph::is_about_sizes(&error),
            "a graph that was read is not a problem: {error}"
        ),
    }
    true
}
