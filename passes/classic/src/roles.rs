//! Which ops of a training step are forward, which is the loss, and to which forward op each backward op belongs.
//!
//! Solvers see a problem, so roles are read off its structure alone; names say nothing here.

use thiserror::Error;

use remat_solve::stages::{Node, StageGraph};

/// The parts of a training step, in reference order: the forward ops, the loss, the backward ops.
///
/// What stands before the loss counts as forward, also where the loss does not need it (statistics that are saved for the
/// backward pass); what stands behind it counts as backward.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles {
    loss: Node,
    /// For each node from the loss on, the forward node it belongs to; the loss belongs to itself.
    owner: Vec<Node>,
}

/// Why a problem has no roles.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RolesError {
    /// No op looks like the loss.
    #[error(
        "this is not a training step: it is not a forward pass, a loss and the mirror image of the forward pass, and there is no \
         small result without readers to which most ops before it lead and behind which others follow"
    )]
    NoLoss,
    /// What would be the backward pass does not read the forward pass from its end to its start.
    #[error(
        "this is not a training step: the {behind} ops behind the result that would be the loss (op {loss} in the order of \
         the scheduled ops) do not read what stands before it in reverse"
    )]
    NotBackwards {
        /// Position of the op that would be the loss.
        loss: Node,
        /// Number of ops behind it.
        behind: usize,
    },
}

impl Roles {
    /// Finds the roles.
    ///
    /// First the convention of the Keras extraction in the Checkmate paper is tried: `2L + 1` ops, the loss in the middle, and
    /// one backward op for each forward op `i`, which reads `i`, the readers of `i` and their backward ops, and nothing else. It
    /// is recognised in any topological order. Otherwise the loss is the first op that nobody reads, among those with the
    /// smallest result, to which more than half of the ops before it lead; each backward op belongs to the last forward op whose
    /// result it reads, and one that reads none to the first of those that the backward ops before it belong to.
    ///
    /// # Errors
    /// [`RolesError`] if no op can be the loss, or what stands behind it does not walk the forward pass backwards.
    pub fn find(graph: &StageGraph) -> Result<Self, RolesError> {
        mirrored(graph).map_or_else(|| behind_the_loss(graph), Ok)
    }

    /// The loss. The nodes before it are the forward nodes.
    #[must_use]
    pub fn loss(&self) -> Node {
        self.loss
    }

    /// The forward node that a node from the loss on belongs to; the loss belongs to itself.
    ///
    /// # Panics
    /// For a forward node.
    #[must_use]
    pub fn owner(&self, node: Node) -> Node {
        self.owner[node - self.loss]
    }
}

/// The convention of the paper's artifact, checked op by op.
fn mirrored(graph: &StageGraph) -> Option<Roles> {
    let count = graph.len();
    let loss = count / 2;
    if count < 3 || count.is_multiple_of(2) || graph.parents(loss) != [loss - 1] {
        return None;
    }
    let mut backward_of = vec![None; loss + 1];
    backward_of[loss] = Some(loss);
    let mut owner = vec![loss; count - loss];
    for node in (0..loss).rev() {
        let forward_users = graph.children(node).iter().copied().filter(|&user| user < loss);
        let mut users: Vec<Node> = forward_users.collect();
        if users.is_empty() && node == loss - 1 {
            users.push(loss);
        }
        let mut expected = vec![node];
        for &user in &users {
            expected.push(user);
            expected.push(backward_of[user]?);
        }
        expected.sort_unstable();
        expected.dedup();
        // No two forward nodes expect the same operands: each would have to be a reader of the other.
        let mut candidates = graph.children(node).iter().copied();
        let backward = candidates.find(|&user| user > loss && graph.parents(user) == expected)?;
        backward_of[node] = Some(backward);
        owner[backward - loss] = node;
    }
    Some(Roles { loss, owner })
}

