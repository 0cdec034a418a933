//! From a set of checkpoints to what is retained: each segment between two of them is recomputed once, as a whole.

use super::Roles;
use remat_solve::stages::{Node, StageGraph, StageMatrix};

/// The matrix `S` of a set of checkpoints, as the paper's artifact builds it for all of Chen's strategies.
///
/// `checkpoints` are forward nodes, ascending. They cut the forward pass, loss included, into segments. Retained are:
/// 1. the operands of each node, into its own stage; gradients, in all stages up to there;
/// 2. checkpoints, to the very end;
/// 3. in a forward stage, what was computed of its segment;
/// 4. from the first to the last stage of the backward nodes whose owners lie in a segment, the segment and those nodes.
///
/// In the artifact's order of ops the backward nodes of a segment follow each other; in others the stages in between belong to
/// the segment too, so that it is not dropped and recomputed in turns. 2 to 4 retain results that nothing needs any more; the
/// paper's figures count them.
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
        let owner = roles.owner(stage);
        behind[checkpoints.partition_point(|&checkpoint| checkpoint <= owner)].push(stage);
    }
    for (&(start, end), nodes) in segments.iter().zip(&behind) {
        let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else {
            continue;
        };
        for stage in first..=last {
            retained.set_range(stage, start..stage.min(end));
            for &node in nodes.iter().take_while(|&&node| node < stage) {
                retained.set(stage, node);
            }
        }
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
