//! What a node takes that runs subgraphs: If, Loop and Scan.
//!
//! A subgraph is a program of its own: it runs in an order of its own and reuses memory within one run of it. What passes its ends depends
//! on the node (`if.cc`, `loop.cc`, `scan_9.cc`, `scan_utils.cc`; compared with measured heaps in the tests):
//!
//! - *If* hands its results to the branch as memory to write to, before it runs where their shapes are known, else as they come;
//! - *Loop* gives every iteration fresh memory. What is carried stays until the next iteration is through, what is collected stays to the
//!   end; then all results are allocated and copied;
//! - *Scan* writes slices of its results. What it carries alternates between two buffers and ends in the result. Operands and results that
//!   are scanned along an axis other than the first are transposed in a copy.
//!
//! Where data decides which branch runs, the one that takes more counts.

use remat_ir::{Graph, OpId};
use remat_operators::Effect;
use rustc_hash::FxHashMap;

use crate::events::{Event, Inner, heap_bytes, most};
use crate::kernels::row;
use crate::pattern::Pattern;
use crate::program::{Body, Control};
use crate::steps::{Step, TENSOR_OBJECT, steps, tables};
use crate::{Allocation, Home, Node, NodeIndex, Program, Settings, Shape, ValueId};
use crate::{allocate, default_order, priority_order};

/// Bytes that op `op` of `graph` takes for its subgraphs at most, on top of operands and results; `None` if it runs none that are known.
/// `workspace` gives the bytes that the kernel of any other op holds while it runs.
#[must_use]
pub fn body_bytes(graph: &Graph, op: OpId, workspace: &dyn Fn(&Graph, OpId) -> u64) -> Option<u64> {
    let program = Program::of_op(graph, op, workspace);
    let of_bodies = bytes_by_body(&program, program.nodes.first()?)?;
    of_bodies.into_iter().max()
}

/// Bytes that `node` of `program` takes for each of its subgraphs, on top of operands and results; `None` if it runs none that are known, or if
/// one unfolds to too much.
#[must_use]
pub fn bytes_by_body(program: &Program, node: &Node) -> Option<Vec<u64>> {
    let results: Vec<ValueId> = node.results().collect();
    let of_value = |&value: &ValueId| result_bytes(program, value);
    let held = results.iter().map(of_value).fold(0, u64::saturating_add);
    let tapes = tapes(program, node, &results, Patterns::Off)?.into_iter();
    let bytes = tapes.map(|tape| {
        let peak = most(&tape.inner, 0, |value| result_bytes(program, value));
        (!tape.is_too_long).then(|| peak.saturating_sub(held))
    });
    bytes.collect()
}

/// Whether subgraphs take one block for all that they record. The runtime records what a subgraph takes when it runs it first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patterns {
    /// The memory pattern is off.
    Off,
    /// It is on, in the first run.
    FirstRun,
    /// It is on, in a later run.
    LaterRuns,
}

/// The steps of a run in execution order, with what happens in subgraphs.
pub(crate) fn steps_within(
    program: &Program,
    order: &[NodeIndex],
    allocation: &Allocation,
    patterns: Patterns,
) -> Vec<Step> {
    let mut steps = steps(program, order, allocation);
    for (step, &index) in steps.iter_mut().zip(order) {
        let node = &program.nodes[index];
        if row(node).effects == Effect::ControlFlow {
            step.inner = inner(program, node, &step.created, patterns);
            step.is_open = step.inner.as_ref().is_none_or(|inner| inner.is_open);
        }
    }
    steps
}

/// What `node` does to memory, whose results create the buffers `created`; `None` if it runs no subgraphs, or if they unfold to too much.
fn inner(program: &Program, node: &Node, created: &[ValueId], patterns: Patterns) -> Option<Inner> {
    let tapes = tapes(program, node, created, patterns)?;
    let peak = |tape: &Tape| most(&tape.inner, 0, |value| result_bytes(program, value));
    // Of branches that take the same, the first.
    let highest = tapes.into_iter().rev().max_by_key(peak)?;
    (!highest.is_too_long).then_some(highest.inner)
}

