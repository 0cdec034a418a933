//! What the tiling of a graph asks of it again and again.

use std::rc::Rc;

use remat_ir::{Graph, OpId, OpKind, StorageClass, TensorId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use crate::blocks::Blocks;
use crate::forms::Forms;
use crate::{Exactness, FissionError};

/// A graph with tables.
pub(crate) struct Layout<'g> {
    pub(crate) graph: &'g Graph,
    tables: Rc<Tables>,
}

/// What is read off a graph once.
pub(crate) struct Tables {
    /// By tensor: the ops that read it.
    readers: TiVec<TensorId, SmallVec<[OpId; 4]>>,
    is_output: TiVec<TensorId, bool>,
    /// By op: whether everything that it reads and makes belongs to the caller or the session.
    is_outside: TiVec<OpId, bool>,
    /// Ops whose operands must be in blocks of channels, so that every bit stays.
    needs_blocks: Rc<FxHashSet<OpId>>,
}

impl Tables {
    /// # Errors
    /// [`FissionError`] if the graph has a plan or tiles already.
    pub(crate) fn of(graph: &Graph, exactness: Exactness) -> Result<Self, FissionError> {
        let is_whole = |part: &remat_ir::Part| part.ranges.iter().all(|range| range.start == 0) && part.spare.is_none();
        let is_tile = |op: &&remat_ir::Op| op.parts.iter().flatten().any(|part| !is_whole(part));
        if let Some(op) = graph.ops.iter().find(is_tile) {
            return Err(FissionError::AlreadyTiled(op.name.clone()));
        }
        Self::of_tiles(graph, exactness.has_blocks())
    }

    /// Those of a graph that may have tiles.
    fn of_tiles(graph: &Graph, has_blocks: bool) -> Result<Self, FissionError> {
        if let Some(op) = graph.ops.iter().find(|op| op.kind != OpKind::Compute) {
            return Err(FissionError::Planned(op.name.clone()));
        }
        let mut is_output: TiVec<TensorId, bool> = TiVec::from(vec![false; graph.tensors.len()]);
        for &output in &graph.outputs {
            is_output[output] = true;
        }
        let is_external =
            |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].class != StorageClass::Intermediate;
        let outside = |op: &remat_ir::Op| op.reads().all(is_external) && op.results().all(is_external);
        Ok(Self {
            readers: graph.users(),
            is_output,
            is_outside: graph.ops.iter().map(outside).collect(),
            needs_blocks: Rc::new(match has_blocks {
                true => Forms::of(graph).map_or_else(FxHashSet::default, |forms| forms.needing_blocks()),
                false => FxHashSet::default(),
            }),
        })
    }

    pub(crate) fn readers(&self, tensor: TensorId) -> &[OpId] {
        &self.readers[tensor]
    }
}

impl<'g> Layout<'g> {
    /// # Errors
    /// Those of [`Tables::of`].
    pub(crate) fn of(graph: &'g Graph, exactness: Exactness) -> Result<Self, FissionError> {
        Ok(Self::with(graph, Rc::new(Tables::of(graph, exactness)?)))
    }

    /// Of a graph that was written of this one, and whose tiles run in tiles themselves.
    ///
    /// # Errors
    /// [`FissionError`] if the graph has a plan already.
    pub(crate) fn of_tiles<'t>(&self, graph: &'t Graph) -> Result<Layout<'t>, FissionError> {
        let has_blocks = !self.tables.needs_blocks.is_empty();
        Ok(Layout::with(graph, Rc::new(Tables::of_tiles(graph, has_blocks)?)))
    }

    /// The same with tables of this graph.
    pub(crate) fn with(graph: &'g Graph, tables: Rc<Tables>) -> Self {
        Self { graph, tables }
    }

    /// What a writer knows before it writes anything.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks::new(&self.tables.needs_blocks)
    }

    pub(crate) fn is_outside(&self, op: OpId) -> bool {
        self.tables.is_outside[op]
    }

    /// Whether somebody needs a result of an op of the fused chain after it; a result that nobody reads counts as needed.
    pub(crate) fn leaves(&self, tensor: TensorId, last: OpId) -> bool {
        let readers = &self.tables.readers[tensor];
        self.tables.is_output[tensor] || readers.last().is_none_or(|&reader| reader > last)
    }

    /// Whether an op may run in parts as far as its effects go.
    pub(crate) fn is_divisible(&self, op: OpId) -> bool {
        let entry = &self.graph.ops[op];
        let is_constant = |&tensor: &TensorId| {
            let storage = self.graph.tensors[tensor].storage;
            self.graph.storages[storage].class == StorageClass::Constant
        };
        entry.effects.recomputable() && entry.bodies.is_empty() && entry.captures.iter().all(is_constant)
    }
}
