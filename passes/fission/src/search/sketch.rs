//! What of written ops counts for an estimate, without names, types and attributes.

use remat_ir::{Graph, OpId, StorageClass, StorageId, TensorId};
use remat_operators::overwritten;
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use super::costs::{Cost, Costs};
use crate::forms::{Facts, Forms};

/// Ops that are written one behind the other. Tensors are numbered: first those that are there before, as far as runs made them, then the results
/// of the ops; storages likewise.
pub(super) struct Sketch {
    pub(super) ops: Vec<SketchOp>,
    /// How many tensors are there before.
    pub(super) given: usize,
    /// By tensor: its storage, where a run makes that. Those of tensors that are there before have the same numbers.
    pub(super) storages: TiVec<TensorId, Option<StorageId>>,
    /// Bytes of the storages that the ops make, and the op that makes each, by its place.
    pub(super) made: Vec<(u64, usize)>,
}

/// An op of a sketch.
pub(super) struct SketchOp {
    /// The op before tiling that it is there for.
    pub(super) origin: OpId,
    pub(super) cost: Cost,
    /// By operand, then by capture: the tensor, if a run makes it.
    pub(super) reads: SmallVec<[Option<TensorId>; 4]>,
    pub(super) results: SmallVec<[TensorId; 1]>,
    /// The operand and the result of which the kernel may write one over the other.
    pub(super) overwritten: Option<(TensorId, TensorId)>,
    /// What its form depends on, where tiles must have the forms of the whole.
    pub(super) facts: Option<Facts>,
}

/// By tensor of a graph: its number in a sketch, if a run makes it.
pub(super) type Numbers = TiVec<TensorId, Option<TensorId>>;

impl Sketch {
    /// The ops of `graph` from the one at place `given` on, which come from those of another graph as `origin` says. Each op before makes a tensor that is
    /// there. `None` where a size is not known or too large.
    pub(super) fn of(
        graph: &Graph,
        origin: &TiVec<OpId, OpId>,
        given: usize,
        costs: &mut Costs<'_>,
        forms: Option<&Forms<'_>>,
    ) -> Option<(Self, Numbers)> {
        let alignment = costs.device.alignment.max(1);
        let mut numbers: Numbers = TiVec::with_capacity(graph.tensors.len());
        let mut tensors = 0;
        for tensor in &graph.tensors {
            numbers.push(tensor.producer.map(|_| TensorId::new(tensors)));
            tensors += usize::from(tensor.producer.is_some());
        }
        let (mut made, mut next) = (Vec::new(), given);
        let mut own: TiVec<StorageId, Option<StorageId>> = TiVec::with_capacity(graph.storages.len());
        for storage in &graph.storages {
            let producer = graph.tensors[storage.root].producer;
            let Some(producer) = producer.filter(|_| storage.class == StorageClass::Intermediate) else {
                own.push(None);
                continue;
            };
            if producer.index() < given {
                own.push(Some(StorageId::new(producer.index())));
                continue;
            }
            made.push((
                storage.bytes?.checked_next_multiple_of(alignment)?,
                producer.index() - given,
            ));
            own.push(Some(StorageId::new(next)));
            next += 1;
        }
        let made_tensors = graph.tensors.iter().filter(|tensor| tensor.producer.is_some());
        let storages = made_tensors.map(|tensor| own[tensor.storage]).collect();
        let number = |tensor: TensorId| numbers[tensor];
        let ops = graph.ops.iter_enumerated().skip(given).map(|(id, op)| SketchOp {
            origin: origin[id],
            cost: costs.of(graph, id),
            reads: (op.inputs.iter().map(|input| input.and_then(number)))
                .chain(op.captures.iter().map(|&capture| number(capture)))
                .collect(),
            results: op.results().filter_map(number).collect(),
            overwritten: overwritten(graph, op).and_then(|(operand, result)| Some((number(operand)?, number(result)?))),
            facts: forms.map(|forms| forms.facts(graph, op)),
        });
        let ops = ops.collect();
        Some((
            Self {
                ops,
                given,
                storages,
                made,
            },
            numbers,
        ))
    }

    /// One op by itself; what it reads is there before, in the order in which it reads it.
    pub(super) fn single(&self, place: usize) -> Self {
        let op = &self.ops[place];
        let mut given: Vec<TensorId> = Vec::new();
        for &read in op.reads.iter().flatten() {
            if !given.contains(&read) {
                given.push(read);
            }
        }
        let number = |tensor: TensorId| {
            let read = given.iter().position(|&read| read == tensor);
            let made = || op.results.iter().position(|&result| result == tensor);
            TensorId::new(read.or_else(|| Some(given.len() + made()?)).unwrap_or(0))
        };
        let mut made: Vec<(StorageId, u64)> = Vec::new();
        for storage in op.results.iter().filter_map(|&result| self.storages[result]) {
            let (bytes, by) = self.made[storage.index()];
            if by == place && !made.iter().any(|&(known, _)| known == storage) {
                made.push((storage, bytes));
            }
        }
        let storage = |tensor: &TensorId| {
            let storage = self.storages[*tensor]?;
            let read = given.iter().position(|&read| self.storages[read] == Some(storage));
            let own = || made.iter().position(|&(own, _)| own == storage);
            read.or_else(|| Some(given.len() + own()?)).map(StorageId::new)
        };
        Self {
            storages: given.iter().chain(&op.results).map(storage).collect(),
            ops: vec![SketchOp {
                reads: op.reads.iter().map(|read| read.map(number)).collect(),
                results: op.results.iter().copied().map(number).collect(),
                overwritten: op
                    .overwritten
                    .map(|(operand, result)| (number(operand), number(result))),
                ..*op
            }],
            made: made.iter().map(|&(_, bytes)| (bytes, 0)).collect(),
            given: given.len(),
        }
    }
}
