//! Where results live: the runtime's allocation planner for one stream.
//!
//! It walks the nodes in execution order and decides for each result, in this order: a graph output gets memory of its own;
//! views are the memory of their operand; kernels that may overwrite an operand do if the node is its last reader and both
//! look alike; then a dead buffer that looks alike is taken over; then memory is allocated. Two values look alike if the
//! *visible* shapes say so: elements of one size, equal ranks, every dimension the same number or the same name.
//!
//! Source: `onnxruntime/core/framework/allocation_planner.cc`.

use remat_ir::{Dim, ElementType};
use typed_index_collections::TiVec;

use crate::kernels::{alias, in_place};
use crate::{NodeIndex, Program, Shape, Value, ValueClass, ValueId, ValueKind};

/// What the user sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `enable_mem_reuse`: dead buffers are handed to later results. On by default.
    pub reuse: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { reuse: true }
    }
}

/// Where a value lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// Memory of the caller or of the session.
    External,
    /// Memory that is handed to the caller at the end.
    Output,
    /// The memory of this operand, under another shape.
    Alias(ValueId),
    /// The memory of this operand, overwritten.
    InPlace(ValueId),
    /// The memory of this value, which is dead by then.
    Reuse(ValueId),
    /// Memory of its own.
    Own,
}

/// Where all values live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Where each value lives.
    pub home: TiVec<ValueId, Home>,
    /// The value that created the memory each value lives in; itself, if it did.
    pub buffer: TiVec<ValueId, ValueId>,
}

/// Decides where the values of `program` live if its nodes run in `order`.
#[must_use]
pub fn allocate(program: &Program, order: &[NodeIndex], settings: &Settings) -> Allocation {
    let mut planner = Planner::new(program, *settings);
    for &node in order {
        planner.place(node);
        planner.release(node);
    }
    planner.allocation
}

struct Planner<'p> {
    program: &'p Program,
    settings: Settings,
    is_output: TiVec<ValueId, bool>,
    /// Readers that are still to come, by buffer; definitions, owners outside and the caller count as readers.
    uses: TiVec<ValueId, u32>,
    /// Dead buffers, the latest last.
    free: Vec<ValueId>,
    allocation: Allocation,
}

impl<'p> Planner<'p> {
    fn new(program: &'p Program, settings: Settings) -> Self {
        let mut uses: TiVec<ValueId, u32> = program
            .values
            .iter()
            .map(|value| u32::from(value.class != ValueClass::Intermediate))
            .collect();
        for value in program.nodes.iter().flat_map(|node| node.reads().chain(node.results())) {
            uses[value] += 1;
        }
        let mut is_output: TiVec<ValueId, bool> = TiVec::from(vec![false; program.values.len()]);
        for &output in &program.outputs {
            is_output[output] = true;
            uses[output] += 1;
        }
        Self {
            program,
            settings,
            is_output,
            uses,
            free: Vec::new(),
            allocation: Allocation {
                home: TiVec::from(vec![Home::External; program.values.len()]),
                buffer: program.values.keys().collect(),
            },
        }
    }

    /// Decides for all results of a node.
    fn place(&mut self, index: NodeIndex) {
        let node = &self.program.nodes[index];
        for (position, value) in node.outputs.iter().enumerate() {
            let Some(value) = *value else { continue };
            let home = self.home(node, position, value);
            if let Home::Alias(donor) | Home::InPlace(donor) | Home::Reuse(donor) = home {
                let buffer = self.allocation.buffer[donor];
                self.allocation.buffer[value] = buffer;
                self.uses[buffer] += self.uses[value];
            }
            self.allocation.home[value] = home;
        }
    }

    fn home(&mut self, node: &crate::Node, position: usize, value: ValueId) -> Home {
        let operand = |index: usize| node.inputs.get(index).copied().flatten();
        let tensor = self.program.values[value].kind == ValueKind::Tensor;
        if self.is_output[value] {
            return Home::Output;
        }
        if let Some(operand) = alias(node, position, tensor).and_then(operand) {
            return Home::Alias(operand);
        }
        if let Some(operand) = in_place(node, position).and_then(operand)
            && self.uses[self.allocation.buffer[operand]] == 1
            && self.alike(operand, value)
        {
            return Home::InPlace(operand);
        }
        if self.settings.reuse
            && tensor
            && let Some(found) = self.find_free(value)
        {
            return Home::Reuse(self.free.remove(found));
        }
        Home::Own
    }

    /// The position of the dead buffer that `value` takes over. Scalars take none, optional values give none.
    fn find_free(&self, value: ValueId) -> Option<usize> {
        match &self.program.values[value].visible {
            Shape::Known(dims) if !dims.is_empty() => {}
            Shape::Known(_) | Shape::Hidden => return None,
        }
        self.free.iter().rposition(|&candidate| {
            self.program.values[candidate].kind != ValueKind::Optional && self.alike(candidate, value)
        })
    }

    /// Whether the runtime knows that two values need equally much memory.
    fn alike(&self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (&self.program.values[a], &self.program.values[b]);
        let (Shape::Known(dims_a), Shape::Known(dims_b)) = (&a.visible, &b.visible) else {
            return false;
        };
        let same = |(a, b): (&Dim, &Dim)| match (a, b) {
            (Dim::Known(a), Dim::Known(b)) => a == b,
            (Dim::Symbol(a), Dim::Symbol(b)) => a == b && !a.is_empty(),
            _ => false,
        };
        let sizes = (element_bytes(a), element_bytes(b));
        matches!(sizes, (Some(a), Some(b)) if a == b)
            && dims_a.len() == dims_b.len()
            && dims_a.iter().zip(dims_b).all(same)
    }

    /// Gives up what nobody reads after this node: operands, then captures, then results.
    fn release(&mut self, index: NodeIndex) {
        let node = &self.program.nodes[index];
        for value in node.reads().chain(node.results()) {
            let buffer = self.allocation.buffer[value];
            self.uses[buffer] -= 1;
            if self.uses[buffer] == 0 {
                self.free.push(buffer);
            }
        }
    }
}

/// Bytes of one element in memory that can be handed on: none for strings, one for packed types.
fn element_bytes(value: &Value) -> Option<u64> {
    let element = value.element?;
    (element != ElementType::String).then(|| element.bits().div_ceil(8))
}
