//! Sets of fused chains that do not overlap, as paths.
//!
//! The nodes are the places before, between and after the ops of the reference order. An edge is an op that runs whole, or a fused chain in tiles
//! from a place where little is alive to another one; its level and its time are estimated in a [`Window`], by themselves. A path from the
//! first place to the last one is a tiling: its peak is the largest level of an edge, its time the sum over them. For every bound on the peak
//! the shortest path is found, as msf-CNN (Huang and Baccelli, NeurIPS 2025, section 4) finds settings of fused blocks. For chains, where
//! fused chains are independent of each other, that is exact; elsewhere it is where the rounds start from.
//!
//! Edges are estimated when they are needed: those over an op that holds the peak of the best path so far.

use remat_ir::{OpId, StorageClass};
use rustc_hash::FxHashSet;

use super::basis::Basis;
use super::costs::Costs;
use super::options::SearchOptions;
use super::window::{Taken, Window};
use crate::course::Span;
use remat_plan::{Axis, Mode, Within};

/// The most ops of a fused chain on each side of the one that it is tried for.
const REACH: usize = 60;

/// So many of the places to begin or to end at are the nearest ones; more distant ones have less alive than all before.
const NEAREST: usize = 4;

/// What twice as many tiles must save, as a divisor of the level, for still more of them to be tried.
const LEAST_GAIN: u64 = 50;

/// Ops in tiles.
#[derive(Clone, Copy)]
struct Edge {
    span: Span,
    level: u64,
    /// The level where the operands are in pieces, which die one after the other: about.
    level_after_tiles: u64,
    /// The op that takes it.
    at: OpId,
    /// Nanoseconds beyond those of the ops whole.
    time: i128,
}

impl Edge {
    fn level(&self, after_tiles: bool) -> u64 {
        if after_tiles {
            self.level_after_tiles
        } else {
            self.level
        }
    }
}

/// A tiling without clones, and the largest level of its edges.
pub(super) struct Path {
    pub(super) spans: Vec<Span>,
    pub(super) level: u64,
    /// The op that takes it.
    at: OpId,
}

/// The edges that are known so far.
pub(super) struct Paths<'a> {
    basis: &'a Basis,
    options: &'a SearchOptions<'a>,
    axes: &'a [Axis],
    /// By op: bytes while it runs whole.
    levels: &'a [u64],
    /// By op: bytes while its operands are joined, if they are in pieces.
    joined: Vec<u64>,
    /// Before which ops fused chains may begin, and behind which they may end.
    places: Vec<usize>,
    /// By op: the edges that begin with it.
    edges: Vec<Vec<Edge>>,
    /// Fused chains whose edges are known.
    known: FxHashSet<(usize, usize)>,
    /// Ops of which every edge over them is known.
    expanded: FxHashSet<OpId>,
    /// How many fused chains were estimated.
    pub(super) estimates: u64,
}

/// The shortest way to a place.
#[derive(Clone, Copy)]
struct ShortestPath {
    time: i128,
    /// The edge that it ends with; `None`: an op that runs whole.
    edge: Option<Edge>,
    /// Whether the way to where that begins ends with tiles.
    after_tiles: bool,
}

impl<'a> Paths<'a> {
    /// `levels` are those of the ops of `basis`, whole.
    pub(super) fn new(basis: &'a Basis, levels: &'a [u64], axes: &'a [Axis], options: &'a SearchOptions<'a>) -> Self {
        Self {
            basis,
            options,
            axes,
            levels,
            joined: joined(basis),
            places: places(&basis.alive),
            edges: vec![Vec::new(); levels.len()],
            known: FxHashSet::default(),
            expanded: FxHashSet::default(),
            estimates: 0,
        }
    }

