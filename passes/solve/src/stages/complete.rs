//! From what is retained to what is computed, and to the sequence of runs.

use remat_plan::OpId;

use super::{Node, StageGraph, StageMatrix};

/// A plan in stage form: the matrices `S` and `R` of the paper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stages {
    retained: StageMatrix,
    computed: StageMatrix,
}

impl Stages {
    /// Completes `S` by the cheapest `R`.
    ///
    /// A node runs in its own stage; in the stage before one into which it is retained anew; and in each stage where a node runs
    /// that needs it, unless it is retained into that stage. Each of these runs is forced, so no other `R` for this `S` takes
    /// less time. Memory plays no part. Permanent nodes are retained in every stage after their own, whatever `retained` says of
    /// them; nodes with a [last stage](StageGraph::last_stage) from there into the last one that would have to run them.
    ///
    /// # Panics
    /// If `retained` has not one row for each node, or an entry on or above the diagonal.
    #[must_use]
    pub fn complete(graph: &StageGraph, mut retained: StageMatrix) -> Self {
        let count = graph.len();
        assert_eq!(retained.size(), count, "one row for each node");
        for node in (0..count).filter(|&node| graph.is_permanent(node)) {
            for stage in node + 1..count {
                retained.set(stage, node);
            }
        }
        let mut computed = forced(graph, &retained);
        while hold_overwritten(graph, &computed, &mut retained) {
            computed = forced(graph, &retained);
        }
        Self { retained, computed }
    }

    /// The matrix `S`.
    #[must_use]
    pub fn retained(&self) -> &StageMatrix {
        &self.retained
    }

    /// The matrix `R`.
    #[must_use]
    pub fn computed(&self) -> &StageMatrix {
        &self.computed
    }

    /// The runs in order: stage after stage, in each the ops in reference order.
    ///
    /// First runs follow the reference order, and no op stands before one whose result it reads.
    #[must_use]
    pub fn sequence(&self, graph: &StageGraph) -> Vec<OpId> {
        (0..graph.len())
            .flat_map(|stage| self.computed.row(stage))
            .map(|node| graph.op(node))
            .collect()
    }

    /// Time of all runs, the objective of the paper; the runs of lazy views are not in it.
    #[must_use]
    pub fn duration(&self, graph: &StageGraph) -> u64 {
        (0..graph.len())
            .flat_map(|stage| self.computed.row(stage))
            .fold(0, |sum, node| sum.saturating_add(graph.duration(node)))
    }
}

/// The cheapest `R` for an `S`.
fn forced(graph: &StageGraph, retained: &StageMatrix) -> StageMatrix {
    let count = graph.len();
    let mut computed = StageMatrix::new(count);
    for stage in 0..count {
        assert!(
            retained.row(stage).all(|node| node < stage),
            "stage {stage} retains what no stage before it computes"
        );
        computed.set(stage, stage);
        computed.add_gain(stage, retained);
        let mut due: Vec<Node> = computed.row(stage).collect();
        while let Some(node) = due.pop() {
            for &parent in graph.parents(node) {
                if !retained.get(stage, parent) && !computed.set(stage, parent) {
                    due.push(parent);
                }
            }
        }
    }
    computed
}

/// Retains nodes that run after their last stage from there on. Returns whether there were any.
fn hold_overwritten(graph: &StageGraph, computed: &StageMatrix, retained: &mut StageMatrix) -> bool {
    let mut found = false;
    for node in 0..graph.len() {
        let Some(last_stage) = graph.last_stage(node) else {
            continue;
        };
        let late = (last_stage + 1..graph.len())
            .rev()
            .find(|&stage| computed.get(stage, node));
        for stage in late.map_or(0..0, |late| last_stage + 1..late + 1) {
            retained.set(stage, node);
            found = true;
        }
    }
    found
}
