//! A graph with clones of fused chains, on which fused chains are tiled.

use std::cell::OnceCell;

use remat_ir::{Graph, Op, OpId, Storage, StorageClass, StorageId};
use remat_operators::{NORMALIZE, STREAMED_DOMAIN};
use rustc_hash::{FxHashMap, FxHashSet};

use super::repeats::Repeats;
use crate::FissionError;
use crate::apply::prepare;
use crate::course::Span;
use crate::moved::move_one;
use crate::repeat::repeat_once;
use crate::streamed::is_part;
use remat_plan::{Again, FusedChain, Moved, Tiling};

/// The graph that all fused chains of a state refer to.
pub(super) struct Basis {
    /// What is done to the graph before; it has no fused chains.
    pub(super) changes: Tiling,
    pub(super) graph: Graph,
    pub(super) lives: Vec<Life>,
    /// By op: bytes of the results of ops that are alive after it.
    pub(super) alive: Vec<u64>,
    repeats: OnceCell<Repeats>,
}

/// What may be done to a graph that has no fused chains yet. Ops only move in a graph without clones.
pub(super) enum Change {
    Moved(Moved),
    Again(Again),
}

impl Basis {
    pub(super) fn new(graph: &Graph, changes: Tiling) -> Result<Self, FissionError> {
        Ok(Self::of(prepare(graph, &changes)?, changes))
    }

    /// The basis after one more change.
    pub(super) fn after(&self, change: &Change) -> Result<Self, FissionError> {
        let graph = match change {
            Change::Moved(moved) => move_one(&self.graph, moved),
            Change::Again(again) => repeat_once(&self.graph, again),
        };
        Ok(Self::of(graph?, self.changes_after(change)))
    }

    /// All changes that lead to the graph after one more.
    pub(super) fn changes_after(&self, change: &Change) -> Tiling {
        let mut changes = self.changes.clone();
        match change {
            Change::Moved(moved) => changes.moved.push(moved.clone()),
            Change::Again(again) => changes.again.push(again.clone()),
        }
        changes
    }

    fn of(graph: Graph, changes: Tiling) -> Self {
        let lives = lives(&graph);
        let alive = alive(graph.ops.len(), &lives);
        Self {
            changes,
            graph,
            lives,
            alive,
            repeats: OnceCell::new(),
        }
    }

    /// Whether a normalization has this name, and no softmax or search for the best.
    fn is_norm(&self, name: &str) -> bool {
        let second = self.graph.ops.iter().find(|op| op.name == name);
        second.is_some_and(|op| op.domain == STREAMED_DOMAIN && op.op_type == NORMALIZE)
    }

    /// The tiling of these fused chains: what may run in two passes and has no op in one runs as it is, but for normalizations where all run in `two_passes`.
    pub(super) fn tiling(&self, spans: &[Span], two_passes: bool) -> Tiling {
        let name = |op: OpId| self.graph.ops[op].name.clone();
        let fused_chain = |span: &Span| FusedChain {
            first: name(span.first),
            last: name(span.last),
            tiles: span.tiles,
            axis: span.axis,
            mode: span.mode,
            within: span.within,
        };
        let in_chains = || {
            let ops = spans.iter().flat_map(|span| span.first.index()..=span.last.index());
            ops.map(|op| &self.graph.ops[OpId::new(op)])
        };
        let Tiling { moved, again, .. } = &self.changes;
        let moved = moved.iter().flat_map(|moved| [&moved.op, &moved.before]);
        let again = again
            .iter()
            .flat_map(|again| [&again.first, &again.last, &again.before]);
        let named: FxHashSet<&String> = moved.chain(again).collect();
        let is_named = |op: &&Op| named.contains(&op.name);
        let is_used = |norm: &&String| {
            (two_passes && self.is_norm(norm))
                || in_chains()
                    .chain(self.graph.ops.iter().filter(is_named))
                    .any(|op| is_part(op, norm))
        };
        Tiling {
            streamed: self.changes.streamed.iter().filter(is_used).cloned().collect(),
            fused_chains: spans.iter().map(fused_chain).collect(),
            ..self.changes.clone()
        }
    }

