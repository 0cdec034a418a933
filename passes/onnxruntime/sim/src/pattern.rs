//! The memory pattern: one block in which every recorded result has its place.

use rustc_hash::FxHashSet;

use crate::steps::Step;
use crate::{Allocation, Home, Program, ValueId, ValueKind};

/// Sizes are multiples of this.
const GRAIN: u64 = 64;

/// The block and what lies in it.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    bytes: u64,
    covered: FxHashSet<ValueId>,
}

impl Pattern {
    /// Plans the block from the steps of a run: each result goes into the gap that it fills best, or behind everything.
    pub(crate) fn record(program: &Program, allocation: &Allocation, steps: &[Step]) -> Self {
        let mut pattern = Self::default();
        // Resident results as offset and end, by offset.
        let mut resident: Vec<(u64, u64, ValueId)> = Vec::new();
        for step in steps {
            for &value in &step.created {
                if !is_recorded(program, allocation, value) {
                    continue;
                }
                pattern.covered.insert(value);
                let size = program.values[value].bytes.unwrap_or(0).next_multiple_of(GRAIN);
                let position = best_gap(&resident, size);
                let offset = position.checked_sub(1).map_or(0, |before| resident[before].1);
                let end = offset.saturating_add(size);
                resident.insert(position, (offset, end, value));
                pattern.bytes = pattern.bytes.max(end);
            }
            resident.retain(|(_, _, value)| !step.released.contains(value));
        }
        pattern
    }

    /// Size of the block.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a value has its place in the block.
    pub(crate) fn covers(&self, value: ValueId) -> bool {
        self.covered.contains(&value)
    }
}

/// Graph outputs are handed out one by one, strings are made one by one.
fn is_recorded(program: &Program, allocation: &Allocation, value: ValueId) -> bool {
    let strings = program.values[value].element == Some(remat_ir::ElementType::String);
    allocation.home[value] == Home::Own && program.values[value].kind == ValueKind::Tensor && !strings
}

/// The position among the resident before which `size` bytes fit with the least waste; behind all if nowhere.
fn best_gap(resident: &[(u64, u64, ValueId)], size: u64) -> usize {
    let mut best = (u64::MAX, resident.len());
    let mut end = 0;
    for (position, &(offset, to, _)) in resident.iter().enumerate() {
        if offset >= end && offset - end >= size && offset - end - size < best.0 {
            best = (offset - end - size, position);
        }
        end = to;
    }
    best.1
}
