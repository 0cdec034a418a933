//! Which convolutions of a tiled model stay in the usual layout, where outputs may round otherwise.
//!
//! In blocks of channels a convolution is faster. But what it reads and makes is there twice while it is copied from and to blocks, and channels are
//! filled up to whole blocks. So those convolutions stay as they are beside which too much is in memory.

use std::collections::BTreeSet;

use remat::plan::Step;
use remat::{Model, Solution};
use remat_ir::{Graph, Op, TensorId};
use remat_onnx::proto::{GraphProto, ValueInfoProto};
use remat_onnx::value_info;
use remat_onnxruntime_lower::{Layout, LayoutMapping};
use remat_operators::{BLOCKED_DOMAIN, operator};
use rustc_hash::FxHashSet;

use crate::error::DeployError;

/// Convolutions that stay in the usual layout, by their results in the model without tiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PlainConvolutions(BTreeSet<String>);

impl PlainConvolutions {
    /// Those that a tiling names.
    pub(crate) fn of(model: &Model) -> Self {
        let named = model.tiling().map(|tiling| tiling.plain.iter().cloned());
        Self(named.into_iter().flatten().collect())
    }

    /// As a tiling names them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }

    /// Adds those beside which more than `most` bytes are in memory when `laid_out`, which the runtime made of `nodes`, runs in its own order; whether
    /// there are some.
    ///
    /// # Errors
    /// Those of [`Solution::baseline`].
    pub(crate) fn add_those_above(
        &mut self,
        most: u64,
        nodes: &Graph,
        laid_out: &Model,
        mapping: &LayoutMapping,
    ) -> Result<bool, DeployError> {
        let Some(ops) = laid_out.graph() else {
            return Ok(false);
        };
        let baseline = Solution::baseline(laid_out)?;
        let steps = baseline.plan.steps.iter().zip(&baseline.replay.trace);
        let above: FxHashSet<&str> = steps
            .filter(|(_, memory)| memory.during > most)
            .filter_map(|(&step, _)| match step {
                Step::Compute(op) => baseline.problem.ops[op].defines.first(),
                _ => None,
            })
            .map(|&made| baseline.problem.tensors[made].name.as_str())
            .collect();
        let is_above = |op: &Op| results(ops, op).any(|result| above.contains(result));
        let read: FxHashSet<TensorId> = ops.ops.iter().filter(|op| is_above(op)).flat_map(Op::reads).collect();
        // Such an op is the convolution, makes what that reads, or reads what it makes.
        let is_beside = |op: &Op| {
            let mut makers = op.reads().filter_map(|tensor| ops.tensors[tensor].producer);
            is_above(op)
                || makers.any(|maker| is_above(&ops.ops[maker]))
                || op.results().any(|made| read.contains(&made))
        };
        let beside = ops.ops.iter().filter(|op| op.domain == BLOCKED_DOMAIN && is_beside(op));
        let stand_for = beside.filter_map(|op| mapping.stands_for.get(results(ops, op).next()?));
        let chosen: FxHashSet<&str> = stand_for.flatten().map(String::as_str).collect();
        let before = self.0.len();
        let convolutions = convolutions(nodes).filter(|(result, _)| chosen.contains(result));
        self.0.extend(convolutions.map(|(_, op)| untiled(nodes, op).to_owned()));
        Ok(self.0.len() > before)
    }

    /// The first results of such convolutions in the tiled model. Those that read the same weights stay as they are, too.
    pub(crate) fn results(&self, nodes: &Graph) -> FxHashSet<String> {
        let weights = self.weights(nodes);
        let is_plain = |op: &Op| {
            op.inputs
                .get(1)
                .copied()
                .flatten()
                .is_some_and(|tensor| weights.contains(&tensor))
        };
        let plain = convolutions(nodes).filter(|(_, op)| is_plain(op));
        plain.map(|(result, _)| result.to_owned()).collect()
    }

    /// Lets the weights of such convolutions be inputs of `graph`, so that the runtime takes them for numbers that may change; their names.
    pub(crate) fn open_weights(&self, nodes: &Graph, graph: &mut GraphProto) -> FxHashSet<String> {
        let mut weights: Vec<TensorId> = self.weights(nodes).into_iter().collect();
        weights.sort_unstable();
        let known: FxHashSet<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
        let tensors = weights.into_iter().map(|tensor| &nodes.tensors[tensor]);
        let opened: Vec<ValueInfoProto> = tensors
            .filter(|tensor| !known.contains(tensor.name.as_str()))
            .filter_map(|tensor| value_info(&tensor.name, &tensor.ty))
            .collect();
        let names = opened.iter().map(|input| input.name.clone()).collect();
        graph.input.extend(opened);
        names
    }

    fn weights(&self, nodes: &Graph) -> FxHashSet<TensorId> {
        let named = convolutions(nodes).filter(|(_, op)| self.0.contains(untiled(nodes, op)));
        named
            .filter_map(|(_, op)| op.inputs.get(1).copied().flatten())
            .collect()
    }
}

/// A layout in which all convolutions of a graph stay as they are.
pub(crate) fn without_blocks(nodes: &Graph) -> Layout {
    Layout {
        plain: convolutions(nodes).map(|(result, _)| result.to_owned()).collect(),
        ..Layout::default()
    }
}

/// The names of what an op makes.
fn results<'g>(graph: &'g Graph, op: &'g Op) -> impl Iterator<Item = &'g str> {
    op.results().map(|result| graph.tensors[result].name.as_str())
}

/// Convolutions with the names of their results.
fn convolutions(nodes: &Graph) -> impl Iterator<Item = (&str, &Op)> {
    let convolutions = nodes
        .ops
        .iter()
        .filter(|op| operator(&op.domain, &op.op_type).blocked.is_convolution());
    convolutions.filter_map(|op| Some((results(nodes, op).next()?, op)))
}

/// The name, without tiles, of what an op makes a part of.
fn untiled<'g>(nodes: &'g Graph, op: &'g Op) -> &'g str {
    match op.parts.first() {
        Some(Some(part)) => &part.of,
        _ => results(nodes, op).next().unwrap_or_default(),
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