/// The same for each of its subgraphs, as if it were the one that runs.
fn tapes(program: &Program, node: &Node, created: &[ValueId], patterns: Patterns) -> Option<Vec<Tape>> {
    let control = node.control.as_ref()?;
    let bodies = match control {
        Control::If(branches) => branches.as_slice(),
        Control::Loop(body) | Control::Scan { body, .. } => std::slice::from_ref(body),
    };
    let tape = |body: &Body| {
        let mut tape = Tape::default();
        match control {
            Control::If(_) => tape.branch(node, body, patterns),
            Control::Loop(_) => tape.repeat(program, node, body, patterns),
            Control::Scan { .. } => tape.scan(program, node, control, body, patterns),
        }
        tape.finish(created);
        tape
    };
    Some(bodies.iter().map(tape).collect())
}

fn result_bytes(program: &Program, value: ValueId) -> u64 {
    heap_bytes(program.values[value].bytes.unwrap_or(0)).saturating_add(TENSOR_OBJECT)
}

/// One run of a subgraph, ready to be put on a tape.
struct Frame<'b> {
    body: &'b Body,
    patterns: Patterns,
    program: &'b Program,
    allocation: Allocation,
    steps: Vec<Step>,
    /// The block that all recorded results share.
    pattern: Option<Pattern>,
}

impl<'b> Frame<'b> {
    fn of(body: &'b Body, patterns: Patterns) -> Self {
        let program = &body.program;
        let order = if body.by_priority {
            priority_order(program)
        } else {
            default_order(program)
        };
        let allocation = allocate(program, &order, &Settings::default());
        let steps = steps_within(program, &order, &allocation, patterns);
        Self {
            body,
            patterns,
            program,
            // The runtime wants ranks of all that a subgraph reads; where shapes were made dynamic it still knows them.
            pattern: (patterns == Patterns::LaterRuns).then(|| Pattern::record(program, &allocation, &steps)),
            allocation,
            steps,
        }
    }

    /// How further iterations run, where they differ: of what this one took, they take one block.
    fn after_the_first(&self) -> Option<Self> {
        (self.patterns == Patterns::FirstRun).then(|| Self::of(self.body, Patterns::LaterRuns))
    }

    fn is_open(&self) -> bool {
        let made = self.steps.iter().flat_map(|step| &step.created);
        let sizes_are_missing = made
            .into_iter()
            .any(|&value| self.program.values[value].bytes.is_none());
        sizes_are_missing || self.steps.iter().any(|step| step.is_open)
    }
}

/// Where the outputs of a subgraph come from.
#[derive(Clone, Copy)]
enum Outputs<'o> {
    /// Memory that is there already.
    Given,
    /// Fresh memory, which outlives the run.
    Fresh,
    /// The memory of these results of the node, in the order of the outputs.
    Results(&'o [Option<ValueId>]),
}

/// Events as they are put together.
#[derive(Default)]
struct Tape {
    inner: Inner,
    is_too_long: bool,
}

impl Tape {
    /// Loops in loops multiply. No longer than that.
    const MOST_EVENTS: usize = 1 << 16;
    /// So many iterations stand for all.
    const MOST_ITERATIONS: u64 = 8;

    fn push(&mut self, event: Event) {
        self.is_too_long |= self.inner.events.len() >= Self::MOST_EVENTS;
        if !self.is_too_long {
            self.inner.events.push(event);
        }
    }

    fn take(&mut self, bytes: u64) -> usize {
        self.inner.pieces += 1;
        self.push(Event::Take(self.inner.pieces, bytes));
        self.inner.pieces
    }

    fn give(&mut self, pieces: impl IntoIterator<Item = usize>) {
        pieces.into_iter().for_each(|piece| self.push(Event::Give(piece)));
    }

    fn create(&mut self, results: impl IntoIterator<Item = ValueId>) {
        results.into_iter().for_each(|value| self.push(Event::Create(value)));
    }

