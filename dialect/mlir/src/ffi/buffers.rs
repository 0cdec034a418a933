//! The functions of `queries/Buffers.cpp`, and who uses a value, as safe functions.
#![expect(unsafe_code, reason = "the functions are C++")]

use melior::ir::operation::OperationRef;
use melior::ir::{TypeLike, Value, ValueLike};
use mlir_sys::{MlirOperation, MlirValue};

/// What is said about an allocation; the fields are those of the struct in `Buffers.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AllocationFacts {
    /// Why it cannot be placed; 0 where it can.
    pub(crate) obstacle: i32,
    pub(crate) bytes: i64,
    pub(crate) alignment: i64,
}

/// What is said about a view of bytes; the fields are those of the struct in `Buffers.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ViewFacts {
    /// Negative where it is no constant.
    pub(crate) offset: i64,
    /// Negative where the size is not static.
    pub(crate) bytes: i64,
    /// What elements need.
    pub(crate) alignment: i64,
    /// The number of the buffer; negative without one.
    pub(crate) buffer: i64,
}

unsafe extern "C" {
    fn rematDescribeAllocation(op: MlirOperation, facts: *mut AllocationFacts) -> bool;
    fn rematDescribeView(op: MlirOperation, facts: *mut ViewFacts) -> bool;
    fn rematBlockBytes(value: MlirValue) -> i64;
    fn rematAllocateBlock(
        function: MlirOperation,
        first: MlirOperation,
        last: MlirOperation,
        bytes: i64,
        alignment: i64,
    ) -> MlirValue;
    fn rematAppendBlock(function: MlirOperation, bytes: i64, alignment: i64) -> MlirValue;
    fn rematPlaceAllocation(op: MlirOperation, dealloc: MlirOperation, block: MlirValue, offset: i64, buffer: i64);
}

/// What is said about a `memref.alloc`; `None` for other operations.
pub(crate) fn allocation(op: OperationRef<'_, '_>) -> Option<AllocationFacts> {
    let mut facts = AllocationFacts::default();
    // SAFETY: the operation lives as long as its reference, and the struct is laid out as in C++.
    unsafe { rematDescribeAllocation(op.to_raw(), &raw mut facts) }.then_some(facts)
}

/// What is said about a `memref.view`; `None` for other operations.
pub(crate) fn view(op: OperationRef<'_, '_>) -> Option<ViewFacts> {
    let mut facts = ViewFacts::default();
    // SAFETY: the operation lives as long as its reference, and the struct is laid out as in C++.
    unsafe { rematDescribeView(op.to_raw(), &raw mut facts) }.then_some(facts)
}

/// The bytes of a block that buffers were placed in; `None` for other values.
pub(crate) fn block_bytes(value: Value<'_, '_>) -> Option<u64> {
    // SAFETY: the value lives as long as its reference.
    u64::try_from(unsafe { rematBlockBytes(value.to_raw()) }).ok()
}

/// Allocates a block before the first of two operations of one block and frees it after the second; without them, at the start of the
/// function and before it returns.
pub(crate) fn allocate_block<'c>(
    function: OperationRef<'c, 'c>,
    between: Option<(OperationRef<'c, 'c>, OperationRef<'c, 'c>)>,
    bytes: i64,
    alignment: i64,
) -> Value<'c, 'c> {
    let none = MlirOperation {
        ptr: std::ptr::null_mut(),
    };
    let (first, last) = between.map_or((none, none), |(first, last)| (first.to_raw(), last.to_raw()));
    // SAFETY: the operations live as long as their references, the value as long as the function.
    unsafe { Value::from_raw(rematAllocateBlock(function.to_raw(), first, last, bytes, alignment)) }
}

/// Gives the function a block as its last argument; `None` if it takes none.
pub(crate) fn append_block<'c>(function: OperationRef<'c, 'c>, bytes: i64, alignment: i64) -> Option<Value<'c, 'c>> {
    // SAFETY: the operation lives as long as its reference, the value as long as the function.
    unsafe {
        let block = rematAppendBlock(function.to_raw(), bytes, alignment);
        (!block.ptr.is_null()).then(|| Value::from_raw(block))
    }
}

/// Replaces an allocation by a view of the block, and erases it and its deallocation. The caller holds no other reference to them.
pub(crate) fn place_allocation<'c>(
    op: OperationRef<'c, 'c>,
    dealloc: OperationRef<'c, 'c>,
    block: Value<'c, 'c>,
    offset: i64,
    buffer: i64,
) {
    // SAFETY: the operations and the value live as long as their references.
    unsafe { rematPlaceAllocation(op.to_raw(), dealloc.to_raw(), block.to_raw(), offset, buffer) };
}

/// The operations that use a value, once for each operand.
pub(crate) fn users<'c>(value: Value<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut users = Vec::new();
    // SAFETY: uses live as long as the value; operations that use it live in the same function.
    unsafe {
        let mut next = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !mlir_sys::mlirOpOperandIsNull(next) {
            users.push(OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(next)));
            next = mlir_sys::mlirOpOperandGetNextUse(next);
        }
    }
    users
}

/// Whether a value is a buffer.
pub(crate) fn is_buffer(value: Value<'_, '_>) -> bool {
    let ty = value.r#type();
    // SAFETY: types live as long as their context.
    unsafe { mlir_sys::mlirTypeIsAMemRef(ty.to_raw()) || mlir_sys::mlirTypeIsAUnrankedMemRef(ty.to_raw()) }
}