/// A loss that is a result of the graph, and whatever stands behind it.
fn behind_the_loss(graph: &StageGraph) -> Result<Roles, RolesError> {
    let results = || (0..graph.len()).filter(|&node| !graph.is_read(node));
    let size = |node: Node| graph.bytes(node).saturating_add(graph.kept(node));
    let smallest = results().map(size).filter(|&bytes| bytes > 0).min();
    let loss = results()
        .filter(|&node| Some(size(node)) == smallest && node + 1 < graph.len())
        .find(|&node| 2 * ancestors(graph, node) > node && node > 0)
        .ok_or(RolesError::NoLoss)?;

    let mut owner: Vec<Node> = vec![loss];
    let mut direct = Vec::new();
    for node in loss + 1..graph.len() {
        let parents = graph.parents(node);
        let forward = parents.iter().copied().filter(|&parent| parent <= loss).max();
        direct.extend(forward);
        let inherited = parents
            .iter()
            .filter(|&&parent| parent > loss)
            .map(|&parent| owner[parent - loss]);
        owner.push(forward.or_else(|| inherited.min()).unwrap_or(loss));
    }
    let (early, late) = direct.split_at(direct.len() / 2);
    let sum = |part: &[Node]| part.iter().map(|&node| node as u128).sum::<u128>();
    // The mean of the first half is to be above that of the second.
    if sum(early) * late.len() as u128 <= sum(late) * early.len() as u128 {
        let behind = graph.len() - loss - 1;
        return Err(RolesError::NotBackwards { loss, behind });
    }
    Ok(Roles { loss, owner })
}

/// How many ops lead to one.
fn ancestors(graph: &StageGraph, node: Node) -> usize {
    let mut leads = vec![false; node + 1];
    leads[node] = true;
    let mut count = 0;
    for at in (0..=node).rev() {
        if leads[at] {
            for &parent in graph.parents(at) {
                count += usize::from(!std::mem::replace(&mut leads[parent], true));
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use remat_plan::Structure;

    use super::*;
    use remat_testing::net::paper;

    fn roles(ops: &[(u64, u64, &[usize])]) -> Result<Roles, RolesError> {
        let problem = paper(ops);
        Roles::find(&StageGraph::of(&problem, &Structure::of(&problem)).unwrap())
    }

    #[test]
    fn a_mirrored_chain_is_recognised() {
        let found = roles(&[
            (1, 1, &[]),
            (1, 1, &[0]),
            (1, 1, &[1]),
            (1, 1, &[1, 2]),
            (1, 1, &[0, 1, 3]),
        ]);
        let found = found.unwrap();
        assert_eq!(found.loss(), 2);
        assert_eq!([2, 3, 4].map(|node| found.owner(node)), [2, 1, 0]);
    }

    #[test]
    fn a_mirrored_branch_is_recognised_in_any_order() {
        // 0 -> {1, 2} -> 3, loss 4; the backward ops of 1 and 2 stand in either order.
        for (first, second) in [(1, 2), (2, 1)] {
            let (a, b): ([usize; 3], [usize; 3]) = ([first, 3, 5], [second, 3, 5]);
            let found = roles(&[
                (1, 1, &[]),
                (1, 1, &[0]),
                (1, 1, &[0]),
                (1, 1, &[1, 2]),
                (1, 1, &[3]),
                (1, 1, &[3, 4]),
                (1, 1, &a),
                (1, 1, &b),
                (1, 1, &[0, 1, 2, 6, 7]),
            ]);
            let found = found.unwrap();
            assert_eq!([5, 6, 7, 8].map(|node| found.owner(node)), [3, first, second, 0]);
        }
    }

    #[test]
    fn a_loss_that_is_a_result_is_found_and_what_follows_walks_backwards() {
        // Two layers, a loss that nobody reads, a seed of the gradients, and for each layer two gradients.
        let found = roles(&[
            (1, 64, &[]),
            (1, 64, &[0]),
            (1, 4, &[1]),
            (1, 64, &[1]),
            (1, 64, &[1, 3]),
            (1, 64, &[0, 3]),
            (1, 64, &[4]),
            (1, 64, &[0, 6]),
        ]);
        let found = found.unwrap();
        assert_eq!(found.loss(), 2);
        assert_eq!([3, 4, 5, 6, 7].map(|node| found.owner(node)), [1, 1, 0, 1, 0]);
    }

    #[test]
    fn inference_is_no_training_step() {
        assert_eq!(
            roles(&[(1, 8, &[]), (1, 8, &[0]), (1, 4, &[1])]),
            Err(RolesError::NoLoss)
        );
        // Two heads, one after the other.
        let heads = roles(&[
            (1, 8, &[]),
            (1, 8, &[0]),
            (1, 4, &[1]),
            (1, 8, &[0]),
            (1, 8, &[1, 3]),
            (1, 8, &[4]),
        ]);
        assert_eq!(heads, Err(RolesError::NotBackwards { loss: 2, behind: 3 }));
        assert_eq!(roles(&[]), Err(RolesError::NoLoss));
    }
}
