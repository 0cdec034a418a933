//! What is where: the state that a replay moves through.

use remat_plan::{OpId, Problem, StorageId, StorageRole, TensorId};
use typed_index_collections::TiVec;

/// Where the current instance of a storage is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// Nowhere: not created yet, or freed.
    Absent,
    /// In memory.
    Resident,
    /// In the second memory.
    PagedOut,
}

/// Why a tensor cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// Its op did not run.
    NotComputed,
    /// Its storage was freed.
    Freed,
    /// Its storage is in the second memory.
    PagedOut,
    /// It looks into an earlier instance of its storage; its op has to run again.
    Stale,
}

/// Memory that a run adds, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Demand {
    /// Storages that will be resident afterwards.
    pub(crate) created: u64,
    /// Second instances of storages that are resident already.
    pub(crate) duplicates: u64,
}

impl Demand {
    /// Both together; `None` if that does not fit 64 bits.
    pub(crate) fn total(self) -> Option<u64> {
        self.created.checked_add(self.duplicates)
    }
}

/// The state of all storages and tensors between two steps.
pub(crate) struct Memory<'a> {
    problem: &'a Problem,
    location: TiVec<StorageId, Location>,
    /// How often each storage was created.
    instance: TiVec<StorageId, u64>,
    /// The instance of its storage that each tensor was last defined in.
    defined_in: TiVec<TensorId, Option<u64>>,
}

impl<'a> Memory<'a> {
    /// Nothing is computed yet.
    pub(crate) fn new(problem: &'a Problem) -> Self {
        Self {
            problem,
            location: TiVec::from(vec![Location::Absent; problem.storages.len()]),
            instance: TiVec::from(vec![0; problem.storages.len()]),
            defined_in: TiVec::from(vec![None; problem.tensors.len()]),
        }
    }

    pub(crate) fn location(&self, storage: StorageId) -> Location {
        self.location[storage]
    }

    /// The storages in memory, ascending.
    pub(crate) fn resident(&self) -> impl Iterator<Item = StorageId> + '_ {
        let resident = |&(_, &location): &(StorageId, &Location)| location == Location::Resident;
        self.location.iter_enumerated().filter(resident).map(|(id, _)| id)
    }

    /// Why `tensor` cannot be read now; `None` if it can.
    pub(crate) fn missing(&self, tensor: TensorId) -> Option<Missing> {
        let entry = &self.problem.tensors[tensor];
        entry.producer?;
        let Some(instance) = self.defined_in[tensor] else {
            return Some(Missing::NotComputed);
        };
        if self.problem.storages[entry.storage].role == StorageRole::External {
            return None;
        }
        match self.location[entry.storage] {
            Location::Absent => Some(Missing::Freed),
            Location::PagedOut => Some(Missing::PagedOut),
            Location::Resident if instance != self.instance[entry.storage] => Some(Missing::Stale),
            Location::Resident => None,
        }
    }

    /// The storages that count and whose root `op` defines, in the order of its results.
    pub(crate) fn creates(problem: &'a Problem, op: OpId) -> impl Iterator<Item = StorageId> + 'a {
        let counted = |storage: &StorageId| problem.storages[*storage].role != StorageRole::External;
        roots(problem, op).filter(counted)
    }

    /// What a run of `op` adds to memory; `None` if a sum does not fit 64 bits.
    pub(crate) fn demand(&self, op: OpId) -> Option<Demand> {
        let mut demand = Demand::default();
        for storage in Self::creates(self.problem, op) {
            let bytes = self.problem.storages[storage].bytes;
            let part = match self.location[storage] {
                Location::Resident => &mut demand.duplicates,
                Location::Absent | Location::PagedOut => &mut demand.created,
            };
            *part = part.checked_add(bytes)?;
        }
        Some(demand)
    }

    /// Runs `op`: its storages are resident and its results defined.
    pub(crate) fn run(&mut self, op: OpId) {
        for storage in Self::creates(self.problem, op) {
            if self.location[storage] != Location::Resident {
                self.location[storage] = Location::Resident;
                self.instance[storage] += 1;
            }
        }
        for &tensor in &self.problem.ops[op].defines {
            self.defined_in[tensor] = Some(self.instance[self.problem.tensors[tensor].storage]);
        }
    }

    /// Moves the current instance of a storage.
    pub(crate) fn relocate(&mut self, storage: StorageId, location: Location) {
        self.location[storage] = location;
    }
}

/// The storages whose root `op` defines, external ones included.
pub(crate) fn roots(problem: &Problem, op: OpId) -> impl Iterator<Item = StorageId> + '_ {
    problem.ops[op].defines.iter().filter_map(|&tensor| {
        let storage = problem.tensors[tensor].storage;
        (problem.storages[storage].root == tensor).then_some(storage)
    })
}
