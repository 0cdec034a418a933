//! When buffers come and go, node by node.
//!
//! A buffer exists from the node that creates it to the last node that reads a value living in it. One that no node reads
//! stays to the end of the run, as graph outputs do.

use rustc_hash::FxHashSet;
use typed_index_collections::TiVec;

use crate::events::Inner;
use crate::kernels::row;
use crate::{Allocation, Home, NodeIndex, Program, ValueClass, ValueId};

/// What a run keeps per value in tables of its own, from the start (measured).
const PER_VALUE: u64 = 28;
/// What it keeps per graph input (measured).
const PER_INPUT: u64 = 500;
/// The object that describes a tensor: one in memory of its own has it as long as the memory, any other to the end of the
/// run (measured).
pub(crate) const TENSOR_OBJECT: u64 = 204;

/// What one node does to memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Step {
    /// Objects of results that live in the memory of others, in bytes; they stay to the end of the run.
    pub(crate) tables: u64,
    /// Buffers that the node creates.
    pub(crate) created: Vec<ValueId>,
    /// Bytes the kernel holds while it runs.
    pub(crate) workspace: u64,
    /// In how many equal pieces.
    pub(crate) pieces: u64,
    /// Whether the kernel asks for them before it asks for its results.
    pub(crate) workspace_first: bool,
    /// Whether it does so on the plain heap, arena or not.
    pub(crate) bypasses_arena: bool,
    /// What happens meanwhile, where the node runs subgraphs that are known.
    pub(crate) inner: Option<Inner>,
    /// Whether the node runs subgraphs of which something is not known; that counts as nothing.
    pub(crate) is_open: bool,
    /// Buffers that are given back after the node.
    pub(crate) released: Vec<ValueId>,
}

/// The steps of a run in execution order, without what happens in subgraphs.
pub(crate) fn steps(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> Vec<Step> {
    let last_read = last_reads(program, order, allocation);
    let mut live: FxHashSet<ValueId> = FxHashSet::default();
    let mut steps = Vec::with_capacity(order.len());
    for (position, &index) in order.iter().enumerate() {
        let node = &program.nodes[index];
        let mut step = Step {
            workspace: node.workspace,
            pieces: row(node).pieces,
            workspace_first: row(node).workspace_first,
            bypasses_arena: row(node).on_heap,
            ..Step::default()
        };
        for value in node.results() {
            let buffer = allocation.buffer[value];
            if buffer != value {
                step.tables = step.tables.saturating_add(TENSOR_OBJECT);
            }
            // A buffer whose readers are through is gone; a result without readers that takes it over brings it back.
            if allocation.home[buffer] != Home::External && live.insert(buffer) {
                step.created.push(buffer);
            }
        }
        for value in node.reads() {
            let buffer = allocation.buffer[value];
            if last_read[buffer] == Some(position) && live.remove(&buffer) {
                step.released.push(buffer);
            }
        }
        steps.push(step);
    }
    steps
}

/// The position of the last reader, by buffer; `None`: stays to the end.
fn last_reads(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> TiVec<ValueId, Option<usize>> {
    let mut last_read = TiVec::from(vec![None; program.values.len()]);
    for (position, &node) in order.iter().enumerate() {
        for value in program.nodes[node].reads() {
            last_read[allocation.buffer[value]] = Some(position);
        }
    }
    for (value, home) in allocation.home.iter_enumerated() {
        if *home == Home::Output {
            last_read[value] = None;
        }
    }
    last_read
}

/// What a run holds before the first node.
pub(crate) fn tables(program: &Program) -> u64 {
    let inputs = program.values.iter().filter(|value| value.class == ValueClass::Input);
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let values = count(program.values.len()).saturating_mul(PER_VALUE);
    values.saturating_add(count(inputs.count()).saturating_mul(PER_INPUT))
}
