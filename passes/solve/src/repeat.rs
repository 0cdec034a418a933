//! Blocks that repeat: stretches of the reference order whose nodes cost the same and are tied to their neighbours alike, again and again.
//!
//! A training step repeats twice: forwards, and in a mirrored order backwards. Both belong to one *family*, whose *layers* have a block in
//! each.

use std::hash::{Hash, Hasher};

use remat_plan::NodeId;
use rustc_hash::FxHasher;
use typed_index_collections::{TiVec, ti_vec};

use crate::dag::Dag;

/// Rounds in which a node learns of its neighbours, and of theirs.
const ROUNDS: usize = 2;
/// Distances between nodes alike that are tried as the length of a block.
const PERIODS: usize = 24;
/// Blocks that are taken for a repetition, at least.
const FEWEST: usize = 3;
/// The smallest block.
const SMALLEST: usize = 4;

/// A stretch of the order that repeats a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repetition {
    pub(crate) start: usize,
    pub(crate) period: usize,
    pub(crate) count: usize,
}

/// Where a node stands in a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) family: usize,
    /// Of the repetitions that were found.
    pub(crate) repetition: usize,
    pub(crate) layer: i64,
    /// Within the block.
    pub(crate) place: usize,
}

/// The blocks of a repetition, numbered by layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered {
    repetition: Repetition,
    family: usize,
    /// The layer of the first block, and of the next one less that.
    first: i64,
    step: i64,
}

impl Numbered {
    fn layer(&self, block: usize) -> i64 {
        self.first + self.step * number(block)
    }
}

/// The number of a block, which is one of a few nodes.
fn number(block: usize) -> i64 {
    i64::try_from(block).unwrap_or(0)
}

/// All repetitions of a problem, in families.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    repetitions: Vec<Numbered>,
    /// Per family: the layers, first and last, that all its repetitions have.
    pub(crate) layers: Vec<(i64, i64)>,
}

impl Repeats {
    /// Finds what repeats in the reference order.
    pub(crate) fn of(dag: &Dag) -> Self {
        let found = repetitions(&colors(dag));
        let mut repeats = Self::default();
        for repetition in found {
            repeats.place(dag, repetition);
        }
        for member in &repeats.repetitions {
            let last = member.layer(member.repetition.count - 1);
            let layers = &mut repeats.layers[member.family];
            layers.0 = layers.0.max(member.first.min(last));
            layers.1 = layers.1.min(member.first.max(last));
        }
        repeats
    }

    /// Numbers the blocks of a repetition like those it reads from most, in their order or against it; else it begins a family.
    fn place(&mut self, dag: &Dag, repetition: Repetition) {
        let mut ties: Vec<(usize, i64, i64)> = Vec::new();
        for offset in 0..repetition.period * repetition.count {
            let block = number(offset / repetition.period);
            let needs = dag.needs(NodeId::new(repetition.start + offset)).iter();
            for other in needs.filter_map(|&value| self.seat(dag.producer(value))) {
                ties.extend([1, -1].map(|step| (other.family, other.layer - step * block, step)));
            }
        }
        ties.sort_unstable();
        // Every other block has one at least, all of one kind.
        let alike = ties.chunk_by(|one, other| one == other).max_by_key(|alike| alike.len());
        let best = alike.filter(|alike| 2 * alike.len() >= repetition.count);
        let (family, first, step) = best.map_or((self.layers.len(), 0, 1), |alike| alike[0]);
        if family == self.layers.len() {
            self.layers.push((i64::MIN, i64::MAX));
        }
        self.repetitions.push(Numbered {
            repetition,
            family,
            first,
            step,
        });
    }

    /// Where a node stands, if it is part of what repeats.
    pub(crate) fn seat(&self, node: NodeId) -> Option<Seat> {
        let index = node.index();
        let is_in = |numbered: &Numbered| {
            let Repetition { start, period, count } = numbered.repetition;
            (start..start + period * count).contains(&index)
        };
        let repetition = self.repetitions.iter().position(is_in)?;
        let numbered = self.repetitions[repetition];
        let offset = index - numbered.repetition.start;
        Some(Seat {
            family: numbered.family,
            repetition,
            layer: numbered.layer(offset / numbered.repetition.period),
            place: offset % numbered.repetition.period,
        })
    }

    /// The node at that seat of another layer.
    pub(crate) fn node_at(&self, seat: Seat, layer: i64) -> Option<NodeId> {
        let numbered = self.repetitions[seat.repetition];
        let block = usize::try_from((layer - numbered.first) * numbered.step).ok()?;
        let Repetition { start, period, count } = numbered.repetition;
        (block < count).then(|| NodeId::new(start + block * period + seat.place))
    }
}