    /// Leaves only buffers of `created` to be created, each once; those that did not come up come last.
    fn finish(&mut self, created: &[ValueId]) {
        let mut left = created.to_vec();
        self.inner.events.retain(|event| {
            let Event::Create(value) = event else { return true };
            let place = left.iter().position(|buffer| buffer == value);
            place.map(|place| left.remove(place)).is_some()
        });
        self.create(left);
    }

    fn branch(&mut self, node: &Node, body: &Body, patterns: Patterns) {
        let frame = Frame::of(body, patterns);
        for (&output, &result) in body.program.outputs.iter().zip(&node.outputs) {
            let is_known = match &body.program.values[output].visible {
                Shape::Known(dims) => dims.iter().all(|dim| dim.size().is_some()),
                Shape::Hidden => false,
            };
            self.create(result.filter(|_| is_known));
        }
        self.play(&frame, Outputs::Results(&node.outputs));
    }

    fn repeat(&mut self, program: &Program, node: &Node, body: &Body, patterns: Patterns) {
        // The first output says whether to go on.
        let carried = body.formals.saturating_sub(1).min(body.program.outputs.len());
        let (carried, collected) = body.program.outputs.split_at(carried);
        let trips = body
            .trips
            .or_else(|| Self::trips_of_results(program, node, body, collected));
        // Where the number is not known it takes two iterations to hold what is carried twice.
        let trips = trips.unwrap_or(2);
        let played = trips.min(Self::MOST_ITERATIONS);
        let first = Frame::of(body, patterns);
        let later = first.after_the_first();
        let later = later.as_ref().unwrap_or(&first);
        let (mut before, mut last, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..played {
            let done = std::mem::replace(&mut before, std::mem::take(&mut last));
            self.give(done);
            let mut fresh = self.play(if turn == 0 { &first } else { later }, Outputs::Fresh);
            let stands_for = trips / played + u64::from(turn < trips % played);
            for value in collected {
                kept.extend(fresh.remove(value));
                if stands_for > 1 {
                    let bytes = body.program.values[*value].bytes.unwrap_or(0);
                    kept.push(self.take(bytes.saturating_mul(stands_for - 1)));
                }
            }
            last = carried.iter().filter_map(|value| fresh.remove(value)).collect();
        }
        self.create(node.results());
        self.give(before.into_iter().chain(last).chain(kept));
    }

    /// How often a loop runs, as the sizes of what it collects say.
    fn trips_of_results(program: &Program, node: &Node, body: &Body, collected: &[ValueId]) -> Option<u64> {
        let results = node.outputs.iter().skip(body.formals.saturating_sub(2));
        let mut sizes = results.zip(collected).filter_map(|(result, output)| {
            let whole = program.values[(*result)?].bytes?;
            whole.checked_div(body.program.values[*output].bytes?)
        });
        sizes.next()
    }

    fn scan(&mut self, program: &Program, node: &Node, control: &Control, body: &Body, patterns: Patterns) {
        let Control::Scan {
            scanned,
            turned_operands,
            turned_results,
            ..
        } = control
        else {
            return;
        };
        let bytes = |values: &[Option<ValueId>], place: usize| {
            let value = values.get(place).copied().flatten();
            value.map_or(0, |value| program.values[value].bytes.unwrap_or(0))
        };
        let trips = body.trips.unwrap_or(u64::MAX);
        let mut held = Vec::new();
        for &place in turned_operands {
            held.push(self.take(bytes(&node.inputs, place)));
        }
        for (place, &result) in node.outputs.iter().enumerate() {
            if turned_results.contains(&place) {
                held.push(self.take(bytes(&node.outputs, place)));
            } else {
                self.create(result);
            }
        }
        let copies = trips.saturating_sub(1).min(2);
        for place in 0..body.formals.saturating_sub(*scanned) {
            for _ in 0..copies {
                held.push(self.take(bytes(&node.inputs, place)));
            }
        }
        let first = Frame::of(body, patterns);
        let later = first.after_the_first();
        let frames = [&first, later.as_ref().unwrap_or(&first)];
        for (_, frame) in (0..trips).zip(frames) {
            self.play(frame, Outputs::Given);
        }
        self.create(node.results());
        self.give(held);
    }

    /// Runs a subgraph once; gives the pieces of fresh outputs.
    fn play(&mut self, frame: &Frame<'_>, outputs: Outputs<'_>) -> FxHashMap<ValueId, usize> {
        self.inner.is_open |= frame.is_open();
        let mut run = FrameRun {
            frame,
            outputs,
            objects: tables(frame.program),
            pieces: FxHashMap::default(),
            fresh: FxHashMap::default(),
        };
        self.push(Event::Hold(run.objects));
        let block = frame.pattern.as_ref().map(|pattern| self.take(pattern.bytes()));
        for step in &frame.steps {
            run.step(self, step);
        }
        let mut left: Vec<usize> = run.pieces.into_values().chain(block).collect();
        left.sort_unstable();
        self.give(left);
        self.push(Event::Drop(run.objects));
        run.fresh
    }
}

/// A run of a subgraph on its way.
struct FrameRun<'f> {
    frame: &'f Frame<'f>,
    outputs: Outputs<'f>,
    /// Bytes of tables and of objects that describe tensors.
    objects: u64,
    pieces: FxHashMap<ValueId, usize>,
    fresh: FxHashMap<ValueId, usize>,
}

