//! The functions of `queries/Queries.cpp`, and those of the C API that melior does not wrap, behind safe ones.
#![expect(unsafe_code, reason = "the functions are C++")]

use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Type, TypeLike};
use mlir_sys::{MlirOperation, MlirType};

/// What is said about an operation; the fields are those of the struct in `Queries.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpFacts {
    /// Whether its dialect is loaded.
    pub(crate) registered: bool,
    /// Neither reads nor writes memory, its regions included; `false` where it is not registered.
    pub(crate) effect_free: bool,
    /// A constant.
    pub(crate) constant_like: bool,
    /// A structured operation (`linalg`); the next four fields speak of it.
    pub(crate) structured: bool,
    /// Has a reduction loop.
    pub(crate) reduces: bool,
    /// Has a reduction loop, and multiplies and adds in it.
    pub(crate) contracts: bool,
    /// Calls functions of `math`.
    pub(crate) transcendental: bool,
    /// Runs of the body; negative where a loop range is not static.
    pub(crate) iterations: i64,
    /// Operations in the body.
    pub(crate) body_ops: i64,
    /// How often the regions run, where that is known; else 1.
    pub(crate) trips: i64,
}

#[repr(C)]
struct RawOperandFacts {
    aliased_result: i64,
    writes: bool,
}

/// What bufferization may make of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bufferization {
    /// Its memory has nothing to do with that of a result.
    Apart,
    /// The result of this number looks into its memory.
    View(usize),
    /// The result of this number is written into its memory.
    Destination(usize),
}

unsafe extern "C" {
    fn rematDescribeOp(op: MlirOperation, facts: *mut OpFacts);
    fn rematDescribeOperand(op: MlirOperation, index: isize, facts: *mut RawOperandFacts);
    fn rematElementBits(ty: MlirType) -> i64;
    fn rematIsFunction(op: MlirOperation) -> bool;
    fn rematEmit(op: MlirOperation, severity: i32, text: *const u8, length: usize);
}

/// What is said about `op`.
pub(crate) fn describe(op: OperationRef<'_, '_>) -> OpFacts {
    let mut facts = OpFacts::default();
    // SAFETY: the operation lives as long as its reference, and the struct is laid out as in C++.
    unsafe { rematDescribeOp(op.to_raw(), &raw mut facts) };
    facts
}

/// What bufferization may make of operand `index` of `op`, which has so many.
pub(crate) fn bufferization(op: OperationRef<'_, '_>, index: usize) -> Bufferization {
    let mut facts = RawOperandFacts {
        aliased_result: -1,
        writes: false,
    };
    let Ok(index) = isize::try_from(index) else {
        return Bufferization::Apart;
    };
    // SAFETY: the operation lives as long as its reference; the index is within its operands.
    unsafe { rematDescribeOperand(op.to_raw(), index, &raw mut facts) };
    match (usize::try_from(facts.aliased_result), facts.writes) {
        (Err(_), _) => Bufferization::Apart,
        (Ok(result), true) => Bufferization::Destination(result),
        (Ok(result), false) => Bufferization::View(result),
    }
}

/// Bits of one element of type `ty`; `None` where the type does not say.
pub(crate) fn element_bits(ty: Type<'_>) -> Option<u64> {
    // SAFETY: types live as long as their context.
    let bits = unsafe { rematElementBits(ty.to_raw()) };
    u64::try_from(bits).ok().filter(|&bits| bits > 0)
}

/// Whether the operation is a function, in the words of its interface.
pub(crate) fn is_function(op: OperationRef<'_, '_>) -> bool {
    // SAFETY: the operation lives as long as its reference.
    unsafe { rematIsFunction(op.to_raw()) }
}

/// Emits a diagnostic at `op`; 0 is a remark, 1 a warning, 2 an error.
pub(crate) fn emit(op: OperationRef<'_, '_>, severity: i32, text: &str) {
    // SAFETY: the operation lives as long as its reference; the text is read before the call returns.
    unsafe { rematEmit(op.to_raw(), severity, text.as_ptr(), text.len()) };
}

/// The shape of a ranked tensor type, `None` for dynamic extents.
pub(crate) fn shape(ty: Type<'_>) -> Option<Vec<Option<u64>>> {
    let raw = ty.to_raw();
    // SAFETY: types live as long as their context; the rank bounds the dimensions asked for.
    unsafe {
        if !mlir_sys::mlirTypeIsARankedTensor(raw) {
            return None;
        }
        let rank = mlir_sys::mlirShapedTypeGetRank(raw);
        let dim = |index| {
            let is_dynamic = mlir_sys::mlirShapedTypeIsDynamicDim(raw, index);
            let size = mlir_sys::mlirShapedTypeGetDimSize(raw, index);
            if is_dynamic { None } else { u64::try_from(size).ok() }
        };
        Some((0..isize::try_from(rank).unwrap_or(0)).map(dim).collect())
    }
}

/// The element type of a ranked tensor type.
pub(crate) fn element<'c>(ty: Type<'c>) -> Option<Type<'c>> {
    // SAFETY: types live as long as their context; the type is checked to be shaped.
    unsafe {
        let raw = ty.to_raw();
        mlir_sys::mlirTypeIsARankedTensor(raw)
            .then(|| Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw)))
    }
}

/// Removes an operation without uses from its block.
pub(crate) fn erase(op: OperationRef<'_, '_>) {
    // SAFETY: destroying an operation takes it out of its block; the caller holds no other reference to it.
    unsafe { mlir_sys::mlirOperationDestroy(op.to_raw()) };
}

/// Whether anything uses a result of the operation.
pub(crate) fn is_used(op: OperationRef<'_, '_>) -> bool {
    use melior::ir::ValueLike;
    // SAFETY: the results live as long as the operation.
    op.results()
        .any(|result| unsafe { !mlir_sys::mlirValueGetFirstUse(result.to_raw()).ptr.is_null() })
}
