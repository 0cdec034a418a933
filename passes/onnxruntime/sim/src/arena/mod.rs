//! Bytes the memory arena of the CPU provider takes from the system, when it is left on.
//!
//! Results, graph outputs and kernel workspace come out of regions that the arena never gives back while the session lives.
//! With the memory pattern on, the first run records sizes and lives of all results that no graph output and no scalar
//! needs, and later runs of the same input shapes take one block for all of them.
//!
//! Source: `bfc_arena.cc`, `execution_frame.cc`, `mem_pattern_planner.h`.

mod bfc;
mod replay;
mod settings;

use std::collections::BTreeMap;

use bfc::{Bfc, Chunk};
pub use replay::{BufferLife, Replayed, lowest_first_region, most_bytes, replay};
pub use settings::{ArenaSettings, Growth, RegionOrder};

use crate::control::{Patterns, steps_within};
use crate::events::{Event, Inner};
use crate::kernels::row;
use crate::pattern::Pattern;
use crate::steps::{Step, TENSOR_OBJECT, tables};
use crate::{Allocation, Home, NodeIndex, Program, Shape, ValueClass, ValueId};

/// What the arena takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArenaTrace {
    /// Bytes held by the arena once the session is loaded.
    pub loaded: u64,
    /// Bytes held by the arena after the first run.
    pub first_run: u64,
    /// Bytes held by the arena after any number of runs.
    pub steady: u64,
    /// Heap peak of the first run over what the loaded session holds: the arena and what the run keeps beside it.
    pub first_peak: u64,
    /// Heap peak of later runs.
    pub steady_peak: u64,
    /// The block of the memory pattern; 0 with the pattern off.
    pub pattern_block: u64,
}

impl ArenaTrace {
    /// The larger of each figure.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            loaded: self.loaded.max(other.loaded),
            first_run: self.first_run.max(other.first_run),
            steady: self.steady.max(other.steady),
            first_peak: self.first_peak.max(other.first_peak),
            steady_peak: self.steady_peak.max(other.steady_peak),
            pattern_block: self.pattern_block.max(other.pattern_block),
        }
    }
}

/// The most that [`arena`] takes wherever the regions lie, with everything else as in `settings`: a chunk more or less in a region
/// can make the difference of a region of twice the size. `None` where `is_over`, which is asked before each run, says so.
#[must_use]
pub fn arena_anywhere(
    program: &Program,
    order: &[NodeIndex],
    allocation: &Allocation,
    settings: &ArenaSettings,
    is_over: &dyn Fn() -> bool,
) -> Option<ArenaTrace> {
    let mut traces = RegionOrder::ALL.into_iter().map(|regions| {
        let settings = ArenaSettings { regions, ..*settings };
        runs(program, order, allocation, &settings, is_over)
    });
    traces.try_fold(ArenaTrace::default(), |most, trace| Some(most.max(trace?)))
}

/// Runs the program until the arena grows no more. `order` and `allocation` are as for [`heap`](crate::heap()).
#[must_use]
pub fn arena(program: &Program, order: &[NodeIndex], allocation: &Allocation, settings: &ArenaSettings) -> ArenaTrace {
    runs(program, order, allocation, settings, &|| false).unwrap_or_default()
}

/// The same; `None` where `is_over`, which is asked before each run, says so.
fn runs(
    program: &Program,
    order: &[NodeIndex],
    allocation: &Allocation,
    settings: &ArenaSettings,
    is_over: &dyn Fn() -> bool,
) -> Option<ArenaTrace> {
    if is_over() {
        return None;
    }
    /// Fragmentation settles within a few runs.
    const MOST_RUNS: usize = 8;
    let early: Vec<ValueId> = if settings.in_branch {
        made_before_a_branch(program, allocation).collect()
    } else {
        Vec::new()
    };
    let run = |patterns| {
        let mut steps = steps_within(program, order, allocation, patterns);
        for step in &mut steps {
            step.created.retain(|value| !early.contains(value));
        }
        let at_first = taken_by_a_branch(early.iter().map(|&value| program.values[value].bytes.unwrap_or(0)));
        Run {
            program,
            steps,
            at_first: if settings.in_branch { at_first } else { Vec::new() },
        }
    };
    let mut run_later = None;
    let first = if settings.pattern {
        // Only subgraphs make a difference.
        if program.nodes.iter().any(|node| node.control.is_some()) {
            run_later = Some(run(Patterns::LaterRuns));
        }
        run(Patterns::FirstRun)
    } else {
        run(Patterns::Off)
    };
    let later = run_later.as_ref().unwrap_or(&first);
    let mut arena = Bfc::new(settings);
    for bytes in packed(program) {
        arena.alloc(bytes);
    }
    let mut trace = ArenaTrace {
        loaded: arena.held(),
        first_peak: first.once(&mut arena, None),
        first_run: arena.held(),
        ..ArenaTrace::default()
    };
    let pattern = settings
        .pattern
        .then(|| Pattern::record(program, allocation, &first.steps));
    trace.pattern_block = pattern.as_ref().map_or(0, Pattern::bytes);
    for _ in 0..MOST_RUNS {
        if is_over() {
            return None;
        }
        let before = arena.held();
        trace.steady_peak = later.once(&mut arena, pattern.as_ref());
        if arena.held() == before {
            break;
        }
    }
    trace.steady = arena.held();
    trace.first_peak = trace.first_peak.saturating_sub(trace.loaded);
    trace.steady_peak = trace.steady_peak.saturating_sub(trace.loaded);
    Some(trace)
}

