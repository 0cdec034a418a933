//! The last invariant of a graph: its block.

use std::collections::BTreeMap;

use crate::{Block, Graph, GraphError, OpId, OpKind, StorageClass, StorageId};

/// What takes bytes of the block now, by offset: where it ends, and what it is called.
#[derive(Default)]
struct Taken(BTreeMap<u64, (u64, String)>);

impl Taken {
    /// Takes bytes, unless that is not possible; then the reason.
    fn take(&mut self, block: &Block, offset: u64, bytes: u64, name: &str) -> Result<(), String> {
        if !offset.is_multiple_of(block.alignment) {
            return Err(format!(
                "{offset} is not a multiple of the alignment {}",
                block.alignment
            ));
        }
        let end = offset.checked_add(bytes).filter(|&end| end <= block.bytes);
        let end = end.ok_or_else(|| format!("{bytes} bytes at {offset} end behind the block of {}", block.bytes))?;
        if bytes == 0 {
            return Ok(());
        }
        let below = self.0.range(..end).next_back();
        if let Some((_, (_, other))) = below.filter(|&(_, &(other_end, _))| other_end > offset) {
            return Err(format!("bytes from {offset} to {end} are those of `{other}`, too"));
        }
        self.0.insert(offset, (end, name.to_owned()));
        Ok(())
    }
}

impl Graph {
    /// Walks through the ops with the storages that are in memory. Sizes that are not known count as nothing.
    pub(crate) fn check_block(&self, errors: &mut Vec<GraphError>) {
        let Some(block) = &self.block else { return };
        if block.alignment == 0 {
            let what = self.name.clone();
            let why = "the alignment of the block is 0".to_owned();
            errors.push(GraphError::BadPlace { what, why });
            return;
        }
        self.check_places(block, errors);
        let mut taken = Taken::default();
        let mut at: BTreeMap<StorageId, u64> = BTreeMap::new();
        for (id, op) in self.ops.iter_enumerated() {
            let operand = || Some(self.tensors[op.reads().next()?].storage);
            match op.kind {
                OpKind::Compute | OpKind::Recompute { .. } => {
                    for tensor in op.results().filter(|&tensor| !self.is_view(tensor)) {
                        let storage = self.tensors[tensor].storage;
                        if let Some(&offset) = block.results.get(&storage) {
                            self.take(block, (storage, offset), &mut taken, &mut at, errors);
                        }
                    }
                    let Some(workspace) = block.workspaces.get(&id) else {
                        continue;
                    };
                    match taken.take(block, workspace.offset, workspace.bytes, &op.name) {
                        Ok(()) if workspace.bytes > 0 => drop(taken.0.remove(&workspace.offset)),
                        Ok(()) => {}
                        Err(why) => errors.push(GraphError::BadPlace {
                            what: op.name.clone(),
                            why: format!("of its workspace {why}"),
                        }),
                    }
                }
                OpKind::Dealloc | OpKind::PageOut => {
                    if let Some(offset) = operand().and_then(|storage| at.remove(&storage)) {
                        taken.0.remove(&offset);
                    }
                }
                OpKind::PageIn => {
                    if let Some((storage, &offset)) = operand().zip(block.returns.get(&id)) {
                        self.take(block, (storage, offset), &mut taken, &mut at, errors);
                    }
                }
            }
        }
    }

    fn take(
        &self,
        block: &Block,
        (storage, offset): (StorageId, u64),
        taken: &mut Taken,
        at: &mut BTreeMap<StorageId, u64>,
        errors: &mut Vec<GraphError>,
    ) {
        let name = self.storage_name(storage);
        let bytes = self.storages[storage].bytes.unwrap_or(0);
        match taken.take(block, offset, bytes, name) {
            Ok(()) if bytes > 0 => drop(at.insert(storage, offset)),
            Ok(()) => {}
            Err(why) => errors.push(GraphError::BadPlace {
                what: name.to_owned(),
                why,
            }),
        }
    }

    /// Only what is made or brought back has a place.
    fn check_places(&self, block: &Block, errors: &mut Vec<GraphError>) {
        let mut refuse = |what: &str, why: &str| {
            errors.push(GraphError::BadPlace {
                what: what.to_owned(),
                why: why.to_owned(),
            });
        };
        for &storage in block.results.keys() {
            let is_made = |entry: &crate::Storage| entry.class == StorageClass::Intermediate;
            if !self.storages.get(storage).is_some_and(is_made) {
                refuse("storage", "only results of ops lie in the block");
            }
        }
        let kind = |id: OpId| self.ops.get(id).map(|op| op.kind);
        for &op in block.returns.keys().filter(|&&id| kind(id) != Some(OpKind::PageIn)) {
            refuse(&format!("op {}", op.index()), "it brings nothing back");
        }
        for &op in block
            .workspaces
            .keys()
            .filter(|&&id| !kind(id).is_some_and(OpKind::is_run))
        {
            refuse(&format!("op {}", op.index()), "it runs nothing");
        }
    }
}
