//! What `remat-verify` demands of blocks that buffers were put into. It knows nothing of how they were placed.

use std::collections::BTreeMap;

use remat_mlir::{BlockViews, Function, ViewOfBlock};

use crate::PassError;

/// Judges the views of all blocks of the function: each lies in its block, at a multiple of what its elements need, and no two that share bytes
/// are needed at the same time. Returns the bytes of the blocks together; `None` where there is no block.
///
/// # Errors
/// [`PassError::Block`] at the first operation that breaks a rule.
pub(crate) fn verify<'c>(function: Function<'c>) -> Result<Option<u64>, PassError<'c>> {
    let blocks = function.blocks()?;
    for block in &blocks {
        for view in &block.views {
            check_place(block, view)?;
        }
        check_apart(block)?;
    }
    let bytes = blocks.iter().fold(0, |sum: u64, block| sum.saturating_add(block.bytes));
    Ok((!blocks.is_empty()).then_some(bytes))
}

fn check_place<'c>(block: &BlockViews<'c>, view: &ViewOfBlock<'c>) -> Result<(), PassError<'c>> {
    let end = view.offset.checked_add(view.bytes);
    if end.is_none_or(|end| end > block.bytes) {
        let why = format!("{} end behind the block, which has {} bytes", shown(view), block.bytes);
        return Err(view.fault(why).into());
    }
    if !view.offset.is_multiple_of(view.alignment.max(1)) {
        let why = format!(
            "offset {} is not a multiple of {}, to which the elements have to be aligned",
            view.offset, view.alignment
        );
        return Err(view.fault(why).into());
    }
    Ok(())
}

/// Goes through time: what begins to be needed meets nothing that is needed still.
fn check_apart<'c>(block: &BlockViews<'c>) -> Result<(), PassError<'c>> {
    let needed = block
        .views
        .iter()
        .filter(|view| view.bytes > 0 && !view.needed.is_empty());
    let mut events: Vec<(u64, bool, &ViewOfBlock<'c>)> = needed
        .flat_map(|view| [(view.needed.start, true, view), (view.needed.end, false, view)])
        .collect();
    events.sort_by_key(|&(time, begins, view)| (time, begins, view.offset));
    let mut taken: BTreeMap<u64, &ViewOfBlock<'c>> = BTreeMap::new();
    for (_, begins, view) in events {
        if !begins {
            taken.remove(&view.offset);
            continue;
        }
        let end = view.offset + view.bytes;
        let below = taken.range(..end).next_back().map(|(_, other)| *other);
        if let Some(other) = below.filter(|other| other.offset + other.bytes > view.offset) {
            let why = format!(
                "{} are those of {}, which is needed at the same time",
                shown(view),
                named(other)
            );
            return Err(view.fault(why).into());
        }
        taken.insert(view.offset, view);
    }
    Ok(())
}

fn named(view: &ViewOfBlock<'_>) -> String {
    let bytes = format!("bytes {} to {}", view.offset, view.offset.saturating_add(view.bytes));
    match view.buffer {
        Some(buffer) => format!("buffer {buffer} ({bytes})"),
        None => format!("another view ({bytes})"),
    }
}

fn shown(view: &ViewOfBlock<'_>) -> String {
    let bytes = format!("bytes {} to {}", view.offset, view.offset.saturating_add(view.bytes));
    match view.buffer {
        Some(buffer) => format!("{bytes} of buffer {buffer}"),
        None => bytes,
    }
}
