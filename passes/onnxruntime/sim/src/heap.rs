//! Bytes on the heap while the nodes run, memory arena off.

use rustc_hash::FxHashSet;

use crate::control::{Patterns, steps_within};
use crate::events::{heap_bytes, most};
use crate::steps::{Step, TENSOR_OBJECT, tables};
use crate::{Allocation, NodeIndex, Program, ValueId};

/// What the heap holds over time. Positions are those of the execution order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The most bytes held at once.
    pub peak: u64,
    /// The position at which they are first held; `None` for an empty program.
    pub peak_at: Option<usize>,
    /// Bytes held while each node runs, its workspace included.
    pub during: Vec<u64>,
    /// Bytes held after each node.
    pub after: Vec<u64>,
    /// Values that created the buffers held at the peak, in the order of their ids.
    pub live_at_peak: Vec<ValueId>,
    /// Values that take memory of their own whose size is not known; they count as nothing.
    pub unsized_values: Vec<ValueId>,
    /// Nodes that run subgraphs of which something is not known: it counts as nothing.
    pub open_nodes: Vec<NodeIndex>,
}

/// Replays `order` with the buffers of `allocation`. `order` holds every node once, as the functions of this crate give it.
#[must_use]
pub fn heap(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> Trace {
    let bytes = |value: ValueId| {
        let tensor = heap_bytes(program.values[value].bytes.unwrap_or(0));
        tensor.saturating_add(TENSOR_OBJECT)
    };
    let mut trace = Trace::default();
    let mut held = tables(program);
    let steps = steps_within(program, order, allocation, Patterns::Off);
    for (position, step) in steps.iter().enumerate() {
        held = held.saturating_add(step.tables);
        if step.is_open {
            trace.open_nodes.push(order[position]);
        }
        let before = held;
        for &value in &step.created {
            held = held.saturating_add(bytes(value));
            if program.values[value].bytes.is_none() {
                trace.unsized_values.push(value);
            }
        }
        let during = match &step.inner {
            Some(inner) => most(inner, before, bytes),
            None => held.saturating_add(step.workspace),
        };
        if trace.peak_at.is_none() || during > trace.peak {
            trace.peak = during;
            trace.peak_at = Some(position);
        }
        for &value in &step.released {
            held = held.saturating_sub(bytes(value));
        }
        trace.during.push(during);
        trace.after.push(held);
    }
    trace.live_at_peak = trace
        .peak_at
        .map_or_else(Vec::new, |position| live_at(&steps, position));
    trace
}

/// What is live while the node at `position` runs.
fn live_at(steps: &[Step], position: usize) -> Vec<ValueId> {
    let mut live: FxHashSet<ValueId> = FxHashSet::default();
    for step in &steps[..position] {
        live.extend(&step.created);
        for value in &step.released {
            live.remove(value);
        }
    }
    live.extend(&steps[position].created);
    let mut values: Vec<ValueId> = live.into_iter().collect();
    values.sort_unstable();
    values
}
