//! Stretches of a graph, each written once for every way in which its operands are held.
//!
//! A tiled graph is written stretch by stretch: a fused chain is one, and every op outside of them. What is written for a stretch depends on how
//! the tensors that it reads are held, whole or in which pieces ([`Held`]), and on nothing else that stands before it. So an estimate writes only
//! what no estimate before it wrote, and puts the sketches of the stretches together.

use std::rc::Rc;

use remat_ir::{Op, OpId, StorageClass, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use super::costs::Costs;
use super::evaluate::Whole;
use super::sketch::Sketch;
use crate::apply::{write_chain, write_unnamed};
use crate::course::{Course, Span};
use crate::forms::Forms;
use crate::held::Held;
use crate::layout::Layout;
use crate::pieces::Writer;

/// So many ops are kept.
const MOST_OPS: usize = 1 << 19;

/// A way to hold a tensor, by its place among those that are known.
type Way = u32;

/// A stretch, and how what it reads is held.
type Key = (Stretch, SmallVec<[Way; 6]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Stretch {
    Op(OpId),
    Chain(Span),
    /// Outputs that are in pieces are joined, for the last op that was written.
    End(OpId),
}

/// What is written for a stretch.
struct Written {
    sketch: Rc<Sketch>,
    /// How tensors that somebody needs later are held after it, and by which tensors of the sketch.
    held: Vec<(TensorId, Way, Vec<TensorId>)>,
    /// The last op that was written.
    at: OpId,
}

/// What a stretch reads: what the caller or the session has, and what ops make before it.
#[derive(Default)]
struct Reads {
    sources: Vec<TensorId>,
    made: Vec<TensorId>,
}

impl Reads {
    /// Those of these tensors that are there before op `first`, each once.
    fn of(layout: &Layout<'_>, tensors: impl Iterator<Item = TensorId>, first: OpId) -> Self {
        let (mut reads, mut seen) = (Self::default(), FxHashSet::default());
        for tensor in tensors {
            match layout.graph.tensors[tensor].producer {
                Some(producer) if producer >= first => {}
                _ if !seen.insert(tensor) => {}
                Some(_) => reads.made.push(tensor),
                None => reads.sources.push(tensor),
            }
        }
        reads
    }
}

/// The stretches of one graph.
pub(super) struct Stretches {
    ways: FxHashMap<Held, Way>,
    by_way: Vec<Held>,
    reads: FxHashMap<(OpId, OpId), Rc<Reads>>,
    /// By op: what is written for it where all that it reads is held as before tiling.
    plain: Vec<Rc<Written>>,
    known: FxHashMap<Key, Option<Rc<Written>>>,
    /// How many ops `known` has.
    ops: usize,
}

/// How a tensor is held behind the stretches so far, and by which tensors of [`State`].
#[derive(Clone, Copy, Default)]
struct Now {
    way: Way,
    from: usize,
    count: usize,
}

struct State {
    now: TiVec<TensorId, Now>,
    tensors: Vec<TensorId>,
    whole: Whole<Rc<Sketch>>,
}

impl State {
    fn add(&mut self, written: &Written, reads: &Reads) {
        let given = reads.made.iter().flat_map(|&tensor| {
            let Now { from, count, .. } = self.now[tensor];
            self.tensors[from..from + count].iter().copied()
        });
        self.whole.add(Rc::clone(&written.sketch), given);
        for (tensor, way, tensors) in &written.held {
            self.now[*tensor] = Now {
                way: *way,
                from: self.tensors.len(),
                count: tensors.len(),
            };
            let tensors = tensors.iter().map(|&tensor| self.whole.number_of_last(tensor));
            self.tensors.extend(tensors);
        }
    }
}

/// What estimates are made with.
pub(super) struct Means<'s, 'a> {
    pub(super) costs: &'s mut Costs<'a>,
    pub(super) forms: Option<&'s Forms<'a>>,
}

impl Default for Stretches {
    fn default() -> Self {
        let by_way: Vec<Held> = CLASSES
            .map(|class| Held::Whole {
                class,
                has_left_blocks: false,
            })
            .to_vec();
        Self {
            ways: by_way.iter().cloned().zip(0..).collect(),
            by_way,
            reads: FxHashMap::default(),
            plain: Vec::new(),
            known: FxHashMap::default(),
            ops: 0,
        }
    }
}

impl Stretches {
    /// The graph with these fused chains, which are in order and whose tiles do not run in tiles themselves; `None` if it cannot be written, or a size is
    /// not known.
    pub(super) fn whole(
        &mut self,
        layout: &Layout<'_>,
        courses: &[Rc<Course>],
        means: &mut Means<'_, '_>,
    ) -> Option<Whole<Rc<Sketch>>> {
        let graph = layout.graph;
        if self.ops > MOST_OPS {
            self.known.clear();
            self.ops = 0;
        }
        if self.plain.is_empty() {
            self.plain = plain(layout, means)?;
        }
        let mut state = State {
            now: TiVec::from(vec![Now::default(); graph.tensors.len()]),
            tensors: Vec::new(),
            whole: Whole::default(),
        };
        let (mut courses, mut next, mut at) = (courses.iter().peekable(), 0, OpId::new(0));
        while next < graph.ops.len() {
            let id = OpId::new(next);
            let course = courses.next_if(|course| course.span.first == id);
            let last = course.map_or(id, |course| course.span.last);
            let reads = self.reads(layout, id, last);
            let is_plain = |&tensor: &TensorId| state.now[tensor].way == way_before(layout, tensor);
            let written = match course {
                None if reads.made.iter().all(is_plain) => Rc::clone(&self.plain[next]),
                None => self.written(layout, (Stretch::Op(id), None), (&reads, &state), means)?,
                Some(course) => {
                    let chain = (Stretch::Chain(course.span), Some(course.as_ref()));
                    self.written(layout, chain, (&reads, &state), means)?
                }
            };
            state.add(&written, &reads);
            at = written.at;
            next = last.index() + 1;
        }
        let outputs = Reads::of(layout, graph.outputs.iter().copied(), OpId::new(graph.ops.len()));
        let is_whole = |&tensor: &TensorId| matches!(self.by_way[state.now[tensor].way as usize], Held::Whole { .. });
        if !outputs.made.iter().all(is_whole) {
            let written = self.written(layout, (Stretch::End(at), None), (&outputs, &state), means)?;
            state.add(&written, &outputs);
        }
        let is_made = |tensor: &&TensorId| graph.tensors[**tensor].producer.is_some();
        let made = graph.outputs.iter().filter(is_made);
        state.whole.outputs = made.map(|&output| state.tensors[state.now[output].from]).collect();
        Some(state.whole)
    }

    /// How many ops were written and are kept.
    pub(super) fn kept(&self) -> usize {
        self.ops + self.plain.len()
    }

    /// What the ops from `first` to `last` read of what is there before.
    fn reads(&mut self, layout: &Layout<'_>, first: OpId, last: OpId) -> Rc<Reads> {
        let ops = || layout.graph.ops[first..=last].iter().flat_map(Op::reads);
        let reads = self.reads.entry((first, last));
        Rc::clone(reads.or_insert_with(|| Rc::new(Reads::of(layout, ops(), first))))
    }

    fn written(
        &mut self,
        layout: &Layout<'_>,
        (stretch, course): (Stretch, Option<&Course>),
        (reads, state): (&Reads, &State),
        means: &mut Means<'_, '_>,
    ) -> Option<Rc<Written>> {
        let ways = reads.made.iter().map(|&tensor| state.now[tensor].way);
        let key = (stretch, ways.collect());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let written = self
            .write(layout, (stretch, course), (reads, &key.1), means)
            .map(Rc::new);
        self.ops += written.as_ref().map_or(1, |written| written.sketch.ops.len());
        self.known.insert(key, written.clone());
        written
    }

    fn write(
        &mut self,
        layout: &Layout<'_>,
        (stretch, course): (Stretch, Option<&Course>),
        (reads, ways): (&Reads, &[Way]),
        means: &mut Means<'_, '_>,
    ) -> Option<Written> {
        let graph = layout.graph;
        let mut writer = Writer::of_stretch(layout);
        for &source in &reads.sources {
            writer.transfer.source(source).ok()?;
        }
        for (&tensor, &way) in reads.made.iter().zip(ways) {
            writer.give(tensor, &self.by_way[way as usize]).ok()?;
        }
        let given = writer.ops();
        let ops = match (stretch, course) {
            (Stretch::Chain(span), Some(course)) => {
                write_chain(&mut writer, course, &mut Vec::new()).ok()?;
                span.first..=span.last
            }
            (Stretch::Op(id), _) => {
                writer.copy(id).ok()?;
                id..=id
            }
            (Stretch::End(at) | Stretch::Chain(Span { last: at, .. }), _) => {
                writer.at = at;
                writer.join_outputs().ok()?;
                at..=at
            }
        };
        let (at, last) = (writer.at, *ops.end());
        let results = match stretch {
            Stretch::End(_) => [].iter(),
            Stretch::Op(_) | Stretch::Chain(_) => graph.ops[ops].iter(),
        };
        let touched = reads.made.iter().copied().chain(results.flat_map(Op::results));
        let is_needed = |tensor: &TensorId| matches!(stretch, Stretch::End(_)) || layout.leaves(*tensor, last);
        let held: Vec<_> = touched
            .filter(is_needed)
            .filter_map(|tensor| Some((tensor, writer.held(tensor)?)))
            .collect();
        let (written, origin) = writer.transfer.finish_stretch();
        let (sketch, numbers) = Sketch::of(&written, &origin, given, means.costs, means.forms)?;
        let held = held.into_iter().map(|(tensor, (held, tensors))| {
            let tensors = tensors.into_iter().filter_map(|tensor| numbers[tensor]).collect();
            (tensor, self.way(held), tensors)
        });
        Some(Written {
            held: held.collect(),
            sketch: Rc::new(sketch),
            at,
        })
    }

    fn way(&mut self, held: Held) -> Way {
        if let Some(&way) = self.ways.get(&held) {
            return way;
        }
        let way = Way::try_from(self.by_way.len()).unwrap_or(Way::MAX);
        self.by_way.push(held.clone());
        self.ways.insert(held, way);
        way
    }
}

/// The ways of tensors that are whole.
const CLASSES: [StorageClass; 3] = [StorageClass::Intermediate, StorageClass::Constant, StorageClass::Input];

/// The way in which a tensor is held before tiling.
fn way_before(layout: &Layout<'_>, tensor: TensorId) -> Way {
    let graph = layout.graph;
    match graph.storages[graph.tensors[tensor].storage].class {
        StorageClass::Intermediate => 0,
        StorageClass::Constant => 1,
        StorageClass::Input => 2,
    }
}

/// By op: what is written for it where nothing is in tiles.
fn plain(layout: &Layout<'_>, means: &mut Means<'_, '_>) -> Option<Vec<Rc<Written>>> {
    let (graph, origin) = write_unnamed(layout, &[]).ok()?;
    let sketch = Sketch::of(&graph, &origin, 0, means.costs, means.forms)?.0;
    let results = layout.graph.ops.iter_enumerated();
    let written = results.map(|(id, op)| {
        let single = sketch.single(id.index());
        let numbers = (single.given..).map(TensorId::new);
        let held = op.results().zip(numbers);
        let held = held.map(|(tensor, number)| (tensor, way_before(layout, tensor), vec![number]));
        Rc::new(Written {
            held: held.collect(),
            sketch: Rc::new(single),
            at: id,
        })
    });
    Some(written.collect())
}
