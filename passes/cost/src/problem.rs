//! From a graph and its profile to the problem that solvers see.

use remat_files::shown;
use remat_ir::{Graph, OpId, OpKind, StorageClass, StorageId};
use remat_operators::operator;
use remat_plan::{
    Accounting, AntiDependence, OrderMode, Problem, ProblemError, ProblemOp, ProblemStorage, ProblemTensor, StorageRole,
};
use rustc_hash::FxHashSet;
use thiserror::Error;
use typed_index_collections::TiVec;

use crate::list_names;
use crate::profile::{Profile, only_constants};

/// What a [`Problem`] is to be built for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProblemOptions {
    /// Which bytes count.
    pub accounting: Accounting,
    /// Whether first computes follow the reference order.
    pub order: OrderMode,
    /// How often one op may run at most; `None`: no limit.
    pub max_computes: Option<u32>,
    /// Sizes are rounded up to a multiple of this many bytes in runtime accounting; `None`: as the profile's device does.
    pub alignment: Option<u64>,
}

impl Default for ProblemOptions {
    /// Runtime accounting in free order, without limits.
    fn default() -> Self {
        Self {
            accounting: Accounting::Runtime,
            order: OrderMode::Free,
            max_computes: None,
            alignment: None,
        }
    }
}

/// Why no problem can be built from a graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProblemBuildError {
    /// The graph was rewritten already.
    #[error("op `{}` belongs to an earlier plan: start from the model before it was rewritten", shown(.0))]
    AlreadyRewritten(String),
    /// Results whose types leave their sizes open.
    #[error("the sizes of {count} tensors are not known: {}", list_names(.names))]
    UnknownSizes {
        /// How many there are.
        count: usize,
        /// Their names, in the order of the graph.
        names: Vec<String>,
    },
    /// The tables do not belong to this graph.
    #[error("the profile describes {profile} ops, the graph has {graph}")]
    OpCount {
        /// Ops in the profile.
        profile: usize,
        /// Ops in the graph.
        graph: usize,
    },
    /// A size does not fit 64 bits once it is rounded up.
    #[error("the aligned size of `{}` overflows 64 bits", shown(.0))]
    Overflow(String),
    /// The result would not be a valid problem.
    #[error(transparent)]
    Invalid(#[from] ProblemError),
}

/// The problem of scheduling `graph` at the costs of `profile`. Ops, tensors and storages keep their ids.
///
/// Graph inputs and constants are [`StorageRole::External`] in both accountings, and an op that only makes constants costs
/// nothing: the session evaluates it once. In runtime accounting storages that hold graph outputs are
/// [`StorageRole::LiveOut`], and so are those that no op reads: ONNX Runtime releases a buffer after its last reader, and one
/// without a reader at the end of the run (observed in 1.31.1). Sizes are aligned and kernels take their workspace. In paper
/// accounting nothing of this is the case. The budget is left open.
///
/// # Errors
/// [`ProblemBuildError`]; a size that nobody counts (that of a graph input, say) may be unknown.
pub fn problem(graph: &Graph, profile: &Profile, options: &ProblemOptions) -> Result<Problem, ProblemBuildError> {
    check_count(graph, profile.ops.len())?;
    let runtime = options.accounting == Accounting::Runtime;
    let alignment = if runtime {
        options.alignment.unwrap_or(profile.alignment)
    } else {
        1
    };
    let cost = |op: OpId| {
        let cost = &profile.ops[op];
        Cost {
            duration: cost.duration_ns,
            energy_pj: cost.energy_pj,
            workspace: if runtime { cost.workspace_bytes } else { 0 },
        }
    };
    build(graph, options, alignment, cost)
}

/// The problem of the papers for a graph that states its own durations: sizes as they are, no workspace, no storage kept,
/// reference order ([`Problem::order`] may be set afterwards).
///
/// # Errors
/// [`ProblemBuildError`].
pub fn paper_problem(graph: &Graph, durations: &TiVec<OpId, u64>) -> Result<Problem, ProblemBuildError> {
    check_count(graph, durations.len())?;
    let options = ProblemOptions {
        accounting: Accounting::Paper,
        order: OrderMode::Fixed,
        max_computes: None,
        alignment: None,
    };
    let cost = |op| Cost {
        duration: durations[op],
        ..Cost::default()
    };
    build(graph, &options, 1, cost)
}

fn check_count(graph: &Graph, profile: usize) -> Result<(), ProblemBuildError> {
    let graph = graph.ops.len();
    if profile == graph {
        Ok(())
    } else {
        Err(ProblemBuildError::OpCount { profile, graph })
    }
}

/// What one run of an op costs.
#[derive(Default)]
struct Cost {
    duration: u64,
    energy_pj: u64,
    workspace: u64,
}

