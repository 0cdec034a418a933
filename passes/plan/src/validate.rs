//! The rules of a problem.
//!
//! 1. Ids lie within their tables.
//! 2. Names of ops are unique, and so are those of tensors.
//! 3. A tensor is defined by the op that it names as its producer, once; a storage's root lies in it.
//! 4. Ops stand in a topological order, and read no tensor twice.
//! 5. Memory without a creator is external, and every tensor in memory that an op creates is defined by an op.
//! 6. A result lies in memory that its op creates, or in that of a tensor which the op reads.
//! 7. The bus to the second memory moves something, and sums of sizes, times and energies fit 63 bits.
//! 8. Every op may run at least once.
//! 9. An op that never runs after another one stands before it, and is listed with it once.

use remat_files::shown;
use thiserror::Error;
use typed_index_collections::TiVec;

use crate::{OpId, Problem, StorageId, StorageRole, TensorId};

/// Why a problem read from a file is malformed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProblemError {
    /// The JSON text does not have the form of a problem.
    #[error("not a problem: {}", shown(.0))]
    Json(String),
    /// An id points behind the end of its table.
    #[error("{owner} refers to {what} {id}, but there are only {count}", owner = shown(.owner))]
    IdOutOfRange {
        /// Who refers.
        owner: String,
        /// `op`, `tensor` or `storage`.
        what: &'static str,
        /// The id.
        id: usize,
        /// Size of the table.
        count: usize,
    },
    /// Two ops or two tensors have one name.
    #[error("the name `{}` is used twice", shown(.0))]
    DuplicateName(String),
    /// An op reads a tensor that a later op (or the op itself) defines.
    #[error("op `{op}` reads `{tensor}` before it is defined: ops must stand in a topological order", op = shown(.op), tensor = shown(.tensor))]
    NotTopological {
        /// The op.
        op: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor names another producer than the op that lists it among its results.
    #[error("tensor `{}` and its producer do not agree", shown(.0))]
    WrongProducer(String),
    /// A storage's root lives in another storage.
    #[error("storage {0} and its root tensor do not agree")]
    WrongRoot(usize),
    /// An op lists a tensor twice among what it reads.
    #[error("op `{op}` lists `{tensor}` twice among its reads", op = shown(.op), tensor = shown(.tensor))]
    RepeatedRead {
        /// The op.
        op: String,
        /// The tensor.
        tensor: String,
    },
    /// Memory that no op creates is to be freed, or is a result.
    #[error("no op defines `{}`, so its memory belongs to the caller or the session: its storage must be `external`", shown(.0))]
    NotExternal(String),
    /// A view without an op that makes it.
    #[error("no op defines `{tensor}`, but it looks into the memory of `{root}`, which op `{creator}` creates", tensor = shown(.tensor), root = shown(.root), creator = shown(.creator))]
    ViewWithoutProducer {
        /// The view.
        tensor: String,
        /// The tensor that roots the storage.
        root: String,
        /// The op that creates the storage.
        creator: String,
    },
    /// A result looks into memory that its op has no access to.
    #[error("op `{op}` defines `{tensor}` in the memory of `{root}`, but reads nothing that lies there", op = shown(.op), tensor = shown(.tensor), root = shown(.root))]
    ViewOfStranger {
        /// The op.
        op: String,
        /// Its result.
        tensor: String,
        /// The tensor that roots the storage.
        root: String,
    },
    /// Sizes, durations or energies are so large that their sums do not fit 64 bits.
    #[error("the sum of all {0} overflows 63 bits")]
    Overflow(&'static str),
    /// The limit on computes forbids even the first one.
    #[error("`max_computes` is 0: every op has to run once")]
    NoComputes,
    /// An op is never to run after one that does not stand behind it.
    #[error("op `{before}` is never to run after `{after}`, but does not stand before it in the reference order", before = shown(.before), after = shown(.after))]
    AntiDependenceAgainstOrder {
        /// The op that is to run before only.
        before: String,
        /// The op after which it is never to run.
        after: String,
    },
    /// An anti-dependence is listed twice.
    #[error("that op `{before}` never runs after `{after}` is stated twice", before = shown(.before), after = shown(.after))]
    RepeatedAntiDependence {
        /// The op that is to run before only.
        before: String,
        /// The op after which it is never to run.
        after: String,
    },
    /// The bus to the second memory moves nothing.
    #[error("the second memory has a bandwidth of 0 bytes per second")]
    NoBandwidth,
}

impl Problem {
    /// Reads a problem from JSON and checks it.
    ///
    /// # Errors
    /// [`ProblemError`] if the text is malformed or the problem breaks one of its rules.
    pub fn from_json(text: &str) -> Result<Self, ProblemError> {
        let problem: Self = serde_json::from_str(text).map_err(|error| ProblemError::Json(error.to_string()))?;
        problem.validate()?;
        Ok(problem)
    }

    /// Checks the rules of this module's documentation. What was built from a graph keeps them; what was read from a file is held to the
    /// same rules, on which solvers and the checker rely.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), ProblemError> {
        self.check_ids()?;
        self.check_names()?;
        self.check_producers()?;
        self.check_reads()?;
        self.check_memory()?;
        self.check_views()?;
        self.check_sums()?;
        self.check_anti_dependences()?;
        if self.max_computes == Some(0) {
            return Err(ProblemError::NoComputes);
        }
        Ok(())
    }

    fn check_sums(&self) -> Result<(), ProblemError> {
        let sizes = self
            .storages
            .iter()
            .map(|s| s.bytes)
            .chain(self.ops.iter().map(|op| op.workspace));
        sum_fits("sizes", sizes)?;
        sum_fits("durations", self.ops.iter().map(|op| op.duration))?;
        sum_fits("energies", self.ops.iter().map(|op| op.energy_pj))?;
        let ways = self.paging.iter().flat_map(|paging| [paging.page_out, paging.page_in]);
        for way in ways {
            if way.bytes_per_s == 0 {
                return Err(ProblemError::NoBandwidth);
            }
            let bytes = || self.storages.iter().map(|storage| storage.bytes);
            sum_fits("transfer times", bytes().map(|bytes| way.duration(bytes)))?;
            sum_fits("transfer energies", bytes().map(|bytes| way.energy(bytes)))?;
        }
        Ok(())
    }

    /// The reference order keeps every anti-dependence. With that none contradicts a data dependence or another one.
    fn check_anti_dependences(&self) -> Result<(), ProblemError> {
        let mut seen = rustc_hash::FxHashSet::default();
        for &pair in &self.anti_dependences {
            let names = || (self.ops[pair.before].name.clone(), self.ops[pair.after].name.clone());
            if pair.before >= pair.after {
                let (before, after) = names();
                return Err(ProblemError::AntiDependenceAgainstOrder { before, after });
            }
            if !seen.insert(pair) {
                let (before, after) = names();
                return Err(ProblemError::RepeatedAntiDependence { before, after });
            }
        }
        Ok(())
    }

    fn check_ids(&self) -> Result<(), ProblemError> {
        let within = |owner: &str, what: &'static str, id: usize, count: usize| {
            if id < count {
                return Ok(());
            }
            Err(ProblemError::IdOutOfRange {
                owner: owner.to_owned(),
                what,
                id,
                count,
            })
        };
        for op in &self.ops {
            for tensor in op.reads.iter().chain(&op.defines) {
                within(
                    &format!("op `{}`", op.name),
                    "tensor",
                    tensor.index(),
                    self.tensors.len(),
                )?;
            }
        }
        for tensor in &self.tensors {
            let owner = format!("tensor `{}`", tensor.name);
            within(&owner, "storage", tensor.storage.index(), self.storages.len())?;
            if let Some(op) = tensor.producer {
                within(&owner, "op", op.index(), self.ops.len())?;
            }
        }
        for (index, pair) in self.anti_dependences.iter().enumerate() {
            for op in [pair.before, pair.after] {
                within(&format!("anti-dependence {index}"), "op", op.index(), self.ops.len())?;
            }
        }
        for (id, storage) in self.storages.iter_enumerated() {
            within(
                &format!("storage {}", id.index()),
                "tensor",
                storage.root.index(),
                self.tensors.len(),
            )?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ProblemError> {
        let mut seen = rustc_hash::FxHashSet::default();
        for op in &self.ops {
            if !seen.insert(op.name.as_str()) {
                return Err(ProblemError::DuplicateName(op.name.clone()));
            }
        }
        seen.clear();
        for tensor in &self.tensors {
            if !seen.insert(tensor.name.as_str()) {
                return Err(ProblemError::DuplicateName(tensor.name.clone()));
            }
        }
        Ok(())
    }

    fn check_producers(&self) -> Result<(), ProblemError> {
        let mut found: TiVec<TensorId, Option<OpId>> = TiVec::from(vec![None; self.tensors.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for &tensor in &op.defines {
                if found[tensor].replace(id).is_some() {
                    return Err(ProblemError::WrongProducer(self.tensors[tensor].name.clone()));
                }
            }
        }
        for (tensor, &producer) in self.tensors.iter().zip(&found) {
            if tensor.producer != producer {
                return Err(ProblemError::WrongProducer(tensor.name.clone()));
            }
        }
        for (id, storage) in self.storages.iter_enumerated() {
            if self.tensors[storage.root].storage != id {
                return Err(ProblemError::WrongRoot(id.index()));
            }
        }
        Ok(())
    }

    /// Nothing is read twice, or before it is defined.
    fn check_reads(&self) -> Result<(), ProblemError> {
        let mut reader: TiVec<TensorId, Option<OpId>> = TiVec::from(vec![None; self.tensors.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for &read in &op.reads {
                let tensor = || self.tensors[read].name.clone();
                if self.tensors[read].producer.is_some_and(|producer| producer >= id) {
                    return Err(ProblemError::NotTopological {
                        op: op.name.clone(),
                        tensor: tensor(),
                    });
                }
                if reader[read].replace(id) == Some(id) {
                    return Err(ProblemError::RepeatedRead {
                        op: op.name.clone(),
                        tensor: tensor(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Memory that no op creates is the caller's or the session's, and every tensor in memory that an op creates is defined by an op.
    fn check_memory(&self) -> Result<(), ProblemError> {
        for storage in &self.storages {
            let root = &self.tensors[storage.root];
            if root.producer.is_none() && storage.role != StorageRole::External {
                return Err(ProblemError::NotExternal(root.name.clone()));
            }
        }
        for tensor in self.tensors.iter().filter(|tensor| tensor.producer.is_none()) {
            let root = &self.tensors[self.storages[tensor.storage].root];
            if let Some(creator) = root.producer {
                return Err(ProblemError::ViewWithoutProducer {
                    tensor: tensor.name.clone(),
                    root: root.name.clone(),
                    creator: self.ops[creator].name.clone(),
                });
            }
        }
        Ok(())
    }

    /// A result lies in memory that its op creates, or in that of something the op reads.
    fn check_views(&self) -> Result<(), ProblemError> {
        let mut reader: TiVec<StorageId, Option<OpId>> = TiVec::from(vec![None; self.storages.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for &read in &op.reads {
                reader[self.tensors[read].storage] = Some(id);
            }
            for &result in &op.defines {
                let tensor = &self.tensors[result];
                let root = &self.tensors[self.storages[tensor.storage].root];
                if root.producer != Some(id) && reader[tensor.storage] != Some(id) {
                    return Err(ProblemError::ViewOfStranger {
                        op: op.name.clone(),
                        tensor: tensor.name.clone(),
                        root: root.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Sums of sizes and durations are taken everywhere; that none overflows is checked once, here.
fn sum_fits(what: &'static str, mut values: impl Iterator<Item = u64>) -> Result<(), ProblemError> {
    let sum = values.try_fold(0u64, u64::checked_add);
    let fits = sum.is_some_and(|sum| i64::try_from(sum).is_ok());
    if fits {
        Ok(())
    } else {
        Err(ProblemError::Overflow(what))
    }
}
