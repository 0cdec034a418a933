//! The runtime that DTR is: an executor that keeps within a budget by evicting storages, and runs ops again when what they
//! made is needed.
//!
//! `materialize` runs ops, `select` evicts, `cost` knows what evicting costs (`classes`: its union-find), `banish` frees for good.

mod banish;
mod classes;
mod cost;
mod materialize;
mod pool;
mod select;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng as _;
use remat_plan::{OpId, StorageId, TensorId};
use typed_index_collections::TiVec;

use self::cost::Costs;
use self::pool::Pool;
use crate::heuristic::CostTerm;
use crate::trace::{Event, Trace};
use crate::{Deallocation, SimulateOptions};

/// Runs that each op may take on average before the execution counts as thrashing. Ops of no duration never add up to the
/// limit on recomputation; this ends executions of them.
const RUNS_PER_OP: u64 = 500;

/// Why an execution did not come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// Nothing is left to evict.
    OutOfMemory,
    /// Recomputation exceeded its limit.
    Thrash,
    /// The caller asked to stop.
    Interrupted,
}

/// An op that waits for arguments.
#[derive(Clone, Copy, Debug)]
struct Frame {
    op: OpId,
    /// Its next missing argument, in `Runtime::missing`.
    next: usize,
    /// Where its missing arguments begin there.
    start: usize,
}

/// An execution.
pub(crate) struct Runtime<'a> {
    trace: &'a Trace,
    options: &'a SimulateOptions,
    budget: u64,
    /// Recomputation beyond this is thrashing.
    most_recompute: f64,
    most_runs: u64,
    interrupt: Option<&'a dyn Fn() -> bool>,
    /// Whether what cannot be computed again is freed for good as soon as the program lets go of it, where that is possible.
    banishes_pinned: bool,
    /// Whether each tensor can be read.
    defined: TiVec<TensorId, bool>,
    /// The tensors of each storage.
    views: TiVec<StorageId, Vec<TensorId>>,
    /// How often the program holds on to each tensor, and to the tensors of each storage together.
    tensor_references: TiVec<TensorId, u64>,
    references: TiVec<StorageId, u64>,
    material: TiVec<StorageId, bool>,
    banished: TiVec<StorageId, bool>,
    pinned: TiVec<StorageId, bool>,
    expired: TiVec<StorageId, bool>,
    /// Running ops that read each storage, and whether it is pinned, together: in the pool are the ones without.
    locks: TiVec<StorageId, u32>,
    last_access: TiVec<StorageId, u64>,
    pool: Pool,
    costs: Costs,
    rng: SplitMix64,
    frames: Vec<Frame>,
    missing: Vec<TensorId>,
    clock: u64,
    usage: u64,
    runs: TiVec<OpId, u32>,
    /// Runs of all ops together.
    pub(crate) run_count: u64,
    /// Bytes resident at most.
    pub(crate) peak: u64,
    /// Time spent on running ops again.
    pub(crate) recompute_ns: u64,
    /// Storages evicted for want of memory.
    pub(crate) evictions: u64,
    /// Ops that ran again.
    pub(crate) recomputes: u64,
    /// The ops in the order in which they ran.
    pub(crate) sequence: Vec<OpId>,
}

impl<'a> Runtime<'a> {
    pub(crate) fn new(trace: &'a Trace, options: &'a SimulateOptions) -> Self {
        let (tensors, storages) = (trace.tensors.len(), trace.storages.len());
        let term = options.heuristic.score().map_or(CostTerm::None, |score| score.cost);
        let mut views: TiVec<StorageId, Vec<TensorId>> = TiVec::from(vec![Vec::new(); storages]);
        for (id, tensor) in trace.tensors.iter_enumerated() {
            views[tensor.storage].push(id);
        }
        Self {
            trace,
            options,
            budget: options.budget.unwrap_or(u64::MAX),
            most_recompute: trace.base_cost() as f64 * (options.thrash_limit - 1.0),
            most_runs: RUNS_PER_OP * (trace.ops.len() as u64 + 100),
            interrupt: None,
            banishes_pinned: false,
            defined: TiVec::from(vec![false; tensors]),
            views,
            tensor_references: TiVec::from(vec![0; tensors]),
            references: TiVec::from(vec![0; storages]),
            material: TiVec::from(vec![false; storages]),
            banished: TiVec::from(vec![false; storages]),
            pinned: TiVec::from(vec![false; storages]),
            expired: TiVec::from(vec![false; storages]),
            locks: TiVec::from(vec![0; storages]),
            last_access: TiVec::from(vec![0; storages]),
            pool: Pool::new(storages),
            costs: Costs::new(term, storages),
            rng: SplitMix64::seed_from_u64(options.seed),
            frames: Vec::new(),
            missing: Vec::new(),
            clock: 1,
            usage: 0,
            runs: TiVec::from(vec![0; trace.ops.len()]),
            run_count: 0,
            peak: 0,
            recompute_ns: 0,
            evictions: 0,
            recomputes: 0,
            sequence: Vec::new(),
        }
    }