    /// What the highest level is at least if the ops from `first` to `last` run in `tiles` tiles beside `spans`: what is alive all the time, and the
    /// share of a tile in the rest. Operands that are not in pieces are alive until the last tile. `levels` are those of ops now.
    pub(super) fn least_level(&self, (first, last): (OpId, OpId), tiles: u32, levels: &[u64], spans: &[Span]) -> u64 {
        let is_in_pieces = |op: usize| {
            let made = |span: &Span| (span.first.index()..=span.last.index()).contains(&op) && span.last < first;
            spans.iter().any(made)
        };
        let (first, last) = (first.index(), last.index());
        let mut through = 0;
        for life in &self.lives {
            let is_operand = life.from < first && life.to >= first && !is_in_pieces(life.from);
            let is_beside = life.from <= last && life.to > last;
            if is_operand || is_beside {
                through = u64::saturating_add(through, life.bytes);
            }
        }
        let within = levels[first..=last].iter().copied().max().unwrap_or(0);
        through.saturating_add(within.saturating_sub(through) / u64::from(tiles.max(1)))
    }

    /// The same tiles of all chains that are equal to that of `span`, which is one of them.
    pub(super) fn equal_to(&self, span: Span) -> Vec<Span> {
        let repeats = self.repeats.get_or_init(|| Repeats::of(&self.graph));
        repeats.equal_to(&self.graph, span)
    }

    /// The last op from `first` to `last` before which least is alive.
    pub(super) fn narrowest(&self, first: OpId, last: OpId) -> OpId {
        let alive = |op: &usize| op.checked_sub(1).map_or(0, |before| self.alive[before]);
        let places = first.index()..=last.index();
        places.rev().min_by_key(alive).map_or(first, OpId::new)
    }

    /// Where little is alive, beside op `at`: towards the start the ops before which little is alive, towards the end those after which.
    /// Going away from `at`, every op at which less is alive than at all before, and the end of the plateau that begins there.
    pub(super) fn narrow(&self, at: OpId, towards_start: bool, reach: usize, most: usize) -> Vec<OpId> {
        let at = at.index();
        let places: Vec<usize> = if towards_start {
            (at.saturating_sub(reach)..=at).rev().collect()
        } else {
            (at..self.alive.len().min(at + reach + 1)).collect()
        };
        let level = |place: usize| match (towards_start, place) {
            (true, 0) => 0,
            (true, place) => self.alive[place - 1],
            (false, place) => self.alive[place],
        };
        let mut minima: Vec<usize> = Vec::new();
        let mut least = u64::MAX;
        for (index, &place) in places.iter().enumerate() {
            if level(place) < least - least / 50 {
                least = level(place);
                minima.push(index);
            }
        }
        let plateau_end = |&index: &usize| {
            let wide = |place: usize| level(place).abs_diff(level(places[index])) <= level(places[index]) * 3 / 100;
            let run = places[index..].iter().take_while(|&&place| wide(place)).count();
            places[index + run.saturating_sub(1)]
        };
        let few = minima.len().saturating_sub(most);
        let mut chosen: Vec<usize> = minima[few..].iter().map(|&index| places[index]).collect();
        chosen.extend(minima.iter().take(2).map(|&index| places[index]));
        chosen.extend(minima[few..].iter().map(plateau_end));
        chosen.sort_unstable();
        chosen.dedup();
        chosen.into_iter().map(OpId::new).collect()
    }
}

/// A storage that an op makes: from which op to which one it is alive. Outputs are alive to the end, one op after the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) storage: StorageId,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bytes: u64,
}

/// The lives of results of ops that somebody reads.
fn lives(graph: &Graph) -> Vec<Life> {
    let mut last: FxHashMap<StorageId, usize> = FxHashMap::default();
    for (id, op) in graph.ops.iter_enumerated() {
        for tensor in op.reads() {
            last.insert(graph.tensors[tensor].storage, id.index());
        }
    }
    for &output in &graph.outputs {
        last.insert(graph.tensors[output].storage, graph.ops.len());
    }
    let life = |(id, storage): (StorageId, &Storage)| {
        let is_made = storage.class == StorageClass::Intermediate;
        Some(Life {
            storage: id,
            from: graph.tensors[storage.root].producer?.index(),
            to: *last.get(&id).filter(|_| is_made)?,
            bytes: storage.bytes?,
        })
    };
    graph.storages.iter_enumerated().filter_map(life).collect()
}

/// By op: bytes that are alive after it.
fn alive(ops: usize, lives: &[Life]) -> Vec<u64> {
    let mut change: Vec<i128> = vec![0; ops + 1];
    for life in lives {
        change[life.from] += i128::from(life.bytes);
        change[life.to] -= i128::from(life.bytes);
    }
    let mut now = 0;
    let level = |change: &i128| {
        now += change;
        u64::try_from(now).unwrap_or(0)
    };
    change[..ops].iter().map(level).collect()
}