/// Nodes that cost the same, and whose neighbours do, have the same color.
fn colors(dag: &Dag) -> TiVec<NodeId, u64> {
    let hash = |parts: &dyn Fn(&mut FxHasher)| {
        let mut hasher = FxHasher::default();
        parts(&mut hasher);
        hasher.finish()
    };
    let costs = |node: NodeId| {
        hash(&|hasher| {
            (dag.duration(node), dag.again(node), dag.local(node), dag.kept(node)).hash(hasher);
            (dag.max_computes(node), dag.anti_successors(node).len()).hash(hasher);
            dag.values(node).for_each(|value| dag.bytes(value).hash(hasher));
        })
    };
    let mut colors: TiVec<NodeId, u64> = dag.nodes().map(costs).collect();
    let mut around: Vec<u64> = Vec::new();
    for _ in 0..ROUNDS {
        let mut next: TiVec<NodeId, u64> = ti_vec![0; dag.len()];
        for node in dag.nodes() {
            around.clear();
            around.extend(dag.needs(node).iter().map(|&value| {
                let producer = dag.producer(value);
                colors[producer].wrapping_add(dag.rank(value) as u64)
            }));
            let inputs = around.len();
            let readers = dag.values(node).flat_map(|value| dag.users(value));
            around.extend(readers.map(|&user| colors[user]));
            around[..inputs].sort_unstable();
            around[inputs..].sort_unstable();
            next[node] = hash(&|hasher| (colors[node], inputs, &around).hash(hasher));
        }
        colors = next;
    }
    colors
}

/// The repetitions in a sequence that cover most, none within another one, in their order.
fn repetitions(colors: &TiVec<NodeId, u64>) -> Vec<Repetition> {
    let colors = &colors.raw;
    let mut found: Vec<Repetition> = Vec::new();
    for period in periods(colors) {
        let mut from = 0;
        for index in 0..=colors.len() - period {
            let is_alike = index < colors.len() - period && colors[index] == colors[index + period];
            if is_alike {
                continue;
            }
            let count = (index - from) / period + 1;
            if count >= FEWEST {
                found.push(Repetition {
                    start: from,
                    period,
                    count,
                });
            }
            from = index + 1;
        }
    }
    found.sort_by_key(|found| {
        (
            std::cmp::Reverse((found.count - 1) * found.period),
            found.period,
            found.start,
        )
    });
    let mut apart: Vec<Repetition> = Vec::new();
    for new in found {
        let end = |repetition: &Repetition| repetition.start + repetition.count * repetition.period;
        if apart
            .iter()
            .all(|other| end(other) <= new.start || end(&new) <= other.start)
        {
            apart.push(new);
        }
    }
    apart.sort_by_key(|repetition| repetition.start);
    apart
}

/// The distances from one node to the next one alike that most nodes have.
fn periods(colors: &[u64]) -> Vec<usize> {
    let mut nodes: Vec<(u64, usize)> = colors.iter().copied().zip(0..).collect();
    nodes.sort_unstable();
    let alike = nodes.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let mut distances: Vec<usize> = alike.map(|pair| pair[1].1 - pair[0].1).collect();
    distances.sort_unstable();
    let mut counts: Vec<(usize, usize)> = distances
        .chunk_by(|a, b| a == b)
        .map(|same| (same.len(), same[0]))
        .filter(|&(_, distance)| distance >= SMALLEST)
        .collect();
    counts.sort_unstable_by_key(|&(count, distance)| (std::cmp::Reverse(count), distance));
    counts.truncate(PERIODS);
    counts.into_iter().map(|(_, distance)| distance).collect()
}

#[cfg(test)]
mod tests {
    use remat_plan::Structure;
    use remat_testing::networks::Blocks;

    use super::*;

    #[test]
    fn layers_forward_and_backward_are_one_family() {
        let problem = Blocks::transformer(12).training();
        let dag = Dag::of(&problem, &Structure::of(&problem));
        let repeats = Repeats::of(&dag);
        assert_eq!(repeats.layers.len(), 1, "{repeats:?}");
        let (first, last) = repeats.layers[0];
        assert!(last - first >= 8, "{repeats:?}");
        assert_eq!(repeats.repetitions.len(), 2);
        assert_eq!(repeats.repetitions[0].step, -repeats.repetitions[1].step);
        for node in dag.nodes() {
            let Some(seat) = repeats.seat(node) else {
                continue;
            };
            assert_eq!(repeats.node_at(seat, seat.layer), Some(node));
            let made = dag
                .needs(node)
                .iter()
                .filter_map(|&value| repeats.seat(dag.producer(value)));
            assert!(made.into_iter().all(|made| (made.layer - seat.layer).abs() <= 1));
        }
    }

    #[test]
    fn stages_of_other_sizes_are_families_of_their_own() {
        let problem = Blocks::residual(8).training();
        let repeats = Repeats::of(&Dag::of(&problem, &Structure::of(&problem)));
        assert_eq!(repeats.layers.len(), 3, "{repeats:?}");
        assert_eq!(repeats.repetitions.len(), 6);
    }

    #[test]
    fn a_sequence_has_the_repetitions_that_cover_most() {
        let blocks = [9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 8, 8, 8, 8, 8];
        let whole = Repetition {
            start: 1,
            period: 4,
            count: 3,
        };
        assert_eq!(repetitions(&TiVec::from(blocks.to_vec())), [whole]);
        assert!(repetitions(&TiVec::from((0..40).collect::<Vec<u64>>())).is_empty());
    }
}