impl FrameRun<'_> {
    fn step(&mut self, tape: &mut Tape, step: &Step) {
        self.hold(tape, step.tables);
        match &step.inner {
            Some(inner) => {
                let before = tape.inner.pieces;
                tape.inner.pieces += inner.pieces;
                for &event in &inner.events {
                    match event {
                        Event::Create(value) => self.create(tape, value),
                        Event::Take(piece, bytes) => tape.push(Event::Take(before + piece, bytes)),
                        Event::Give(piece) => tape.push(Event::Give(before + piece)),
                        Event::Hold(_) | Event::Drop(_) => tape.push(event),
                    }
                }
            }
            None => {
                let pieces = if step.bypasses_arena || step.workspace == 0 {
                    0
                } else {
                    step.pieces
                };
                let piece = step.workspace / step.pieces.max(1);
                let mut taken: Vec<usize> = Vec::new();
                if step.workspace_first {
                    taken.extend((0..pieces).map(|_| tape.take(piece)));
                }
                step.created.iter().for_each(|&value| self.create(tape, value));
                if step.bypasses_arena {
                    tape.push(Event::Hold(step.workspace));
                    tape.push(Event::Drop(step.workspace));
                } else if !step.workspace_first {
                    taken.extend((0..pieces).map(|_| tape.take(piece)));
                }
                tape.give(taken);
            }
        }
        for value in &step.released {
            self.objects = self.objects.saturating_sub(TENSOR_OBJECT);
            tape.push(Event::Drop(TENSOR_OBJECT));
            tape.give(self.pieces.remove(value));
        }
    }

    fn hold(&mut self, tape: &mut Tape, bytes: u64) {
        self.objects = self.objects.saturating_add(bytes);
        tape.push(Event::Hold(bytes));
    }

    fn create(&mut self, tape: &mut Tape, value: ValueId) {
        self.hold(tape, TENSOR_OBJECT);
        let frame = self.frame;
        let bytes = frame.program.values[value].bytes.unwrap_or(0);
        match (frame.allocation.home[value], self.outputs) {
            (Home::Output, Outputs::Given) => {}
            (Home::Output, Outputs::Fresh) => {
                self.fresh.insert(value, tape.take(bytes));
            }
            (Home::Output, Outputs::Results(results)) => {
                let outputs = frame.program.outputs.iter().zip(results);
                tape.create(
                    outputs
                        .filter(|(output, _)| **output == value)
                        .filter_map(|(_, result)| *result),
                );
            }
            _ if frame.pattern.as_ref().is_some_and(|pattern| pattern.covers(value)) => {}
            _ => {
                self.pieces.insert(value, tape.take(bytes));
            }
        }
    }
}
