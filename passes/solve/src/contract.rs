//! A problem with fewer layers, and its sequences with all of them again.
//!
//! Of each family of blocks ([`Repeats`]) only some layers at both ends stay; what read from a layer that is gone reads from the one that
//! took its place. A sequence of what is left says of each layer what is made again before which of its nodes. Layers that are gone do
//! what a layer beside the gap does, with what is as many layers away.

use std::ops::Range;

use remat_plan::NodeId;
use typed_index_collections::{TiVec, ti_vec};

use crate::dag::{Dag, MAX_RUNS_PER_NODE};
use crate::repeat::{Repeats, Seat};

/// Which layers stay.
pub(crate) struct Contraction<'a> {
    dag: &'a Dag,
    repeats: &'a Repeats,
    /// Per family: the layers that are gone.
    gone: Vec<Range<i64>>,
    /// The nodes that stay.
    kept: Vec<NodeId>,
    /// What is left, in the reference order.
    pub(crate) small: Dag,
}

/// How the layers that are gone are filled in from those beside the gap.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Filling {
    /// The share of them that does as the layers before the gap; the others do as those behind it.
    pub(crate) before: f64,
    /// So many layers beside the gap are taken in turns.
    pub(crate) period: i64,
}

impl Filling {
    pub(crate) const fn new(before: f64, period: i64) -> Self {
        Self { before, period }
    }
}

impl<'a> Contraction<'a> {
    /// Leaves about one layer in `ratio`, but `least` layers of each family. `None` where more than half of the nodes would stay.
    pub(crate) fn of(dag: &'a Dag, repeats: &'a Repeats, ratio: f64, least: i64) -> Option<Self> {
        let gap = |&(first, last): &(i64, i64)| {
            let layers = last - first + 1;
            let stay = ((layers as f64 / ratio).round() as i64).max(least);
            let begin = first + stay / 2;
            begin..begin.max(begin + layers - stay)
        };
        let gone: Vec<Range<i64>> = repeats.layers.iter().map(gap).collect();
        let stays = |node: &NodeId| {
            repeats
                .seat(*node)
                .is_none_or(|seat| !gone[seat.family].contains(&seat.layer))
        };
        let kept: Vec<NodeId> = dag.nodes().filter(stays).collect();
        if 2 * kept.len() > dag.len() {
            return None;
        }
        let stand_in = |reader: NodeId, made: NodeId| {
            let (of_reader, of_made) = (repeats.seat(reader)?, repeats.seat(made)?);
            if of_reader.family != of_made.family {
                return None;
            }
            let gap = &gone[of_made.family];
            let length = gap.end - gap.start;
            let shift = if of_reader.layer < gap.start { length } else { -length };
            let node = repeats.node_at(of_made, of_made.layer + shift)?;
            (node < reader).then_some(node)
        };
        let small = Dag::of_instance(dag.part(&kept, stand_in).in_fixed_order());
        Some(Self {
            dag,
            repeats,
            gone,
            kept,
            small,
        })
    }

    /// A sequence of what is left as one of all nodes, in the reference order.
    pub(crate) fn expand(&self, sequence: &[NodeId], filling: Filling) -> Vec<NodeId> {
        let before = self.recomputes(sequence);
        let mut runs: TiVec<NodeId, usize> = ti_vec![0; self.dag.len()];
        let mut whole = Vec::with_capacity(self.dag.len() + sequence.len());
        for node in self.dag.nodes() {
            let model = self.model(node, filling);
            for again in model.iter().flat_map(|&model| &before[model]) {
                let Some(again) = model.and_then(|model| self.alike(*again, model, node)) else {
                    continue;
                };
                let may_run = (1..self.dag.max_computes(again)).contains(&runs[again])
                    && self.dag.may_run_after(again, |other| runs[other] > 0);
                if may_run && whole.len() < MAX_RUNS_PER_NODE * self.dag.len() {
                    runs[again] += 1;
                    whole.push(again);
                }
            }
            runs[node] += 1;
            whole.push(node);
        }
        whole
    }

