//! Which forward nodes may become checkpoints, and which of them do: Chen's two rules.

use petgraph::algo::articulation_points::articulation_points;
use petgraph::graph::UnGraph;

use super::Roles;
use remat_solve::stages::{Node, StageGraph};

/// The forward nodes among which checkpoints are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidates {
    /// All that share an edge with another forward node: the paper's linearized generalisation.
    All,
    /// Those without which the forward pass falls apart: its articulation points, as Chen's strategies want them.
    ArticulationPoints,
}

/// The order in which [`greedy`] walks the forward pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walk {
    /// The reference order.
    Reference,
    /// Reverse postorder of a depth-first search that takes edges for undirected, neighbours ascending: what the paper's artifact
    /// walks. It is no topological order unless the forward pass is a chain.
    DepthFirst,
}

impl Candidates {
    /// The candidates, ascending.
    pub(super) fn of(self, graph: &StageGraph, roles: &Roles) -> Vec<Node> {
        let neighbours = neighbours(graph, roles);
        let linked: Vec<Node> = (0..roles.loss()).filter(|&node| !neighbours[node].is_empty()).collect();
        match self {
            Self::All => linked,
            Self::ArticulationPoints => cut_nodes(&neighbours, &linked),
        }
    }
}

/// The forward nodes next to each forward node, ascending.
fn neighbours(graph: &StageGraph, roles: &Roles) -> Vec<Vec<Node>> {
    let forward = |&node: &Node| node < roles.loss();
    let both = |node: Node| graph.parents(node).iter().chain(graph.children(node));
    (0..roles.loss())
        .map(|node| both(node).copied().filter(forward).collect())
        .collect()
}

/// The articulation points of the forward pass with a source before its first node and a sink behind its last one.
fn cut_nodes(neighbours: &[Vec<Node>], linked: &[Node]) -> Vec<Node> {
    let (Some(&first), Some(&last)) = (linked.first(), linked.last()) else {
        return Vec::new();
    };
    let mut undirected = UnGraph::<(), ()>::with_capacity(neighbours.len() + 2, 0);
    let index: Vec<_> = (0..neighbours.len() + 2).map(|_| undirected.add_node(())).collect();
    for (node, others) in neighbours.iter().enumerate() {
        for &other in others.iter().filter(|&&other| other > node) {
            undirected.add_edge(index[node], index[other], ());
        }
    }
    undirected.add_edge(index[neighbours.len()], index[first], ());
    undirected.add_edge(index[last], index[neighbours.len() + 1], ());
    let cuts = articulation_points(&undirected);
    linked
        .iter()
        .copied()
        .filter(|&node| cuts.contains(&index[node]))
        .collect()
}

/// Chen's rule for `sqrt(n)` memory: each `k`-th of the candidates, `k` the root of their number, rounded down.
pub(super) fn every_kth(candidates: &[Node]) -> Vec<Node> {
    let step = candidates.len().isqrt().max(1);
    candidates.iter().copied().skip(step - 1).step_by(step).collect()
}

/// Chen's greedy rule: a candidate at which what was passed since the last checkpoint exceeds `segment_bytes` becomes one.
///
/// `walk` is the order of the forward nodes. Returns the checkpoints, ascending.
pub(super) fn greedy(graph: &StageGraph, walk: &[Node], candidates: &[Node], segment_bytes: u64) -> Vec<Node> {
    let mut passed = 0u64;
    let mut checkpoints = Vec::new();
    for &node in walk {
        passed = passed
            .saturating_add(graph.bytes(node))
            .saturating_add(graph.kept(node));
        if passed > segment_bytes && candidates.binary_search(&node).is_ok() {
            checkpoints.push(node);
            passed = 0;
        }
    }
    checkpoints.sort_unstable();
    checkpoints
}

impl Walk {
    /// The forward nodes in this order.
    pub(super) fn of(self, graph: &StageGraph, roles: &Roles) -> Vec<Node> {
        match self {
            Self::Reference => (0..roles.loss()).collect(),
            Self::DepthFirst => reverse_postorder(&neighbours(graph, roles)),
        }
    }
}

fn reverse_postorder(neighbours: &[Vec<Node>]) -> Vec<Node> {
    let mut seen = vec![false; neighbours.len()];
    let mut order = Vec::with_capacity(neighbours.len());
    for root in 0..neighbours.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.last_mut() {
            if let Some(&other) = neighbours[*node].get(*next) {
                *next += 1;
                if !std::mem::replace(&mut seen[other], true) {
                    stack.push((other, 0));
                }
            } else {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use remat_plan::Structure;

    use super::*;
    use remat_testing::net::paper;

    /// 0 -> 1 -> {2, 3} -> 4 -> 5, a loss 6 and its mirror image.
    fn diamond() -> (StageGraph, Roles) {
        let problem = paper(&[
            (1, 5, &[][..]),
            (1, 5, &[0]),
            (1, 5, &[1]),
            (1, 5, &[1]),
            (1, 5, &[2, 3]),
            (1, 5, &[4]),
            (1, 1, &[5]),
            (1, 5, &[5, 6]),
            (1, 5, &[4, 5, 7]),
            (1, 5, &[3, 4, 8]),
            (1, 5, &[2, 4, 8]),
            (1, 5, &[1, 2, 3, 9, 10]),
            (1, 5, &[0, 1, 11]),
        ]);
        let graph = StageGraph::of(&problem, &Structure::of(&problem)).unwrap();
        let roles = Roles::find(&graph).unwrap();
        (graph, roles)
    }

    #[test]
    fn branches_hold_no_articulation_points_and_the_ends_are_some() {
        let (graph, roles) = diamond();
        assert_eq!(Candidates::All.of(&graph, &roles), [0, 1, 2, 3, 4, 5]);
        assert_eq!(Candidates::ArticulationPoints.of(&graph, &roles), [0, 1, 4, 5]);
    }

    #[test]
    fn every_kth_counts_from_one() {
        assert!(every_kth(&[]).is_empty());
        assert_eq!(every_kth(&[7]), [7]);
        assert_eq!(every_kth(&[0, 1, 2, 3, 4, 5]), [1, 3, 5]);
        assert_eq!(every_kth(&[0, 1, 4, 5, 8, 9, 10, 11, 12, 13]), [4, 9, 12]);
    }

    #[test]
    fn greedy_closes_a_segment_at_the_first_candidate_above_the_limit() {
        let (graph, roles) = diamond();
        let walk = Walk::Reference.of(&graph, &roles);
        assert_eq!(greedy(&graph, &walk, &[0, 1, 2, 3, 4, 5], 9), [1, 3, 5]);
        assert_eq!(greedy(&graph, &walk, &[0, 1, 4, 5], 9), [1, 4]);
        assert!(greedy(&graph, &walk, &[0, 1, 4, 5], 30).is_empty());
    }

    #[test]
    fn the_depth_first_walk_is_no_topological_order() {
        let (graph, roles) = diamond();
        // From 1 over 2 to 4, and from there back to 3 before 5.
        assert_eq!(Walk::DepthFirst.of(&graph, &roles), [0, 1, 2, 4, 5, 3]);
    }
}