    /// The shortest path whose edges take at most `most` bytes; `None` if there is none, or `is_over` says so for the number of estimates.
    pub(super) fn shortest(&mut self, most: u64, costs: &mut Costs<'_>, is_over: impl Fn(u64) -> bool) -> Option<Path> {
        loop {
            let path = self.path(most)?;
            if !self.expanded.insert(path.at) {
                return Some(path);
            }
            for (first, last) in self.over(path.at.index()) {
                if is_over(self.estimates) {
                    return None;
                }
                self.estimate(first, last, costs);
            }
        }
    }

    /// Fused chains over an op, by their first and last ops.
    fn over(&self, op: usize) -> Vec<(usize, usize)> {
        let least = op.saturating_sub(REACH);
        let before = self.places.iter().copied().filter(|place| (least..=op).contains(place));
        let after = self
            .places
            .iter()
            .copied()
            .filter(|&place| place > op && place <= op + REACH);
        let starts = self.chosen(before.rev());
        let ends = self.chosen(after);
        let pairs = starts
            .iter()
            .flat_map(|&start| ends.iter().map(move |&end| (start, end - 1)));
        pairs.filter(|pair| !self.known.contains(pair)).collect()
    }

    /// The nearest places, and those at which less is alive than at all nearer ones.
    fn chosen(&self, places: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut least = u64::MAX;
        let mut chosen = Vec::new();
        for place in places {
            let alive = level_before(&self.basis.alive, place);
            if chosen.len() < NEAREST || alive < least {
                chosen.push(place);
            }
            least = least.min(alive);
        }
        chosen
    }

    /// Adds the edges from op `first` to op `last`.
    fn estimate(&mut self, first: usize, last: usize, costs: &mut Costs<'_>) {
        self.known.insert((first, last));
        let (from, to) = (OpId::new(first), OpId::new(last));
        let basis = self.basis;
        let Ok(window) = Window::of(&basis.graph, &basis.lives, from, to) else {
            return;
        };
        let Some(whole) = window.whole(costs) else {
            return;
        };
        let options = self.options;
        for &axis in self.axes {
            for &mode in &options.modes {
                let spans = options
                    .tiles
                    .iter()
                    .map(|&tiles| Span::new((from, to), tiles, axis, mode));
                self.ascend((&window, whole), spans, costs);
            }
        }
        if !options.grids || !self.axes.contains(&Axis::Rows) {
            return;
        }
        let mut least = u64::MAX;
        for &tiles in &options.tiles {
            let mut own = u64::MAX;
            for mode in [Mode::Recompute, Mode::Hybrid] {
                let spans = options.tiles.iter().map(|&columns| Span {
                    first: from,
                    last: to,
                    tiles,
                    axis: Axis::Rows,
                    mode,
                    within: Some(Within {
                        tiles: columns,
                        axis: Axis::Columns,
                        mode: Mode::LineBuffer,
                    }),
                });
                own = own.min(self.ascend((&window, whole), spans, costs));
            }
            if own > least - least / LEAST_GAIN {
                break;
            }
            least = own;
        }
    }

    /// Adds edges in more and more tiles, as long as that helps; the least level of them.
    fn ascend(
        &mut self,
        (window, whole): (&Window, Taken),
        spans: impl Iterator<Item = Span>,
        costs: &mut Costs<'_>,
    ) -> u64 {
        let mut least = u64::MAX;
        for span in spans {
            self.estimates += 1;
            let Some(taken) = window.tiled(span, self.options.exactness, costs) else {
                break;
            };
            if taken.level < whole.level {
                let tiles = u64::from(span.tiles);
                self.edges[span.first.index()].push(Edge {
                    span,
                    level: taken.level,
                    level_after_tiles: taken.level.saturating_sub(window.replaced / tiles * (tiles - 1)),
                    at: OpId::new(span.first.index() + taken.at),
                    time: i128::from(taken.time) - i128::from(whole.time),
                });
            }
            if taken.level > least - least / LEAST_GAIN {
                break;
            }
            least = taken.level;
        }
        least
    }

