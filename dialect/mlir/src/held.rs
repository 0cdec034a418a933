//! Tensors that MLIR frees at the end of their block, whoever reads them last.
//!
//! `buffer-deallocation-pipeline` frees there what an operation with regions hands on, and `optimize-allocation-liveness` moves up only what
//! frees an allocation of the same block. A loop that writes what it carries in place has an allocation for that; a loop that makes it anew holds
//! what it began with, too, or a copy of it that is made where others read that.

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, RegionLike, Value, ValueLike};

use crate::alias::aliases;
use crate::attributes::identity;
use crate::ffi;
use crate::positions::name_of;

/// Lower bound, upper bound and step come before what a loop carries; its counter is the first argument of the body.
const BOUNDS: usize = 3;

/// Results and operands of an operation that stay to the end of its block, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct HeldToBlockEnd {
    pub(crate) results: Vec<usize>,
    pub(crate) operands: Vec<usize>,
}

/// What an operation makes MLIR hold.
pub(crate) fn held<'c>(op: OperationRef<'c, 'c>) -> HeldToBlockEnd {
    let all = || (0..op.result_count()).collect();
    match name_of(op).as_str() {
        "scf.if" | "scf.index_switch" | "scf.execute_region" => HeldToBlockEnd {
            results: all(),
            operands: Vec::new(),
        },
        "scf.while" => HeldToBlockEnd {
            results: all(),
            operands: (0..op.operand_count()).collect(),
        },
        "scf.for" => {
            let anew: Vec<usize> = (0..op.result_count())
                .filter(|&carried| !is_in_place(op, carried))
                .collect();
            HeldToBlockEnd {
                operands: anew.iter().map(|carried| BOUNDS + carried).collect(),
                results: anew,
            }
        }
        _ => HeldToBlockEnd::default(),
    }
}

/// Whether the body of a loop writes what it carries there into the memory that it got.
fn is_in_place<'c>(op: OperationRef<'c, 'c>, carried: usize) -> bool {
    let body = op.regions().next().and_then(|region| region.first_block());
    let ends = body.and_then(|body| Some((body.argument(carried + 1).ok()?, body.terminator()?)));
    let Some((got, end)) = ends else { return false };
    let mut value = end.operand(carried).ok();
    while let Some(current) = value {
        if same(current, got.into()) {
            return true;
        }
        value = destination(current);
    }
    false
}

/// What the operation that makes a value writes it into.
fn destination<'c>(value: Value<'c, 'c>) -> Option<Value<'c, 'c>> {
    let op = ffi::maker(value)?;
    let (domain, op_type) = identity(op);
    let result = op.results().position(|result| same(result.into(), value))?;
    let found = aliases(op, &domain, &op_type)
        .into_iter()
        .find(|alias| alias.result == result)?;
    op.operand(found.operand).ok()
}

fn same(left: Value<'_, '_>, right: Value<'_, '_>) -> bool {
    left.to_raw().ptr == right.to_raw().ptr
}