    /// Frees what cannot be computed again when the program lets go of it, rather than when nothing can need it any more. What
    /// descends from it cannot be computed again either then, and stays while it is in use.
    pub(crate) fn banishing_pinned(mut self, banishes: bool) -> Self {
        self.banishes_pinned = banishes;
        self
    }

    /// Counts as thrashing after so many runs, if that is less than otherwise.
    pub(crate) fn at_most(mut self, runs: Option<u64>) -> Self {
        self.most_runs = self.most_runs.min(runs.unwrap_or(u64::MAX));
        self
    }

    /// Asks now and then whether to stop.
    pub(crate) fn interrupted_by(mut self, interrupt: &'a dyn Fn() -> bool) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Time that passed.
    pub(crate) fn elapsed(&self) -> u64 {
        self.clock - 1
    }

    /// Runs the whole program. At its end, everything it still holds on to is resident at once.
    pub(crate) fn execute(&mut self) -> Result<(), Stop> {
        let trace = self.trace;
        for &event in &trace.events {
            match event {
                Event::Call(op) => self.call(op)?,
                Event::Reference(tensor) => self.reference(tensor),
                Event::Release(tensor) => self.release(tensor),
                Event::Expire(storage) => self.expire(storage),
            }
        }
        for tensor in trace.tensors.keys() {
            if self.tensor_references[tensor] > 0 {
                self.materialize(tensor)?;
                self.pin(trace.tensors[tensor].storage);
            }
        }
        Ok(())
    }

    /// The program calls an op.
    fn call(&mut self, op: OpId) -> Result<(), Stop> {
        let trace = self.trace;
        self.costs.call(trace, op);
        for &result in &trace.ops[op].results {
            self.reference(result);
        }
        self.run(op)?;
        for &result in &trace.ops[op].results {
            self.last_access[trace.tensors[result].storage] = self.clock;
        }
        Ok(())
    }

    fn reference(&mut self, tensor: TensorId) {
        self.tensor_references[tensor] += 1;
        self.references[self.trace.tensors[tensor].storage] += 1;
    }

    fn release(&mut self, tensor: TensorId) {
        let storage = self.trace.tensors[tensor].storage;
        self.tensor_references[tensor] -= 1;
        self.references[storage] -= 1;
        if self.references[storage] > 0 {
            return;
        }
        match self.options.deallocation {
            Deallocation::Banish => self.banish(storage),
            Deallocation::Eager if self.trace.storages[storage].stays || !self.material[storage] => {}
            Deallocation::Eager if !self.pinned[storage] => self.evict(storage),
            Deallocation::Eager if self.banishes_pinned => self.banish_pinned(storage),
            Deallocation::Eager | Deallocation::Keep => {}
        }
    }

    /// Takes a storage out of memory; it can be computed again.
    fn evict(&mut self, storage: StorageId) {
        self.leave(storage);
        self.costs.evicted(storage);
    }

    fn leave(&mut self, storage: StorageId) {
        self.pool.remove(storage);
        self.material[storage] = false;
        self.usage -= self.trace.storages[storage].bytes;
        self.undefine(storage);
    }

    fn undefine(&mut self, storage: StorageId) {
        for &tensor in &self.views[storage] {
            self.defined[tensor] = false;
        }
    }

    fn lock(&mut self, storage: StorageId) {
        self.locks[storage] += 1;
        self.pool.remove(storage);
    }

    fn unlock(&mut self, storage: StorageId) {
        self.locks[storage] -= 1;
        if self.locks[storage] == 0 && self.material[storage] {
            self.pool.insert(storage);
        }
    }

    /// Keeps a storage in memory.
    fn pin(&mut self, storage: StorageId) {
        if !std::mem::replace(&mut self.pinned[storage], true) {
            self.lock(storage);
        }
    }

    /// Keeps a storage whose op may not run again, until nothing can need it any more.
    fn pin_until_expired(&mut self, storage: StorageId) {
        if self.material[storage] && !self.expired[storage] {
            self.pin(storage);
        }
    }

    /// Gives a storage up for good.
    fn expire(&mut self, storage: StorageId) {
        self.expired[storage] = true;
        if std::mem::replace(&mut self.pinned[storage], false) {
            self.locks[storage] -= 1;
        }
        if self.material[storage] {
            self.evict(storage);
        }
    }

    fn check_limits(&self) -> Result<(), Stop> {
        if self.recompute_ns as f64 > self.most_recompute || self.run_count > self.most_runs {
            return Err(Stop::Thrash);
        }
        match self.interrupt {
            Some(interrupt) if self.run_count.is_multiple_of(64) && interrupt() => Err(Stop::Interrupted),
            _ => Ok(()),
        }
    }
}
