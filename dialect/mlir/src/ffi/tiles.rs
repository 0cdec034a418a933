//! What tiles of operations take: how an operation indexes what it reads, and results of another type.

use std::ffi::c_void;
use std::slice;

use melior::ir::r#type::RankedTensorType;
use melior::ir::{OperationRef, Type, TypeLike, Value, ValueLike};
use mlir_sys::MlirOperation;

use super::element;

/// How an operation with loops runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indexing {
    /// How often each loop runs.
    pub(crate) extents: Vec<i64>,
    /// How the result is indexed: for each axis a coefficient for each loop, then a constant.
    pub(crate) result: Vec<i64>,
    /// By operand, the same.
    pub(crate) operands: Vec<Vec<i64>>,
}

type Tell = unsafe extern "C" fn(isize, *const i64, isize, *mut c_void);

unsafe extern "C" {
    fn rematForEachIndexing(op: MlirOperation, tell: Tell, found: *mut c_void) -> bool;
}

/// How the operation runs; `None` where it has no loops over tensors of static shape, or indices that are no sums of loops.
pub(crate) fn indexing(op: OperationRef<'_, '_>) -> Option<Indexing> {
    unsafe extern "C" fn tell(number: isize, values: *const i64, count: isize, found: *mut c_void) {
        let values = match usize::try_from(count) {
            // SAFETY: the caller hands over so many numbers for the time of the call.
            Ok(count @ 1..) => unsafe { slice::from_raw_parts(values, count) }.to_vec(),
            _ => Vec::new(),
        };
        // SAFETY: the pointer is the one that is handed over below, for the time of the call.
        let found = unsafe { &mut *found.cast::<Indexing>() };
        match number {
            -1 => found.extents = values,
            -2 => found.result = values,
            _ => found.operands.push(values),
        }
    }
    let mut found = Indexing::default();
    // SAFETY: the operation lives as long as its reference; the callback is not kept.
    unsafe { rematForEachIndexing(op.to_raw(), tell, (&raw mut found).cast()) }.then_some(found)
}

/// The type of a part of a tensor of type `whole`: the same elements, other dimensions; `None` if it is no ranked tensor.
pub(crate) fn part_type<'c>(whole: Type<'c>, dims: &[u64]) -> Option<Type<'c>> {
    Some(RankedTensorType::new(dims, element(whole)?, None).into())
}

/// Gives a value another type.
pub(crate) fn set_type<'c>(value: Value<'c, '_>, ty: Type<'c>) {
    // SAFETY: value and type live as long as the context; the operation of the value is new and verified later.
    unsafe { mlir_sys::mlirValueSetType(value.to_raw(), ty.to_raw()) };
}