fn build(
    graph: &Graph,
    options: &ProblemOptions,
    alignment: u64,
    cost: impl Fn(OpId) -> Cost,
) -> Result<Problem, ProblemBuildError> {
    if let Some(op) = graph.ops.iter().find(|op| op.kind != OpKind::Compute) {
        return Err(ProblemBuildError::AlreadyRewritten(op.name.clone()));
    }
    let roles = roles(graph, options.accounting);
    check_sizes(graph, &roles)?;
    let storages = graph.storages.iter_enumerated().map(|(id, storage)| {
        let bytes = storage.bytes.unwrap_or(0);
        let aligned = bytes.checked_next_multiple_of(alignment.max(1));
        Ok(ProblemStorage {
            root: storage.root,
            bytes: aligned.ok_or_else(|| ProblemBuildError::Overflow(graph.storage_name(id).to_owned()))?,
            role: roles[id],
        })
    });
    let storages = storages.collect::<Result<_, ProblemBuildError>>()?;
    let ops = graph.ops.iter_enumerated().map(|(id, op)| {
        let cost = if only_constants(graph, id) {
            Cost::default()
        } else {
            cost(id)
        };
        let mut seen = FxHashSet::default();
        ProblemOp {
            name: op.name.clone(),
            duration: cost.duration,
            energy_pj: cost.energy_pj,
            workspace: cost.workspace,
            recomputable: op.effects.recomputable(),
            reads: op.reads().filter(|&tensor| seen.insert(tensor)).collect(),
            defines: op.results().collect(),
        }
    });
    let tensors = graph.tensors.iter().map(|tensor| ProblemTensor {
        name: tensor.name.clone(),
        storage: tensor.storage,
        producer: tensor.producer,
    });
    let problem = Problem {
        name: graph.name.clone(),
        accounting: options.accounting,
        order: options.order,
        max_computes: options.max_computes,
        budget: None,
        paging: None,
        objective: remat_plan::Objective::Time,
        deadline: None,
        anti_dependences: anti_dependences(graph),
        ops: ops.collect(),
        tensors: tensors.collect(),
        storages,
    };
    problem.validate()?;
    Ok(problem)
}

/// Whoever reads what an op writes to in place never runs after that op, unless it stands behind it in the graph.
///
/// An op that writes is a reader too, and runs once: readers before it need no pair with those that write after it.
fn anti_dependences(graph: &Graph) -> Vec<AntiDependence> {
    let mut readers: TiVec<StorageId, Vec<OpId>> = TiVec::from(vec![Vec::new(); graph.storages.len()]);
    let mut pairs = Vec::new();
    for (after, op) in graph.ops.iter_enumerated() {
        if !op.effects.recomputable() {
            let updates = operator(&op.domain, &op.op_type).updates;
            let written = op
                .inputs
                .iter()
                .enumerate()
                .filter(|&(place, _)| updates.includes(place));
            for &tensor in written.filter_map(|(_, tensor)| tensor.as_ref()) {
                let before = std::mem::take(&mut readers[graph.tensors[tensor].storage]);
                pairs.extend(before.into_iter().map(|before| AntiDependence { before, after }));
            }
        }
        for tensor in op.reads() {
            let readers = &mut readers[graph.tensors[tensor].storage];
            if readers.last() != Some(&after) {
                readers.push(after);
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn roles(graph: &Graph, accounting: Accounting) -> TiVec<StorageId, StorageRole> {
    let role = |storage: &remat_ir::Storage| match storage.class {
        StorageClass::Input | StorageClass::Constant => StorageRole::External,
        StorageClass::Intermediate => StorageRole::Transient,
    };
    let mut roles: TiVec<StorageId, StorageRole> = graph.storages.iter().map(role).collect();
    if accounting == Accounting::Paper {
        return roles;
    }
    let mut stays: TiVec<StorageId, bool> = TiVec::from(vec![true; graph.storages.len()]);
    for tensor in graph.ops.iter().flat_map(remat_ir::Op::reads) {
        stays[graph.tensors[tensor].storage] = false;
    }
    for &output in &graph.outputs {
        stays[graph.tensors[output].storage] = true;
    }
    for (role, stays) in roles.iter_mut().zip(stays) {
        if *role == StorageRole::Transient && stays {
            *role = StorageRole::LiveOut;
        }
    }
    roles
}

/// Sizes must be known where they count.
fn check_sizes(graph: &Graph, roles: &TiVec<StorageId, StorageRole>) -> Result<(), ProblemBuildError> {
    let unknown = |&(id, storage): &(StorageId, &remat_ir::Storage)| {
        storage.bytes.is_none() && roles[id] != StorageRole::External
    };
    let names: Vec<String> = graph
        .storages
        .iter_enumerated()
        .filter(unknown)
        .map(|(id, _)| graph.storage_name(id).to_owned())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let count = names.len();
    Err(ProblemBuildError::UnknownSizes { count, names })
}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
