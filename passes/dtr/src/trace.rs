//! What a program does to memory: operators in the order in which it calls them, and when it holds on to which tensors.

use remat_plan::{OpId, StorageId, TensorId};
use typed_index_collections::TiVec;

/// A program as DTR sees it. Each op is called once; tensors that look into one piece of memory share a storage.
///
/// Ids are positions. The sums of all sizes and of all durations are at most 2^62.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(crate) ops: TiVec<OpId, TraceOp>,
    pub(crate) tensors: TiVec<TensorId, TraceTensor>,
    pub(crate) storages: TiVec<StorageId, TraceStorage>,
    pub(crate) events: Vec<Event>,
}

/// An operator.
#[derive(Clone, Debug)]
pub(crate) struct TraceOp {
    /// What it is called in the log; not unique.
    pub(crate) name: String,
    /// Time of one run in nanoseconds.
    pub(crate) duration: u64,
    /// Bytes it takes while it runs, on top of arguments and results.
    pub(crate) workspace: u64,
    /// What it reads, in order, with repetitions.
    pub(crate) arguments: Vec<TensorId>,
    /// What it defines, in order.
    pub(crate) results: Vec<TensorId>,
    /// Size of the storages it creates.
    pub(crate) bytes: u64,
    /// Whether it stands for a tensor that exists from outside.
    pub(crate) is_constant: bool,
    /// How often it may run; afterwards its results stay in memory.
    pub(crate) most_runs: u32,
}

/// A tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceTensor {
    /// Where it lives.
    pub(crate) storage: StorageId,
    /// What defines it.
    pub(crate) producer: OpId,
}

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceStorage {
    /// Its size.
    pub(crate) bytes: u64,
    /// The tensor that creates it.
    pub(crate) root: TensorId,
    /// Whether it is never evicted once it is there.
    pub(crate) stays: bool,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The program calls an op; it holds on to the results.
    Call(OpId),
    /// The program holds on to a tensor once more.
    Reference(TensorId),
    /// The program lets go of a tensor once.
    Release(TensorId),
    /// No op will ever need the storage again, not even one that runs again.
    Expire(StorageId),
}

impl TraceOp {
    /// An op without results yet that may run any number of times.
    pub(crate) fn new(name: String, duration: u64, arguments: Vec<TensorId>) -> Self {
        Self {
            name,
            duration,
            workspace: 0,
            arguments,
            results: Vec::new(),
            bytes: 0,
            is_constant: false,
            most_runs: u32::MAX,
        }
    }

    /// What stands for a tensor from outside.
    pub(crate) fn constant() -> Self {
        Self {
            is_constant: true,
            most_runs: 1,
            ..Self::new("constant".to_owned(), 0, Vec::new())
        }
    }
}

impl Trace {
    /// Adds a call of `op`, with one result per entry: its bytes if it creates memory, or the storage it looks into. What a constant
    /// creates stays.
    pub(crate) fn call(&mut self, mut op: TraceOp, results: &[(u64, Option<StorageId>)]) -> Vec<TensorId> {
        let producer = self.ops.next_key();
        for &(bytes, looks_into) in results {
            let root = self.tensors.next_key();
            let storage = looks_into.unwrap_or_else(|| {
                op.bytes += bytes;
                let stays = op.is_constant;
                self.storages.push_and_get_key(TraceStorage { bytes, root, stays })
            });
            self.tensors.push(TraceTensor { storage, producer });
            op.results.push(root);
        }
        let results = op.results.clone();
        self.ops.push(op);
        self.events.push(Event::Call(producer));
        results
    }

    /// Number of operators, constants included.
    #[must_use]
    pub fn operators(&self) -> usize {
        self.ops.len()
    }

    /// Number of tensors, constants and views included.
    #[must_use]
    pub fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Time of running every operator once, in nanoseconds.
    #[must_use]
    pub fn base_cost(&self) -> u64 {
        self.ops.iter().map(|op| op.duration).sum()
    }

    /// Bytes of all constants.
    #[must_use]
    pub fn constant_bytes(&self) -> u64 {
        self.ops.iter().filter(|op| op.is_constant).map(|op| op.bytes).sum()
    }

    /// Bytes of the op that needs most at once, arguments and results together, constants excluded: no budget below this and the
    /// constants can be met.
    #[must_use]
    pub fn bottleneck(&self) -> u64 {
        let ops = self.ops.iter().filter(|op| !op.is_constant);
        let needs = ops.map(|op| {
            let mut read: Vec<StorageId> = op
                .arguments
                .iter()
                .map(|&tensor| self.tensors[tensor].storage)
                .collect();
            read.sort_unstable();
            read.dedup();
            read.retain(|&storage| !self.is_constant(storage));
            op.bytes + op.workspace + read.iter().map(|&storage| self.storages[storage].bytes).sum::<u64>()
        });
        needs.max().unwrap_or(0)
    }

    /// Whether the storage holds a tensor from outside.
    pub(crate) fn is_constant(&self, storage: StorageId) -> bool {
        self.ops[self.tensors[self.storages[storage].root].producer].is_constant
    }
}