/// Graph outputs that are there before a branch runs in which all nodes stand: those whose shapes the runtime knows when it loads the file, in order.
fn made_before_a_branch<'p>(program: &'p Program, allocation: &'p Allocation) -> impl Iterator<Item = ValueId> + 'p {
    let is_known = |value: ValueId| {
        let shape = &program.values[value].visible;
        matches!(shape, Shape::Known(dims) if dims.iter().all(|dim| dim.size().is_some()))
    };
    let outputs = program.outputs.iter().copied();
    outputs.filter(move |&output| allocation.home[output] == Home::Output && is_known(output))
}

/// What is taken to the end of a run before the first node of such a branch runs: the condition and what the branch captures, these outputs, and what is
/// made of the capture.
fn taken_by_a_branch(outputs: impl Iterator<Item = u64>) -> Vec<u64> {
    [1, 1].into_iter().chain(outputs).chain([8]).collect()
}

/// Bytes of copies of weights that kernels make at load, for good.
fn packed(program: &Program) -> impl Iterator<Item = u64> + '_ {
    program.nodes.iter().filter_map(|node| {
        let operand = row(node).packs?;
        let weight = &program.values[node.inputs.get(operand).copied().flatten()?];
        (weight.class == ValueClass::Initializer).then_some(weight.bytes.unwrap_or(0))
    })
}

struct Run<'p> {
    program: &'p Program,
    steps: Vec<Step>,
    /// Bytes that are taken before the first node and given back at the end.
    at_first: Vec<u64>,
}

impl Run<'_> {
    /// Runs once; gives the most bytes that the arena and the tables of the run hold at once. All memory of the run is given
    /// back at its end.
    fn once(&self, arena: &mut Bfc, pattern: Option<&Pattern>) -> u64 {
        let mut chunks: BTreeMap<ValueId, Chunk> = BTreeMap::new();
        let block = pattern.and_then(|pattern| arena.alloc(pattern.bytes()));
        let at_first: Vec<Chunk> = self.at_first.iter().filter_map(|&bytes| arena.alloc(bytes)).collect();
        let mut tables = tables(self.program);
        let mut peak = arena.held().saturating_add(tables);
        for step in &self.steps {
            tables = tables.saturating_add(step.tables);
            let create = |arena: &mut Bfc, value: ValueId| {
                let is_apart = pattern.is_none_or(|pattern| !pattern.covers(value));
                let bytes = self.program.values[value].bytes.unwrap_or(0);
                is_apart.then(|| arena.alloc(bytes)).flatten()
            };
            let objects = TENSOR_OBJECT.saturating_mul(u64::try_from(step.created.len()).unwrap_or(u64::MAX));
            tables = tables.saturating_add(objects);
            let mut beside = tables;
            if let Some(inner) = &step.inner {
                let within = inside(arena, inner, |arena, value| {
                    chunks.extend(create(arena, value).map(|chunk| (value, chunk)));
                });
                beside = beside.saturating_add(within);
            } else {
                let piece = step.workspace / step.pieces.max(1);
                let workspace = |arena: &mut Bfc| -> Vec<Chunk> {
                    let pieces = if step.bypasses_arena { 0 } else { step.pieces };
                    (0..pieces).filter_map(|_| arena.alloc(piece)).collect()
                };
                let mut taken = Vec::new();
                if step.workspace_first {
                    taken = workspace(arena);
                }
                for &value in &step.created {
                    chunks.extend(create(arena, value).map(|chunk| (value, chunk)));
                }
                if !step.workspace_first {
                    taken = workspace(arena);
                }
                if step.bypasses_arena {
                    beside = beside.saturating_add(step.workspace);
                }
                for chunk in taken {
                    arena.free(chunk);
                }
            }
            peak = peak.max(arena.held().saturating_add(beside));
            for value in &step.released {
                tables = tables.saturating_sub(TENSOR_OBJECT);
                if let Some(chunk) = chunks.remove(value) {
                    arena.free(chunk);
                }
            }
        }
        for chunk in chunks.into_values().chain(at_first).chain(block) {
            arena.free(chunk);
        }
        peak
    }
}

/// Runs the subgraphs of a node; gives the most bytes of tables beside the arena. `create` makes a result of the node.
fn inside(arena: &mut Bfc, inner: &Inner, mut create: impl FnMut(&mut Bfc, ValueId)) -> u64 {
    let mut pieces: BTreeMap<usize, Chunk> = BTreeMap::new();
    let (mut tables, mut most) = (0_u64, 0_u64);
    for event in &inner.events {
        match *event {
            Event::Take(piece, bytes) => pieces.extend(arena.alloc(bytes).map(|chunk| (piece, chunk))),
            Event::Give(piece) => {
                if let Some(chunk) = pieces.remove(&piece) {
                    arena.free(chunk);
                }
            }
            Event::Hold(bytes) => tables = tables.saturating_add(bytes),
            Event::Drop(bytes) => tables = tables.saturating_sub(bytes),
            Event::Create(value) => create(arena, value),
        }
        most = most.max(tables);
    }
    most
}