    /// For each node that stays those that run again right before its first run in a sequence of what is left.
    fn recomputes(&self, sequence: &[NodeId]) -> TiVec<NodeId, Vec<NodeId>> {
        let mut ran: TiVec<NodeId, bool> = ti_vec![false; self.small.len()];
        let mut before: TiVec<NodeId, Vec<NodeId>> = ti_vec![Vec::new(); self.dag.len()];
        let mut waiting = Vec::new();
        for &small in sequence {
            let node = self.kept[small.index()];
            if std::mem::replace(&mut ran[small], true) {
                waiting.push(node);
            } else {
                std::mem::swap(&mut before[node], &mut waiting);
            }
        }
        before
    }

    /// The node that stays of which one is a copy; that one itself where it stays.
    fn model(&self, node: NodeId, filling: Filling) -> Option<NodeId> {
        let Some(seat) = self.repeats.seat(node) else {
            return Some(node);
        };
        let gap = &self.gone[seat.family];
        if !gap.contains(&seat.layer) {
            return Some(node);
        }
        let border = gap.start + (filling.before * (gap.end - gap.start) as f64).round() as i64;
        let layer = if seat.layer < border {
            gap.start - 1 - (gap.start - 1 - seat.layer).rem_euclid(filling.period)
        } else {
            gap.end + (seat.layer - gap.end).rem_euclid(filling.period)
        };
        self.repeats.node_at(seat, layer)
    }

    /// What is to `node` what `other` is to `model`.
    fn alike(&self, other: NodeId, model: NodeId, node: NodeId) -> Option<NodeId> {
        let (Some(of_model), Some(of_node), Some(of_other)) = (
            self.repeats.seat(model),
            self.repeats.seat(node),
            self.repeats.seat(other),
        ) else {
            return Some(other);
        };
        if of_model.family != of_other.family {
            return Some(other);
        }
        let away = self.rank(of_other) - self.rank(of_model);
        self.repeats.node_at(of_other, of_node.layer + away)
    }

    /// The number of a layer among those that stay.
    fn rank(&self, seat: Seat) -> i64 {
        let gap = &self.gone[seat.family];
        if seat.layer < gap.start {
            seat.layer
        } else {
            seat.layer - (gap.end - gap.start)
        }
    }
}

#[cfg(test)]
mod tests {
    use remat_plan::Structure;
    use remat_testing::networks::Blocks;

    use super::*;
    use crate::sequence::Sequence;

    const HALVES: Filling = Filling::new(0.5, 2);

    #[test]
    fn fewer_layers_cost_what_fewer_layers_cost() {
        let dag = |layers| {
            let problem = Blocks::transformer(layers).training();
            Dag::of(&problem, &Structure::of(&problem))
        };
        let (many, few) = (dag(20), dag(6));
        let repeats = Repeats::of(&many);
        // One layer at each end looks different.
        let stay = repeats.layers[0].1 - repeats.layers[0].0 + 1 - 14;
        let contraction = Contraction::of(&many, &repeats, 100.0, stay).expect("layers repeat");
        let small = &contraction.small;
        assert_eq!(small.len(), few.len());
        assert_eq!(
            Sequence::new(small, i32::MAX).memory(),
            Sequence::new(&few, i32::MAX).memory(),
            "at every place"
        );
        let order: Vec<NodeId> = small.nodes().collect();
        assert!(contraction.expand(&order, HALVES).into_iter().eq(many.nodes()));
    }

    #[test]
    fn what_runs_again_in_one_layer_runs_again_in_all() {
        let problem = Blocks::transformer(20).training();
        let dag = Dag::of(&problem, &Structure::of(&problem));
        let repeats = Repeats::of(&dag);
        let contraction = Contraction::of(&dag, &repeats, 100.0, 4).expect("layers repeat");
        let (small, layers) = (&contraction.small, 20);
        // A value of every layer again before its last reader.
        let mut state = Sequence::new(small, i32::MAX);
        let again: Vec<NodeId> = small.nodes().filter(|&node| small.duration(node) == 160).collect();
        for &node in &again {
            let value = small.value(node, 0);
            let last = small.users(value).last().expect("it is read");
            let before = state.runs(*last)[0];
            state.insert(node, before);
        }
        let whole = contraction.expand(&state.nodes(), HALVES);
        let expected = (whole.len() - dag.len()) as f64 / layers as f64;
        let planned =
            again.len() as f64 / (layers as f64 - (dag.len() - small.len()) as f64 * layers as f64 / dag.len() as f64);
        assert!(
            (expected - planned).abs() < 1.0,
            "{expected} in a layer instead of {planned}"
        );
    }
}
