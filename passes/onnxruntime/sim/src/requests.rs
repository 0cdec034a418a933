//! What a run asks an allocator for that keeps nothing: each buffer when a node creates it, until its last reader is through.

use std::collections::HashMap;

use crate::arena::BufferLife;
use crate::control::{Patterns, steps_within};
use crate::events::Event;
use crate::kernels::row;
use crate::{Allocation, NodeIndex, Program, ValueId};

/// The requests of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// In the order in which they are made.
    pub buffers: Vec<BufferLife>,
    /// The time at the end of the run.
    pub end: u64,
    /// Values with memory of their own whose size is not known: they are left out.
    pub unsized_values: Vec<ValueId>,
    /// Nodes that run subgraphs of which something is not known: that is left out.
    pub open_nodes: Vec<NodeIndex>,
    /// How many nodes are convolutions, whose kernels may work in much more than their operands and results.
    pub convolutions: usize,
}

/// The requests of a run without memory pattern and without what kernels work in. `before` are bytes that are requested before the first node and live
/// to the end. `order` and `allocation` are as for [`heap`](crate::heap()).
#[must_use]
pub fn requests(program: &Program, order: &[NodeIndex], allocation: &Allocation, before: &[u64]) -> Requests {
    let is_convolution = |&&node: &&NodeIndex| row(&program.nodes[node]).cost.is_convolution();
    let mut found = Requests {
        convolutions: order.iter().filter(is_convolution).count(),
        ..Requests::default()
    };
    let mut live: HashMap<ValueId, usize> = HashMap::new();
    before.iter().for_each(|&bytes| _ = found.take(bytes));
    let inputs = found.buffers.len();
    for (position, step) in steps_within(program, order, allocation, Patterns::Off)
        .iter()
        .enumerate()
    {
        if step.is_open {
            found.open_nodes.push(order[position]);
        }
        let mut create = |found: &mut Requests, value: ValueId| {
            match program.values[value].bytes {
                Some(bytes) => live.extend(found.take(bytes).map(|buffer| (value, buffer))),
                None => found.unsized_values.push(value),
            };
        };
        match &step.inner {
            None => step.created.iter().for_each(|&value| create(&mut found, value)),
            Some(inner) => {
                let mut pieces: HashMap<usize, usize> = HashMap::new();
                for event in &inner.events {
                    match *event {
                        Event::Take(piece, bytes) => {
                            pieces.extend(found.take(bytes).map(|buffer| (piece, buffer)));
                        }
                        Event::Give(piece) => found.give(pieces.remove(&piece)),
                        Event::Create(value) => create(&mut found, value),
                        Event::Hold(_) | Event::Drop(_) => {}
                    }
                }
            }
        }
        for value in &step.released {
            found.give(live.remove(value));
        }
    }
    // What nobody reads goes with the run; the caller gets the outputs.
    let is_output = |value: ValueId| program.outputs.iter().any(|&output| allocation.buffer[output] == value);
    let mut rest: Vec<usize> = live
        .iter()
        .filter(|&(&value, _)| !is_output(value))
        .map(|(_, &buffer)| buffer)
        .collect();
    rest.sort_unstable();
    rest.extend(0..inputs);
    rest.into_iter().for_each(|buffer| found.give(Some(buffer)));
    found
}

impl Requests {
    /// The number of a buffer; of nothing nothing is requested.
    fn take(&mut self, bytes: u64) -> Option<usize> {
        if bytes == 0 {
            return None;
        }
        self.buffers.push(BufferLife {
            bytes,
            first: self.end,
            last: None,
        });
        self.end += 1;
        Some(self.buffers.len() - 1)
    }

    fn give(&mut self, buffer: Option<usize>) {
        if let Some(buffer) = buffer.and_then(|buffer| self.buffers.get_mut(buffer)) {
            buffer.last = Some(self.end);
            self.end += 1;
        }
    }
}
