//! What goes on inside an operation with regions, for its costs.

use melior::ir::operation::{OperationLike, WalkOrder, WalkResult};
use melior::ir::{BlockRef, OperationRef, ValueLike};
use remat_ir::Attribute;
use rustc_hash::FxHashMap;

use crate::attributes::identity;
use crate::bodies::{for_each_block, for_each_op};
use crate::ffi::{self, OpFacts};
use crate::fusion::arithmetic;
use crate::types::value_type;
use crate::{alias, effects};

/// What the loops and regions of an operation say of its costs, as attributes.
pub(crate) fn costs(op: OperationRef<'_, '_>, facts: OpFacts) -> Vec<(&'static str, Attribute)> {
    if facts.structured {
        let class = match (facts.contracts, facts.reduces, facts.transcendental) {
            (true, _, _) => "contraction",
            (_, true, _) => "reduction",
            (_, _, true) => "transcendental",
            (false, false, false) => "elementwise",
        };
        let operations = facts.iterations.max(0).saturating_mul(facts.body_ops);
        vec![
            ("loops", Attribute::String(class.as_bytes().to_vec())),
            ("operations", Attribute::Int(operations)),
        ]
    } else if op.region_count() > 0 {
        vec![
            ("operations", Attribute::Int(operations(op, facts))),
            ("workspace", Attribute::Int(temporaries(op))),
        ]
    } else {
        Vec::new()
    }
}

/// Arithmetic operations of one run: each operation inside counts as often as its loop runs, as far as that is known.
fn operations(op: OperationRef<'_, '_>, facts: OpFacts) -> i64 {
    let mut inside: i64 = 0;
    for_each_block(op, &mut |block| {
        for_each_op(block, &mut |nested| {
            let facts = ffi::describe(nested);
            let own = if facts.structured {
                facts.iterations.max(0).saturating_mul(facts.body_ops)
            } else if nested.region_count() > 0 {
                operations(nested, facts)
            } else {
                arithmetic(nested)
            };
            inside = inside.saturating_add(own);
        });
    });
    inside.saturating_mul(facts.trips.max(1))
}

/// Bytes of what the operation makes inside for its own use, at their peak: each tensor from its operation to its last reader in the block.
/// What a block hands on at its end takes the place of a result.
fn temporaries(op: OperationRef<'_, '_>) -> i64 {
    let mut peak = 0;
    for_each_block(op, &mut |block| peak = peak.max(block_peak(block)));
    peak
}

fn block_peak(block: BlockRef<'_, '_>) -> i64 {
    // The last reader of each value, by position.
    let mut last: FxHashMap<usize, usize> = FxHashMap::default();
    let mut position = 0;
    for_each_op(block, &mut |op| {
        op.walk(WalkOrder::PreOrder, |nested| {
            for value in nested.operands() {
                last.insert(value.to_raw().ptr as usize, position);
            }
            WalkResult::Advance
        });
        position += 1;
    });
    let end = position.saturating_sub(1);
    let mut dies: Vec<i64> = vec![0; position + 1];
    let (mut live, mut peak): (i64, i64) = (0, 0);
    let mut position = 0;
    for_each_op(block, &mut |op| {
        let facts = ffi::describe(op);
        for result in op.results() {
            let reader = last.get(&(result.to_raw().ptr as usize)).copied().unwrap_or(position);
            if reader < end {
                let bytes = own_bytes(op, result.r#type());
                live = live.saturating_add(bytes);
                dies[reader] = dies[reader].saturating_add(bytes);
            }
        }
        let inside = if facts.structured || op.region_count() == 0 {
            0
        } else {
            temporaries(op)
        };
        peak = peak.max(live.saturating_add(inside));
        live = live.saturating_sub(dies[position]);
        position += 1;
    });
    peak
}

/// Bytes that a result takes; 0 for constants, views, and what is no tensor of known size.
fn own_bytes(op: OperationRef<'_, '_>, ty: melior::ir::Type<'_>) -> i64 {
    let (domain, op_type) = identity(op);
    let is_view = || alias::aliases(op, &domain, &op_type).iter().any(|alias| !alias.written);
    if ffi::is_constant_like(op) || effects::is_without_contents(&domain, &op_type) || is_view() {
        return 0;
    }
    let bytes = value_type(ty, None).bytes().ok().flatten().unwrap_or(0);
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