    /// The shortest path over the edges that are known.
    fn path(&self, most: u64) -> Option<Path> {
        let ops = self.levels.len();
        // By place: the shortest way that ends with an op whole, and the shortest one that ends with tiles.
        let mut ways: Vec<[Option<ShortestPath>; 2]> = vec![[None; 2]; ops + 1];
        let start = ShortestPath {
            time: 0,
            edge: None,
            after_tiles: false,
        };
        ways[0][0] = Some(start);
        for place in 0..ops {
            for after_tiles in [false, true] {
                let Some(way) = ways[place][usize::from(after_tiles)] else {
                    continue;
                };
                if self.level_whole(place, after_tiles) <= most {
                    let next = ShortestPath {
                        edge: None,
                        after_tiles,
                        ..way
                    };
                    relax(&mut ways[place + 1][0], next);
                }
                for &edge in self.edges[place].iter().filter(|edge| edge.level(after_tiles) <= most) {
                    let next = ShortestPath {
                        time: way.time + edge.time,
                        edge: Some(edge),
                        after_tiles,
                    };
                    relax(&mut ways[edge.span.last.index() + 1][1], next);
                }
            }
        }
        self.back(&ways)
    }

    fn level_whole(&self, op: usize, after_tiles: bool) -> u64 {
        let joined = if after_tiles { self.joined[op] } else { 0 };
        self.levels[op].max(joined)
    }

    /// The best way to the last place, from its end.
    fn back(&self, ways: &[[Option<ShortestPath>; 2]]) -> Option<Path> {
        let mut place = ways.len() - 1;
        let ends = ways[place].iter().enumerate();
        let known = ends.filter_map(|(tiles, way)| Some((way.as_ref()?.time, tiles)));
        let mut tiles = known.min()?.1;
        let mut path = Path {
            spans: Vec::new(),
            level: 0,
            at: OpId::new(0),
        };
        while place > 0 {
            let way = ways[place][tiles]?;
            let (level, at) = match way.edge {
                Some(edge) => {
                    path.spans.push(edge.span);
                    place = edge.span.first.index();
                    (edge.level(way.after_tiles), edge.at)
                }
                None => {
                    place -= 1;
                    (self.level_whole(place, way.after_tiles), OpId::new(place))
                }
            };
            if level > path.level {
                (path.level, path.at) = (level, at);
            }
            tiles = usize::from(way.after_tiles);
        }
        path.spans.reverse();
        Some(path)
    }
}

fn relax(known: &mut Option<ShortestPath>, way: ShortestPath) {
    if known.is_none_or(|known| way.time < known.time) {
        *known = Some(way);
    }
}

/// Bytes alive before an op.
fn level_before(alive: &[u64], op: usize) -> u64 {
    op.checked_sub(1).map_or(0, |before| alive[before])
}

/// Places at which as little is alive as beside them, without those inside a plateau.
fn places(alive: &[u64]) -> Vec<usize> {
    let level = |place: usize| level_before(alive, place);
    let is_low = |&place: &usize| {
        if place == 0 || place == alive.len() {
            return true;
        }
        let (left, here, right) = (level(place - 1), level(place), level(place + 1));
        here <= left && here <= right && !(here == left && here == right)
    };
    (0..=alive.len()).filter(is_low).collect()
}

/// By op: bytes alive before it, and once more those of its operands that runs make.
fn joined(basis: &Basis) -> Vec<u64> {
    let graph = &basis.graph;
    let bytes = |op: &remat_ir::Op| -> u64 {
        let storages: FxHashSet<_> = op.reads().map(|tensor| graph.tensors[tensor].storage).collect();
        let storages = storages.into_iter().map(|storage| &graph.storages[storage]);
        let made = storages.filter(|storage| {
            storage.class == StorageClass::Intermediate && graph.tensors[storage.root].producer.is_some()
        });
        made.filter_map(|storage| storage.bytes).fold(0, u64::saturating_add)
    };
    let ops = graph.ops.iter().enumerate();
    ops.map(|(place, op)| level_before(&basis.alive, place).saturating_add(bytes(op)))
        .collect()
}
