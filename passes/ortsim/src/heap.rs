//! Bytes on the heap while the nodes run, memory arena off.
//!
//! A buffer exists from the node that creates it to the last node that reads a value living in it. One that no node reads
//! stays to the end of the run, as graph outputs do.

use rustc_hash::FxHashSet;
use typed_index_collections::TiVec;

use crate::{Allocation, Home, NodeIndex, Program, ValueClass, ValueId};

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
}

/// Bytes on the heap for a tensor of `bytes` bytes: whole cache lines, and what the C library keeps beside them; an empty
/// tensor takes none.
#[must_use]
pub fn heap_bytes(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    bytes.div_ceil(64).saturating_mul(64).saturating_add(8)
}

/// What a run keeps per value in tables of its own, from the start (measured).
const PER_VALUE: u64 = 28;
/// What it keeps per graph input (measured).
const PER_INPUT: u64 = 500;
/// The object that describes a tensor; one in memory of its own has it as long as the memory, any other to the end of the run
/// (measured).
const TENSOR_OBJECT: u64 = 204;

/// When buffers come and go.
struct Lives {
    /// Position of the last reader, by buffer; `None`: stays to the end.
    last_read: TiVec<ValueId, Option<usize>>,
}

impl Lives {
    fn new(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> Self {
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
        Self { last_read }
    }
}

/// Replays `order` with the buffers of `allocation`. `order` holds every node once, as the functions of this crate give it.
#[must_use]
pub fn heap(program: &Program, order: &[NodeIndex], allocation: &Allocation) -> Trace {
    let lives = Lives::new(program, order, allocation);
    let bytes = |value: ValueId| heap_bytes(program.values[value].bytes.unwrap_or(0));
    let mut trace = Trace::default();
    let mut live: FxHashSet<ValueId> = FxHashSet::default();
    let mut held = tables(program);
    for (position, &index) in order.iter().enumerate() {
        let node = &program.nodes[index];
        for value in node.results() {
            // A buffer whose readers are through is gone; a result without readers that takes it over brings it back.
            let buffer = allocation.buffer[value];
            if buffer != value {
                held = held.saturating_add(TENSOR_OBJECT);
            }
            if allocation.home[buffer] != Home::External && live.insert(buffer) {
                held = held.saturating_add(bytes(buffer)).saturating_add(TENSOR_OBJECT);
                if program.values[buffer].bytes.is_none() {
                    trace.unsized_values.push(buffer);
                }
            }
        }
        let during = held.saturating_add(node.workspace);
        if trace.peak_at.is_none() || during > trace.peak {
            trace.peak = during;
            trace.peak_at = Some(position);
            trace.live_at_peak = sorted(&live);
        }
        for value in node.reads() {
            let buffer = allocation.buffer[value];
            if lives.last_read[buffer] == Some(position) && live.remove(&buffer) {
                held = held.saturating_sub(bytes(buffer)).saturating_sub(TENSOR_OBJECT);
            }
        }
        trace.during.push(during);
        trace.after.push(held);
    }
    trace
}

/// What the run holds before the first node.
fn tables(program: &Program) -> u64 {
    let inputs = program
        .values
        .iter()
        .filter(|value| value.class == ValueClass::Input)
        .count();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    count(program.values.len())
        .saturating_mul(PER_VALUE)
        .saturating_add(count(inputs).saturating_mul(PER_INPUT))
}

fn sorted(live: &FxHashSet<ValueId>) -> Vec<ValueId> {
    let mut values: Vec<ValueId> = live.iter().copied().collect();
    values.sort_unstable();
    values
}
