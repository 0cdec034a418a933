//! Griewank's logarithmic strategy for chains, on the stages of a training step.

use super::binomial::{Binomial, Stored};
use super::{Refusal, Roles};
use remat_solve::stages::{Node, StageGraph, StageMatrix};

/// The largest number of checkpoints that are tried.
pub(super) const MOST_CHECKPOINTS: usize = 128;

/// A forward pass that is a chain, and the stages of its backward pass.
pub(super) struct Chain<'a> {
    graph: &'a StageGraph,
    roles: &'a Roles,
    /// For each forward node the first and the last stage of the backward nodes that belong to it.
    stages: Vec<Option<(Node, Node)>>,
    table: Binomial,
}

impl<'a> Chain<'a> {
    /// Reads a training step.
    ///
    /// # Errors
    /// [`Refusal::NotAChain`] if a forward op reads anything but the one before it, or not that.
    pub(super) fn of(graph: &'a StageGraph, roles: &'a Roles) -> Result<Self, Refusal> {
        let length = roles.loss();
        let broken = (0..length).find(|&node| node.checked_sub(1).as_slice() != graph.parents(node));
        if let Some(node) = broken {
            return Err(Refusal::NotAChain { op: graph.op(node) });
        }
        let mut stages: Vec<Option<(Node, Node)>> = vec![None; length + 1];
        for stage in roles.loss() + 1..graph.len() {
            let entry = &mut stages[roles.owner(stage)];
            let first = entry.map_or(stage, |(first, _)| first);
            *entry = Some((first, stage));
        }
        Ok(Self {
            graph,
            roles,
            stages,
            table: Binomial::new(length + 1, length.min(MOST_CHECKPOINTS)),
        })
    }

    /// The matrix `S` with that many checkpoints at most at any time.
    ///
    /// State 0 is the model's input, which is there anyway; state `i + 1` is the result of forward node `i`. Retained are the
    /// result right before, gradients until they are read, the results that the backward ops of a node read from one of them to
    /// the next, and the checkpoints: from the stage in which they are computed to the end of their own backward ops.
    pub(super) fn retained(&self, checkpoints: usize) -> StageMatrix {
        let (count, loss) = (self.graph.len(), self.roles.loss());
        let mut retained = super::fixed_set::last_only(self.graph);
        for node in loss..count {
            for &parent in self.graph.parents(node).iter().filter(|&&parent| parent >= loss) {
                hold(&mut retained, parent, parent, node);
            }
        }
        for (node, stages) in self.stages.iter().enumerate() {
            let Some((first, last)) = *stages else { continue };
            hold(&mut retained, node, first, last);
            // It was needed just before, or is the end of the chain.
            let after = node + 1;
            if after < loss {
                hold(&mut retained, after, first - 1, last);
            } else if node < loss {
                hold(&mut retained, node, loss, last);
            }
        }
        for stored in self.table.stored(loss + 1, checkpoints) {
            if let Some((from, to)) = self.lifetime(stored) {
                hold(&mut retained, stored.state - 1, from, to);
            }
        }
        retained
    }

    /// The stage in which a state is computed, and the last one that it is held into.
    fn lifetime(&self, stored: Stored) -> Option<(Node, Node)> {
        let own = stored.state - 1;
        let walked = || self.stages[own..stored.end - 1].iter().flatten();
        let last = walked().map(|&(_, last)| last).max()?;
        // The first of them to be walked is the first to go back to the state stored before.
        let first = if stored.first_way {
            own
        } else {
            walked().map(|&(first, _)| first).min()?
        };
        Some((first, last))
    }
}

/// Retains a node from the stage in which it is computed into a later one.
fn hold(retained: &mut StageMatrix, node: Node, computed: Node, last: Node) {
    for stage in computed.max(node) + 1..=last {
        retained.set(stage, node);
    }
}
