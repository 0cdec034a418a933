//! What is live across the blocks of a function.
//!
//! A value is live in a block if the block reads it, or a block that may run afterwards does, before the one that makes it runs again
//! (Aho, Lam, Sethi, Ullman, *Compilers*, section 9.2.5). MLIR frees what is live across blocks at their ends, so all of it counts
//! throughout a block.

use std::collections::BTreeSet;

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Value};
use remat_ir::{StorageClass, StorageId};
use rustc_hash::FxHashMap;

use crate::ffi;
use crate::import::Imported;

/// A storage of the graph of a block, by the position of the block.
type Root = (usize, StorageId);

/// What is there while a block runs beside what it makes itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outside {
    /// Storages of the graphs of blocks, by the positions of these: what other blocks made, and what is passed to this one.
    pub live: BTreeSet<(usize, StorageId)>,
    /// Bytes that the end of the block may copy: what it passes to a block that several others lead to.
    pub copies: u64,
}

/// What is there while each block runs; the blocks are all of one function, in the order of [`crate::Function::bodies`].
#[must_use]
pub fn outside(blocks: &[&Imported<'_>]) -> Vec<Outside> {
    let numbers: FxHashMap<usize, usize> = blocks
        .iter()
        .enumerate()
        .map(|(number, imported)| (key(imported.body.block()), number))
        .collect();
    let successors: Vec<Vec<usize>> = blocks
        .iter()
        .map(|imported| {
            let next = imported.table.terminator.successors();
            next.filter_map(|block| numbers.get(&key(block)).copied()).collect()
        })
        .collect();
    let reads: Vec<BTreeSet<Root>> = blocks
        .iter()
        .map(|imported| {
            let outer = imported.table.values.iter().skip(imported.table.arguments);
            let outer = outer.take(imported.table.outer);
            outer.filter_map(|known| root(known.value, blocks, &numbers)).collect()
        })
        .collect();
    let mut live = reads.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..blocks.len()).rev() {
            for &next in &successors[block] {
                let passed: Vec<Root> = live[next].iter().filter(|root| root.0 != block).copied().collect();
                for root in passed {
                    changed |= live[block].insert(root);
                }
            }
        }
    }
    blocks
        .iter()
        .zip(live)
        .enumerate()
        .map(|(number, (imported, mut live))| {
            if number > 0 {
                let arguments = &imported.tensors[..imported.table.arguments];
                live.extend(
                    arguments
                        .iter()
                        .map(|&argument| (number, imported.graph.tensors[argument].storage)),
                );
            }
            let copies = copies(imported);
            Outside { live, copies }
        })
        .collect()
}

/// The storage that a value looks into, in the block that makes it; `None` for constants and for arguments of the function.
fn root(value: Value<'_, '_>, blocks: &[&Imported<'_>], numbers: &FxHashMap<usize, usize>) -> Option<Root> {
    let mut value = value;
    // Each turn goes to a block that dominates the one before.
    for _ in blocks {
        let number = *numbers.get(&key(ffi::block_of(value)?))?;
        let imported = blocks[number];
        let table = &imported.table;
        let tensor = imported.tensors[table.position(value)?];
        let storage = imported.graph.tensors[tensor].storage;
        let known = &imported.graph.storages[storage];
        match known.class {
            StorageClass::Constant => return None,
            StorageClass::Intermediate => return Some((number, storage)),
            StorageClass::Input => {
                let inputs = &imported.tensors[..table.arguments + table.outer];
                let index = inputs.iter().position(|&input| input == known.root)?;
                if index < table.arguments {
                    return (number > 0).then_some((number, storage));
                }
                if table.is_resident(index) {
                    return None;
                }
                value = table.values[index].value;
            }
        }
    }
    None
}

/// Bufferization copies what a block passes on where the next one may get something else from elsewhere.
fn copies(imported: &Imported<'_>) -> u64 {
    let table = &imported.table;
    let joins = |block: BlockRef<'_, '_>| block.argument_count() > 0 && block.predecessor_count() > 1;
    if !table.terminator.successors().any(joins) {
        return 0;
    }
    let passed = table.terminator.operands().filter_map(|value| table.position(value));
    let bytes = passed.filter_map(|value| {
        let ty = &imported.graph.tensors[imported.tensors[value]].ty;
        ty.bytes().ok().flatten()
    });
    bytes.fold(0, u64::saturating_add)
}

fn key(block: BlockRef<'_, '_>) -> usize {
    block.to_raw().ptr as usize
}
