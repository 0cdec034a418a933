//! A fused chain of a graph as a graph of its own, so that estimating its tiles takes time in proportion to the fused chain.

use std::ops::Range;
use std::rc::Rc;

use remat_ir::{Graph, OpId, OpSpec, Placement, ResultSpec, StorageClass, TensorId};
use rustc_hash::FxHashSet;

use super::basis::Life;
use super::costs::Costs;
use super::evaluate::score;
use crate::apply::write_unnamed;
use crate::course::{Span, course};
use crate::layout::{Layout, Tables};
use crate::transfer::Transfer;
use crate::{Exactness, FissionError};

/// Ops of a graph between an op for each tensor that was made before and an op that reads all that is needed later.
pub(super) struct Window {
    graph: Graph,
    tables: Rc<Tables>,
    /// The ops of the fused chain, by their places in `graph`.
    ops: Range<usize>,
    /// Bytes that are alive all the time and that no op of the fused chain touches.
    across: u64,
    /// Bytes of results that take the place of operands, row by row, where both are in pieces: as much as dies of these, and is made of those.
    pub(super) replaced: u64,
}

/// What a fused chain takes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// The most bytes alive in the whole graph while the fused chain runs.
    pub(super) level: u64,
    /// The op of the fused chain that takes them, by its place in the fused chain.
    pub(super) at: usize,
    /// Nanoseconds, of the fused chain and of the two ends of its window.
    pub(super) time: u64,
}

impl Window {
    /// The ops `first..=last` of `graph`; `lives` are those of its storages.
    pub(super) fn of(graph: &Graph, lives: &[Life], first: OpId, last: OpId) -> Result<Self, FissionError> {
        let ops = first.index()..last.index() + 1;
        let inside = || graph.ops[first..=last].iter();
        let mut transfer = Transfer::new(graph)?;
        let is_before = |&tensor: &TensorId| graph.tensors[tensor].producer.is_some_and(|producer| producer < first);
        let root = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].root;
        let read: Vec<TensorId> = inside().flat_map(remat_ir::Op::reads).filter(is_before).collect();
        // Storages before what looks into them.
        for tensor in read
            .iter()
            .map(|&tensor| root(tensor))
            .filter(is_before)
            .chain(read.iter().copied())
        {
            if transfer.whole[tensor].is_none() {
                give(&mut transfer, first, tensor)?;
            }
        }
        let place = transfer.ops();
        for op in ops.clone() {
            transfer.copy(OpId::new(op))?;
        }
        let touched: FxHashSet<_> = inside()
            .flat_map(|op| op.reads().chain(op.results()))
            .map(|tensor| graph.tensors[tensor].storage)
            .collect();
        let mut rest = OpSpec::new("after", "Window");
        let mut across = 0;
        for life in lives.iter().filter(|life| life.from < ops.end && life.to >= ops.end) {
            if touched.contains(&life.storage) {
                rest.inputs.push(transfer.whole[graph.storages[life.storage].root]);
            } else {
                across = u64::saturating_add(across, life.bytes);
            }
        }
        let total = |is_meant: &dyn Fn(&Life) -> bool| {
            let meant = lives
                .iter()
                .filter(|life| is_meant(life) && touched.contains(&life.storage));
            meant.map(|life| life.bytes).fold(0, u64::saturating_add)
        };
        let die = total(&|life| life.from < ops.start && ops.contains(&life.to));
        let leave = total(&|life| ops.contains(&life.from) && life.to >= ops.end);
        transfer.add(last, rest)?;
        let graph = transfer.finish().0;
        Ok(Self {
            // What is put back into blocks is not counted: what is before the window has no form.
            tables: Rc::new(Tables::of(&graph, Exactness::Close)?),
            graph,
            ops: place..place + ops.len(),
            across,
            replaced: die.min(leave),
        })
    }

    /// The fused chain whole.
    pub(super) fn whole(&self, costs: &mut Costs<'_>) -> Option<Taken> {
        self.taken(&self.layout(), None, Exactness::Close, costs)
    }

    /// The fused chain in tiles as `span` says; its ends do not count.
    pub(super) fn tiled(&self, span: Span, exactness: Exactness, costs: &mut Costs<'_>) -> Option<Taken> {
        let span = Span {
            first: OpId::new(self.ops.start),
            last: OpId::new(self.ops.end - 1),
            ..span
        };
        self.taken(&self.layout(), Some(span), exactness, costs)
    }

    fn layout(&self) -> Layout<'_> {
        Layout::with(&self.graph, Rc::clone(&self.tables))
    }

    fn taken(
        &self,
        layout: &Layout<'_>,
        span: Option<Span>,
        exactness: Exactness,
        costs: &mut Costs<'_>,
    ) -> Option<Taken> {
        let course = match span {
            Some(span) => Some(course(layout, span, exactness).ok()?),
            None => None,
        };
        let courses: Vec<_> = course.iter().collect();
        let (graph, origin) = write_unnamed(layout, &courses).ok()?;
        let score = score(&graph, &origin, self.graph.ops.len(), costs)?;
        let levels = score.levels[self.ops.clone()].iter().enumerate();
        let (at, level) = levels.max_by_key(|&(place, &level)| (level, std::cmp::Reverse(place)))?;
        Some(Taken {
            level: level.saturating_add(self.across),
            at,
            time: score.time,
        })
    }
}

/// Adds an op that makes `tensor`, which is there before the window.
fn give(transfer: &mut Transfer<'_>, first: OpId, tensor: TensorId) -> Result<(), FissionError> {
    let graph = transfer.graph;
    let entry = &graph.tensors[tensor];
    let storage = &graph.storages[entry.storage];
    let base = transfer.whole[storage.root].filter(|_| storage.root != tensor);
    let placement = match (storage.class, base) {
        (StorageClass::Constant, _) => Placement::Constant,
        (_, Some(base)) => Placement::ViewOf(base),
        (_, None) => Placement::New,
    };
    let mut spec = OpSpec::new(format!("before {}", entry.name), "Window");
    spec.inputs = base.into_iter().map(Some).collect();
    spec.results = vec![Some(ResultSpec {
        name: entry.name.clone(),
        ty: entry.ty.clone(),
        placement,
    })];
    if let Some(&Some(result)) = transfer.add(first, spec)?.first() {
        transfer.name_whole(tensor, result);
        transfer.state_bytes(tensor);
    }
    Ok(())
}
