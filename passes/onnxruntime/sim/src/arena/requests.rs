//! What a program asks the arena for, in a form that is quickly put in another order.

use super::bfc::{Bfc, Chunk, GRAIN, region, table};
use super::settings::{ArenaSettings, RegionOrder};
use super::{made_before_a_branch, packed, taken_by_a_branch};
use crate::kernels::row;
use crate::{Allocation, Home, NodeIndex, Program, ValueId};

/// What nodes ask the arena for. They come in units, each of which runs as it stands; units can be put in any order in which each one comes
/// after those that it reads from.
///
/// Where results live is decided once, for the order in which the units are given; subgraphs do not count.
#[derive(Clone, Debug)]
pub struct Requests {
    units: Vec<Vec<Ask>>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    buffers: Vec<Buffer>,
    /// What kernels keep from load on.
    kept: Vec<u64>,
    /// Buffers that are there before the first unit where the units stand in a branch.
    at_first: Vec<usize>,
}

/// What one node asks for.
#[derive(Clone, Debug)]
struct Ask {
    created: Vec<usize>,
    /// Buffers that it reads, each once.
    read: Vec<usize>,
    workspace: u64,
    /// Bytes of each piece of that which comes out of the arena, and how many there are.
    piece: u64,
    pieces: u64,
    workspace_first: bool,
}

#[derive(Clone, Copy, Default, Debug)]
struct Buffer {
    bytes: u64,
    /// How many nodes read it.
    readers: u32,
    /// Whether it is handed to the caller.
    is_output: bool,
}

/// Where each buffer is while a program runs.
struct Live {
    readers: Vec<u32>,
    chunks: Vec<Option<Chunk>>,
    /// Whether it is there before the first unit.
    is_early: Vec<bool>,
}

