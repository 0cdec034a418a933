//! Where results live: the runtime's allocation planner for one stream.
//!
//! It walks the nodes in execution order and decides for each result, in this order: a graph output gets memory of its own;
//! views are the memory of their operand; kernels that may overwrite an operand do if the node is its last reader and both
//! look alike; then a dead buffer that looks alike is taken over; then memory is allocated. Two values look alike if the
//! *visible* shapes say so: elements of one size, equal ranks, every dimension the same number or the same name.
//!
//! Source: `onnxruntime/core/framework/allocation_planner.cc`.

use remat_ir::{Dim, ElementType};
use rustc_hash::FxHashMap;
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
    /// Which values look alike; `None`: like no other, not even itself.
    likeness: TiVec<ValueId, Option<Likeness>>,
    /// Dead buffers by likeness, the latest last.
    free: Vec<Vec<ValueId>>,
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
        let (likeness, classes) = likeness(program);
        Self {
            program,
            settings,
            is_output,
            uses,
            likeness,
            free: vec![Vec::new(); classes],
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
            && self.likeness[operand].is_some()
            && self.likeness[operand] == self.likeness[value]
        {
            return Home::InPlace(operand);
        }
        if self.settings.reuse
            && tensor
            && !is_scalar(&self.program.values[value])
            && let Some(Likeness(class)) = self.likeness[value]
            && let Some(donor) = self.free[class].pop()
        {
            return Home::Reuse(donor);
        }
        Home::Own
    }

    /// Frees what nobody reads after this node: operands, then captures, then results.
    fn release(&mut self, index: NodeIndex) {
        let node = &self.program.nodes[index];
        for value in node.reads().chain(node.results()) {
            let buffer = self.allocation.buffer[value];
            self.uses[buffer] -= 1;
            let optional = self.program.values[buffer].kind == ValueKind::Optional;
            if self.uses[buffer] == 0
                && !optional
                && let Some(Likeness(class)) = self.likeness[buffer]
            {
                self.free[class].push(buffer);
            }
        }
    }
}

/// Values of one likeness need equally much memory, and the runtime knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Likeness(usize);

/// The likeness of every value, and how many there are.
fn likeness(program: &Program) -> (TiVec<ValueId, Option<Likeness>>, usize) {
    let mut classes: FxHashMap<(u64, &[Dim]), usize> = FxHashMap::default();
    let mut of = |value| {
        let (bytes, dims) = look(value)?;
        let next = classes.len();
        Some(Likeness(*classes.entry((bytes, dims)).or_insert(next)))
    };
    let likeness = program.values.iter().map(&mut of).collect();
    (likeness, classes.len())
}

/// What likeness goes by: bytes of an element, and dimensions each of which has a value or a name.
fn look(value: &Value) -> Option<(u64, &[Dim])> {
    let Shape::Known(dims) = &value.visible else {
        return None;
    };
    let stated = |dim: &Dim| match dim {
        Dim::Known(_) | Dim::Free { .. } => true,
        Dim::Symbol(name) => !name.is_empty(),
        Dim::Unknown => false,
    };
    let bytes = element_bytes(value)?;
    dims.iter().all(stated).then_some((bytes, dims))
}

fn is_scalar(value: &Value) -> bool {
    matches!(&value.visible, Shape::Known(dims) if dims.is_empty())
}

/// Bytes of one element in memory that can be handed on: none for strings, one for packed types.
fn element_bytes(value: &Value) -> Option<u64> {
    let element = value.element?;
    (element != ElementType::String).then(|| element.bits().div_ceil(8))
}
