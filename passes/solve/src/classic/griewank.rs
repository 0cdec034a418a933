//! Griewank's logarithmic strategy for chains, on the stages of a training step.

use super::binomial::{Binomial, Stored};
use super::{Refusal, Roles};
use crate::stages::{Node, StageGraph, StageMatrix};

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
        let steps = roles.loss();
        let broken = (0..steps).find(|&node| node.checked_sub(1).as_slice() != graph.parents(node));
        if let Some(node) = broken {
            return Err(Refusal::NotAChain { op: graph.op(node) });
        }
        let mut stages: Vec<Option<(Node, Node)>> = vec![None; steps + 1];
        for stage in roles.loss() + 1..graph.len() {
            let entry = &mut stages[roles.owner(stage)];
            let first = entry.map_or(stage, |(first, _)| first);
            *entry = Some((first, stage));
        }
        Ok(Self {
            graph,
            roles,
            stages,
            table: Binomial::new(steps, steps.min(MOST_CHECKPOINTS)),
        })
    }

    /// The matrix `S` with that many checkpoints at most at any time.
    ///
    /// The result of forward node `i` is what the chain's step `i + 1` yields; the state before the first step is the model's input,
    /// which is there anyway. Retained are the result right before, gradients until they are read, the results that the backward ops
    /// of a node read from one of them to the next, and the checkpoints: from the stage in which they are computed to the end of
    /// their own backward ops.
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
        for stored in self.table.stored(loss, checkpoints) {
            if let Some((from, to)) = self.lifetime(stored) {
                hold(&mut retained, stored.after - 1, from, to);
            }
        }
        retained
    }

    /// The stage in which a state is computed, and the last one that it is held into.
    fn lifetime(&self, stored: Stored) -> Option<(Node, Node)> {
        let own = stored.after - 1;
        // The step at the end of the part finds its result at hand, the one before is the first to go back to the last state.
        let walked = |from: Node, to: Node| self.stages[from..to].iter().flatten().copied();
        let last = walked(own, stored.end).map(|(_, last)| last).max()?;
        let first = if stored.first_way {
            own
        } else {
            walked(own, stored.end - 1).map(|(first, _)| first).min()?
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