impl Requests {
    /// The requests of `units`, which stand in execution order; results live as `allocation` says. Of each pair in `keeps`, the first unit is to
    /// stay before the second one.
    #[must_use]
    pub fn new(program: &Program, allocation: &Allocation, units: &[Vec<NodeIndex>], keeps: &[(usize, usize)]) -> Self {
        let mut buffers: Vec<Buffer> = vec![Buffer::default(); program.values.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); buffers.len()];
        let mut producers: Vec<Option<usize>> = vec![None; buffers.len()];
        let mut edges: Vec<(usize, usize)> = keeps.to_vec();
        let mut asks: Vec<Vec<Ask>> = Vec::with_capacity(units.len());
        for (unit, nodes) in units.iter().enumerate() {
            let ask = |&index: &NodeIndex| {
                let node = &program.nodes[index];
                let mut created = Vec::new();
                for value in node.results() {
                    let buffer = allocation.buffer[value];
                    if buffer != value && matches!(allocation.home[value], Home::Reuse(_) | Home::InPlace(_)) {
                        // Others are through with the memory that it takes over.
                        edges.extend(readers[buffer.index()].iter().map(|&reader| (reader, unit)));
                    }
                    if allocation.home[buffer] != Home::External && buffer == value {
                        created.push(buffer.index());
                        buffers[buffer.index()].bytes = program.values[buffer].bytes.unwrap_or(0);
                        buffers[buffer.index()].is_output = allocation.home[buffer] == Home::Output;
                    }
                    producers[value.index()] = Some(unit);
                }
                let mut read: Vec<usize> = Vec::new();
                for value in node.reads() {
                    edges.extend(producers[value.index()].map(|producer| (producer, unit)));
                    let buffer: ValueId = allocation.buffer[value];
                    if allocation.home[buffer] != Home::External && !read.contains(&buffer.index()) {
                        read.push(buffer.index());
                        buffers[buffer.index()].readers += 1;
                        readers[buffer.index()].push(unit);
                    }
                }
                let pieces = if row(node).on_heap { 0 } else { row(node).pieces };
                Ask {
                    created,
                    read,
                    workspace: node.workspace,
                    piece: node.workspace / row(node).pieces.max(1),
                    pieces,
                    workspace_first: row(node).workspace_first,
                }
            };
            asks.push(nodes.iter().map(ask).collect());
        }
        let (mut before, mut after) = (vec![Vec::new(); units.len()], vec![Vec::new(); units.len()]);
        edges.sort_unstable();
        edges.dedup();
        for (first, second) in edges.into_iter().filter(|(first, second)| first != second) {
            before[second].push(first);
            after[first].push(second);
        }
        Self {
            units: asks,
            before,
            after,
            buffers,
            kept: packed(program).collect(),
            at_first: made_before_a_branch(program, allocation).map(ValueId::index).collect(),
        }
    }

    /// How many units there are.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Units that must come before a unit.
    #[must_use]
    pub fn before(&self, unit: usize) -> &[usize] {
        &self.before[unit]
    }

    /// Units that must come after a unit.
    #[must_use]
    pub fn after(&self, unit: usize) -> &[usize] {
        &self.after[unit]
    }

    /// Most bytes at one time, workspace of kernels included, if the units run in this order.
    #[must_use]
    pub fn load(&self, order: &[usize]) -> u64 {
        let mut readers: Vec<u32> = self.buffers.iter().map(|buffer| buffer.readers).collect();
        let (mut held, mut most) = (0_u64, 0_u64);
        for ask in order.iter().flat_map(|&unit| &self.units[unit]) {
            for &buffer in &ask.created {
                held = held.saturating_add(self.buffers[buffer].bytes);
            }
            most = most.max(held.saturating_add(ask.workspace));
            for &buffer in &ask.read {
                readers[buffer] = readers[buffer].saturating_sub(1);
                if readers[buffer] == 0 && !self.buffers[buffer].is_output {
                    held = held.saturating_sub(self.buffers[buffer].bytes);
                }
            }
        }
        most
    }

    /// Whether an arena may hold between `least` and `most` bytes after all requests, whatever their order: regions have few sizes.
    #[must_use]
    pub fn fits_regions(&self, settings: &ArenaSettings, least: u64, most: u64) -> bool {
        let pieces = self.units.iter().flatten().map(|ask| ask.piece);
        let largest = self.buffers.iter().map(|buffer| buffer.bytes).chain(pieces).max();
        let first = settings.initial_bytes.max(GRAIN).next_multiple_of(GRAIN);
        reaches(0, first, largest.unwrap_or(0), least, most)
    }

    /// Bytes that two runs in this order ask for in vain of an arena that may hold `most` bytes, summed over all places where its regions may
    /// lie ([`RegionOrder::ALL`]); 0 where it holds no more in any run. Counting stops beyond `enough`.
    #[must_use]
    pub fn refused(&self, order: &[usize], settings: &ArenaSettings, most: u64, enough: u64) -> u64 {
        let at_first = settings.in_branch.then_some(self.at_first.as_slice());
        let mut refused = 0_u64;
        let mut live = Live {
            readers: Vec::new(),
            chunks: Vec::new(),
            is_early: vec![false; self.buffers.len()],
        };
        for regions in RegionOrder::ALL {
            let settings = ArenaSettings { regions, ..*settings };
            let mut arena = Bfc::limited(&settings, most);
            for &bytes in &self.kept {
                arena.alloc(bytes);
            }
            let first = self.run(order, at_first, &mut arena, &mut live, enough.saturating_sub(refused));
            // Where the first run is refused memory, so is the second one.
            let second = match first {
                0 => self.run(order, at_first, &mut arena, &mut live, enough.saturating_sub(refused)),
                _ => first,
            };
            refused = refused.saturating_add(first).saturating_add(second);
            if refused > enough {
                break;
            }
        }
        refused
    }

    /// Bytes that are refused in one run.
    fn run(&self, order: &[usize], at_first: Option<&[usize]>, arena: &mut Bfc, live: &mut Live, enough: u64) -> u64 {
        live.readers.clear();
        live.readers.extend(self.buffers.iter().map(|buffer| buffer.readers));
        live.chunks.clear();
        live.chunks.resize(self.buffers.len(), None);
        let mut refused = 0_u64;
        let mut taken: Vec<Chunk> = Vec::new();
        let early = at_first.map(|buffers| taken_by_a_branch(buffers.iter().map(|&buffer| self.buffers[buffer].bytes)));
        let early: Vec<Chunk> = early.iter().flatten().filter_map(|&bytes| arena.alloc(bytes)).collect();
        for &buffer in at_first.unwrap_or_default() {
            live.is_early[buffer] = true;
        }
        for ask in order.iter().flat_map(|&unit| &self.units[unit]) {
            if refused > enough {
                return refused;
            }
            let mut alloc = |arena: &mut Bfc, bytes: u64| {
                let chunk = arena.alloc(bytes);
                if chunk.is_none() {
                    refused = refused.saturating_add(bytes);
                }
                chunk
            };
            if ask.workspace_first {
                taken.extend((0..ask.pieces).filter_map(|_| alloc(arena, ask.piece)));
            }
            for &buffer in ask.created.iter().filter(|&&buffer| !live.is_early[buffer]) {
                live.chunks[buffer] = alloc(arena, self.buffers[buffer].bytes);
            }
            if !ask.workspace_first {
                taken.extend((0..ask.pieces).filter_map(|_| alloc(arena, ask.piece)));
            }
            taken.drain(..).for_each(|chunk| arena.free(chunk));
            for &buffer in &ask.read {
                live.readers[buffer] = live.readers[buffer].saturating_sub(1);
                if live.readers[buffer] == 0
                    && !self.buffers[buffer].is_output
                    && let Some(chunk) = live.chunks[buffer].take()
                {
                    arena.free(chunk);
                }
            }
        }
        early.into_iter().for_each(|chunk| arena.free(chunk));
        live.chunks.drain(..).flatten().for_each(|chunk| arena.free(chunk));
        refused
    }
}

/// Whether regions come to between `least` and `most` bytes with their tables, `held` of which are there, where the next one is of `next` bytes if the
/// request is no larger, and no request is larger than `largest`.
fn reaches(held: u64, next: u64, largest: u64, least: u64, most: u64) -> bool {
    if held > most {
        return false;
    }
    if held >= least {
        return true;
    }
    let mut request = next;
    loop {
        let Some((bytes, after)) = region(request, next) else {
            return false;
        };
        let grown = held.saturating_add(bytes).saturating_add(table(bytes));
        if grown <= most && reaches(grown, after, largest, least, most) {
            return true;
        }
        if largest <= bytes || grown > most {
            return false;
        }
        request = bytes.saturating_add(1);
    }
}
