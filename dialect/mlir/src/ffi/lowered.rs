//! The functions of `queries/Lowered.cpp` and `queries/Reuse.cpp`, as safe functions.
#![expect(unsafe_code, reason = "the functions are C++")]

use melior::ir::operation::OperationLike;
use melior::ir::{Operation, OperationRef};
use mlir_sys::MlirOperation;

unsafe extern "C" {
    fn rematLoweredPeak(function: MlirOperation) -> i64;
    fn rematRestore(function: MlirOperation, copy: MlirOperation);
    fn rematOwnEmpties(function: MlirOperation);
    fn rematReuseOperands(function: MlirOperation) -> i64;
    fn rematAllocatesBuffers(function: MlirOperation) -> bool;
}

/// Bytes that the function takes at its peak once it is lowered, as far as that is known.
pub(crate) fn peak(function: OperationRef<'_, '_>) -> Option<u64> {
    // SAFETY: the function lives as long as its reference, and is only read.
    u64::try_from(unsafe { rematLoweredPeak(function.to_raw()) }).ok()
}

/// Gives the function the body of its copy.
pub(crate) fn restore<'c>(function: OperationRef<'c, '_>, copy: &Operation<'c>) {
    // SAFETY: both live during the call; nobody else knows what is in the copy.
    unsafe { rematRestore(function.to_raw(), copy.to_raw()) };
}

/// Puts an allocation in the place of each empty tensor of the function.
pub(crate) fn own_empties(function: OperationRef<'_, '_>) {
    // SAFETY: the function lives as long as its reference; empty tensors are replaced before they are erased.
    unsafe { rematOwnEmpties(function.to_raw()) };
}

/// Puts results into the memory of operands that nobody reads later; whether there are any.
pub(crate) fn reuse_operands(function: OperationRef<'_, '_>) -> bool {
    // SAFETY: the function lives as long as its reference; what is erased has no uses, and nobody else knows it.
    unsafe { rematReuseOperands(function.to_raw()) > 0 }
}

/// Whether the function allocates buffers.
pub(crate) fn allocates_buffers(function: OperationRef<'_, '_>) -> bool {
    // SAFETY: the function lives as long as its reference, and is only read.
    unsafe { rematAllocatesBuffers(function.to_raw()) }
}
