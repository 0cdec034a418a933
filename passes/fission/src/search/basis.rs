//! A graph with clones of stretches, on which stretches are tiled.

use std::rc::Rc;

use remat_ir::{Graph, OpId, StorageClass, TensorId};
use rustc_hash::FxHashMap;

use crate::course::{Course, Span, course};
use crate::layout::Layout;
use crate::repeat::repeat;
use crate::{Exactness, FissionError};
use remat_plan::{Again, Stretch, Tiling};

/// The graph that all stretches of a state refer to.
pub(super) struct Basis {
    pub(super) again: Vec<Again>,
    pub(super) graph: Graph,
    /// By op: bytes of the results of ops that are alive after it.
    pub(super) alive: Vec<u64>,
}

impl Basis {
    pub(super) fn new(graph: &Graph, again: Vec<Again>) -> Result<Self, FissionError> {
        let graph = repeat(graph, &again)?;
        let alive = alive(&graph);
        Ok(Self { again, graph, alive })
    }

    /// The tiling of these stretches.
    pub(super) fn tiling(&self, spans: &[Span]) -> Tiling {
        let name = |op: OpId| self.graph.ops[op].name.clone();
        let stretch = |span: &Span| Stretch {
            first: name(span.first),
            last: name(span.last),
            tiles: span.tiles,
            axis: span.axis,
            mode: span.mode,
        };
        Tiling {
            again: self.again.clone(),
            stretches: spans.iter().map(stretch).collect(),
        }
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

/// By op: bytes that are alive after it, results of ops only.
fn alive(graph: &Graph) -> Vec<u64> {
    let ops = graph.ops.len();
    let mut change: Vec<i128> = vec![0; ops + 1];
    let mut last: FxHashMap<TensorId, usize> = FxHashMap::default();
    for (id, op) in graph.ops.iter_enumerated() {
        for tensor in op.reads() {
            last.insert(graph.storages[graph.tensors[tensor].storage].root, id.index());
        }
    }
    for &output in &graph.outputs {
        last.insert(graph.storages[graph.tensors[output].storage].root, ops);
    }
    for storage in &graph.storages {
        let (Some(producer), Some(bytes)) = (graph.tensors[storage.root].producer, storage.bytes) else {
            continue;
        };
        let Some(&end) = last
            .get(&storage.root)
            .filter(|_| storage.class == StorageClass::Intermediate)
        else {
            continue;
        };
        change[producer.index()] += i128::from(bytes);
        change[end] -= i128::from(bytes);
    }
    let mut now = 0;
    let level = |change: &i128| {
        now += change;
        u64::try_from(now).unwrap_or(0)
    };
    change[..ops].iter().map(level).collect()
}

/// Stretches of a basis, each worked out once.
pub(super) struct Courses<'a> {
    pub(super) layout: Layout<'a>,
    exactness: Exactness,
    known: FxHashMap<Span, Option<Rc<Course>>>,
}

impl<'a> Courses<'a> {
    pub(super) fn of(basis: &'a Basis, exactness: Exactness) -> Result<Self, FissionError> {
        Ok(Self {
            layout: Layout::of(&basis.graph)?,
            exactness,
            known: FxHashMap::default(),
        })
    }

    /// The stretch worked out; `None` if it is not possible.
    pub(super) fn get(&mut self, span: Span) -> Option<Rc<Course>> {
        let (layout, exactness) = (&self.layout, self.exactness);
        let known = self.known.entry(span);
        known
            .or_insert_with(|| course(layout, span, exactness).ok().map(Rc::new))
            .clone()
    }
}
