//! From a set of checkpoints to what is retained: each segment between two of them is recomputed once, as a whole.

use super::Roles;
use crate::stages::{Node, StageGraph, StageMatrix};

/// The matrix `S` of a set of checkpoints, as the paper's artifact builds it for all of Chen's strategies.
///
/// `checkpoints` are forward nodes, ascending. They cut the forward pass, loss included, into segments. Retained are:
/// 1. the operands of each node, into its own stage; gradients, in all stages up to there;
/// 2. checkpoints, to the very end;
/// 3. in a forward stage, what was computed of its segment;
/// 4. in the stage of a backward node, the segment of its owner and the backward nodes of that segment.
///
/// 2 to 4 retain results that nothing needs any more. The paper's figures count them.
pub(super) fn fixed_set(graph: &StageGraph, roles: &Roles, checkpoints: &[Node]) -> StageMatrix {
    let (count, loss) = (graph.len(), roles.loss());
    let mut retained = StageMatrix::new(count);
    for node in 0..count {
        for &parent in graph.parents(node) {
            retained.set(node, parent);
            if parent >= loss {
                for stage in parent + 1..node {
                    retained.set(stage, parent);
                }
            }
        }
    }
    for &checkpoint in checkpoints {
        for stage in checkpoint + 1..count {
            retained.set(stage, checkpoint);
        }
    }
    let starts = std::iter::once(0).chain(checkpoints.iter().copied());
    let ends = checkpoints.iter().copied().chain([loss + 1]);
    let segments: Vec<_> = starts.zip(ends).collect();
    for &(start, end) in &segments {
        for stage in start..=end.min(count - 1) {
            retained.set_range(stage, start..stage.min(end));
        }
    }
    let mut behind: Vec<Vec<Node>> = vec![Vec::new(); segments.len()];
    for stage in loss..count {
        let segment = checkpoints.partition_point(|&checkpoint| checkpoint <= roles.owner(stage));
        let (start, end) = segments[segment];
        retained.set_range(stage, start..stage.min(end));
        for &node in &behind[segment] {
            retained.set(stage, node);
        }
        behind[segment].push(stage);
    }
    retained
}

/// The matrix `S` that holds only the result of the op right before, whatever the graph.
pub(super) fn last_only(graph: &StageGraph) -> StageMatrix {
    let mut retained = StageMatrix::new(graph.len());
    for stage in 1..graph.len() {
        retained.set(stage, stage - 1);
    }
    retained
}
