//! The functions of `queries/Queries.cpp`, and those of the C API that melior does not wrap, as safe functions.
#![expect(unsafe_code, reason = "the functions are C++")]

pub(crate) mod buffers;
pub(crate) mod lowered;
pub(crate) mod tiles;

use std::ffi::c_void;

use melior::dialect::DialectRegistry;
use melior::ir::attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute, StringAttribute};
use melior::ir::operation::{OperationLike, OperationRefMut};
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Attribute, AttributeLike, BlockRef, Identifier, Location, Module, OperationRef, Type, TypeLike, Value, ValueLike,
};
use melior::{Context, StringRef};
use mlir_sys::{MlirAttribute, MlirDialectRegistry, MlirOperation, MlirType};

/// What is said about an operation; the fields are those of the struct in `Queries.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpFacts {
    /// Whether its dialect is loaded.
    pub(crate) registered: bool,
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

/// An operand and a result that may share a buffer once the operation is bufferized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alias {
    /// Number of the operand.
    pub(crate) operand: usize,
    /// Number of the result.
    pub(crate) result: usize,
    /// The operation writes its result there; otherwise the result looks into what the operand holds.
    pub(crate) written: bool,
}

unsafe extern "C" {
    fn rematDescribeOp(op: MlirOperation, facts: *mut OpFacts);
    fn rematAttributes(op: MlirOperation) -> MlirAttribute;
    fn rematIsFunction(op: MlirOperation) -> bool;
    fn rematEmit(op: MlirOperation, severity: i32, text: *const u8, length: usize);
    // Of `Remat/RematCAPI.h`.
    fn rematOperationIsMemoryEffectFree(op: MlirOperation) -> bool;
    fn rematOperationIsConstantLike(op: MlirOperation) -> bool;
    fn rematOperationForEachAlias(op: MlirOperation, callback: AliasCallback, found: *mut c_void) -> bool;
    fn rematRegisterDialect(registry: MlirDialectRegistry);
    fn rematPageTypeGet(tensor: MlirType) -> MlirType;
}

type AliasCallback = unsafe extern "C" fn(isize, isize, i32, bool, *mut c_void);

/// What is said about `op`.
pub(crate) fn describe(op: OperationRef<'_, '_>) -> OpFacts {
    let mut facts = OpFacts::default();
    // SAFETY: the operation lives as long as its reference, and the struct is laid out as in C++.
    unsafe { rematDescribeOp(op.to_raw(), &raw mut facts) };
    facts
}

/// Whether running the operation touches no memory; `false` where it is not registered.
pub(crate) fn is_effect_free(op: OperationRef<'_, '_>) -> bool {
    // SAFETY: the operation lives as long as its reference.
    unsafe { rematOperationIsMemoryEffectFree(op.to_raw()) }
}

/// Whether the operation makes a constant.
pub(crate) fn is_constant_like(op: OperationRef<'_, '_>) -> bool {
    // SAFETY: the operation lives as long as its reference.
    unsafe { rematOperationIsConstantLike(op.to_raw()) }
}

/// The operands and results of `op` that may share buffers, as bufferization says; empty where it says nothing.
pub(crate) fn aliases(op: OperationRef<'_, '_>) -> Vec<Alias> {
    // `RematAliasMaybe`: the result looks into one of several operands, which one data say (`arith.select`).
    const MAYBE: i32 = 2;
    unsafe extern "C" fn push(operand: isize, result: isize, relation: i32, written: bool, found: *mut c_void) {
        if relation == MAYBE && !written {
            return;
        }
        // SAFETY: the pointer is the one that is handed over below, for the time of the call.
        let found = unsafe { &mut *found.cast::<Vec<Alias>>() };
        if let (Ok(operand), Ok(result)) = (usize::try_from(operand), usize::try_from(result)) {
            found.push(Alias {
                operand,
                result,
                written,
            });
        }
    }
    let mut found: Vec<Alias> = Vec::new();
    // SAFETY: the operation lives as long as its reference; the callback is not kept.
    unsafe { rematOperationForEachAlias(op.to_raw(), push, (&raw mut found).cast()) };
    found
}

/// Adds the `remat` dialect to what contexts may load.
pub(crate) fn register_dialect(registry: &DialectRegistry) {
    // SAFETY: the registry lives as long as its reference.
    unsafe { rematRegisterDialect(registry.to_raw()) };
}

/// The type of the page that holds such a tensor, if there is one.
pub(crate) fn page_type<'c>(tensor: Type<'c>) -> Option<Type<'c>> {
    // SAFETY: types live as long as their context.
    unsafe { Type::from_option_raw(rematPageTypeGet(tensor.to_raw())) }
}

/// Bits of one element of type `ty`; `None` where the type does not say.
pub(crate) fn element_bits(ty: Type<'_>) -> Option<u64> {
    let raw = ty.to_raw();
    // SAFETY: types live as long as their context; each function is asked only about the kind of type it is for.
    unsafe {
        let number = |raw| {
            if mlir_sys::mlirTypeIsAIndex(raw) {
                Some(64)
            } else if mlir_sys::mlirTypeIsAInteger(raw) {
                Some(u64::from(mlir_sys::mlirIntegerTypeGetWidth(raw)))
            } else if mlir_sys::mlirTypeIsAFloat(raw) {
                Some(u64::from(mlir_sys::mlirFloatTypeGetWidth(raw)))
            } else {
                None
            }
        };
        if mlir_sys::mlirTypeIsAComplex(raw) {
            return Some(2 * number(mlir_sys::mlirComplexTypeGetElementType(raw))?);
        }
        number(raw)
    }
}

/// Whether the operation is a function, in the words of its interface.
pub(crate) fn is_function(op: OperationRef<'_, '_>) -> bool {
    // SAFETY: the operation lives as long as its reference.
    unsafe { rematIsFunction(op.to_raw()) }
}

/// Severity of an error, for [`emit`].
pub(crate) const ERROR: i32 = 2;

/// Emits a diagnostic at `op`; 0 is a remark, 1 a warning, [`ERROR`] an error.
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
        mlir_sys::mlirTypeIsARankedTensor(raw).then(|| Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw)))
    }
}

/// Removes an operation without uses from its block.
pub(crate) fn erase(op: OperationRef<'_, '_>) {
    // SAFETY: destroying an operation takes it out of its block; the caller holds no other reference to it.
    unsafe { mlir_sys::mlirOperationDestroy(op.to_raw()) };
}

/// Whether anything uses a result of the operation.
pub(crate) fn is_used(op: OperationRef<'_, '_>) -> bool {
    // SAFETY: the results live as long as the operation.
    op.results()
        .any(|result| unsafe { !mlir_sys::mlirValueGetFirstUse(result.to_raw()).ptr.is_null() })
}

/// The operation that makes the value; `None` for arguments of blocks.
pub(crate) fn maker<'c>(value: Value<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    let raw = value.to_raw();
    // SAFETY: the value lives, and so does the operation that it is a result of.
    unsafe { mlir_sys::mlirValueIsAOpResult(raw).then(|| OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(raw))) }
}

/// The block that makes the value, or has it as an argument.
pub(crate) fn block_of<'c>(value: Value<'c, 'c>) -> Option<BlockRef<'c, 'c>> {
    if let Some(op) = maker(value) {
        return op.block();
    }
    // SAFETY: what is no result is an argument, and its block lives as long.
    unsafe { BlockRef::from_option_raw(mlir_sys::mlirBlockArgumentGetOwner(value.to_raw())) }
}

/// All attributes of an operation, in the order of their names.
pub(crate) fn attributes<'c>(op: OperationRef<'c, '_>) -> Vec<(String, Attribute<'c>)> {
    // SAFETY: attributes live as long as their context; the indices are within the dictionary; names are copied.
    unsafe {
        let all = rematAttributes(op.to_raw());
        (0..mlir_sys::mlirDictionaryAttrGetNumElements(all))
            .map(|index| {
                let named = mlir_sys::mlirDictionaryAttrGetElement(all, index);
                let name = mlir_sys::mlirIdentifierStr(named.name);
                let name = std::slice::from_raw_parts(name.data.cast::<u8>(), name.length);
                let name = String::from_utf8_lossy(name).into_owned();
                (name, Attribute::from_raw(named.attribute))
            })
            .collect()
    }
}

/// The value of an integer attribute, whatever the sign of its type.
pub(crate) fn integer(attribute: Attribute<'_>) -> Option<i64> {
    let raw = attribute.to_raw();
    // SAFETY: attributes live as long as their context; each function is asked only about the kind of attribute it is for.
    unsafe {
        if !mlir_sys::mlirAttributeIsAInteger(raw) {
            return None;
        }
        let ty = mlir_sys::mlirAttributeGetType(raw);
        if !mlir_sys::mlirTypeIsAInteger(ty) || mlir_sys::mlirIntegerTypeIsSignless(ty) {
            Some(mlir_sys::mlirIntegerAttrGetValueInt(raw))
        } else if mlir_sys::mlirIntegerTypeIsSigned(ty) {
            Some(mlir_sys::mlirIntegerAttrGetValueSInt(raw))
        } else {
            i64::try_from(mlir_sys::mlirIntegerAttrGetValueUInt(raw)).ok()
        }
    }
}

/// The value of a truth attribute.
pub(crate) fn truth(attribute: Attribute<'_>) -> Option<bool> {
    let raw = attribute.to_raw();
    // SAFETY: as in `integer`.
    unsafe { mlir_sys::mlirAttributeIsABool(raw).then(|| mlir_sys::mlirBoolAttrGetValue(raw)) }
}

/// The value of a text attribute.
pub(crate) fn text(attribute: Attribute<'_>) -> Option<String> {
    let raw = attribute.to_raw();
    // SAFETY: as in `integer`; the bytes are copied while the attribute lives.
    unsafe {
        if !mlir_sys::mlirAttributeIsAString(raw) {
            return None;
        }
        let text = mlir_sys::mlirStringAttrGetValue(raw);
        let bytes = std::slice::from_raw_parts(text.data.cast::<u8>(), text.length);
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// The values of a list of at most `most` integers, in either of the forms that lists have.
pub(crate) fn integers(attribute: Attribute<'_>, most: usize) -> Option<Vec<i64>> {
    let raw = attribute.to_raw();
    let indices = |count: isize| (usize::try_from(count).unwrap_or(usize::MAX) <= most).then_some(0..count);
    // SAFETY: as in `integer`; the indices are within the lists.
    unsafe {
        if mlir_sys::mlirAttributeIsADenseI64Array(raw) {
            let elements = indices(mlir_sys::mlirDenseArrayGetNumElements(raw))?;
            return Some(
                elements
                    .map(|index| mlir_sys::mlirDenseI64ArrayGetElement(raw, index))
                    .collect(),
            );
        }
        if !mlir_sys::mlirAttributeIsAArray(raw) {
            return None;
        }
        indices(mlir_sys::mlirArrayAttrGetNumElements(raw))?
            .map(|index| integer(Attribute::from_raw(mlir_sys::mlirArrayAttrGetElement(raw, index))))
            .collect()
    }
}

/// The operation, to be changed.
pub(crate) fn as_mut<'c, 'a>(op: OperationRef<'c, 'a>) -> OperationRefMut<'c, 'a> {
    // SAFETY: it is the same operation; MLIR's references do not alias in the sense of Rust.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }
}

/// Parses the module in a file; what is wrong with it is told to the context's handler.
pub(crate) fn parse_file<'c>(context: &'c Context, path: &str) -> Option<Module<'c>> {
    let path = StringRef::new(path);
    // SAFETY: context and path live during the call; the module is new and belongs to nobody else.
    unsafe { Module::from_option_raw(mlir_sys::mlirModuleCreateParseFromFile(context.to_raw(), path.to_raw())) }
}

/// A named value of an attribute that is to be made in the context of `location`.
pub(crate) enum NewAttribute<'v> {
    /// A 64-bit integer.
    Integer(i64),
    /// A text.
    Text(&'v str),
    /// A dense list of 32-bit integers.
    Integers(&'v [i32]),
    /// A dense list of 64-bit integers.
    Longs(&'v [i64]),
}

/// An attribute with its name.
pub(crate) fn attribute<'c>(
    location: Location<'c>,
    name: &str,
    value: &NewAttribute<'_>,
) -> (Identifier<'c>, Attribute<'c>) {
    let context = location.context();
    // SAFETY: the context outlives its locations.
    let context = unsafe { context.to_ref() };
    let value = match *value {
        NewAttribute::Integer(value) => IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into(),
        NewAttribute::Text(text) => StringAttribute::new(context, text).into(),
        NewAttribute::Integers(values) => DenseI32ArrayAttribute::new(context, values).into(),
        NewAttribute::Longs(values) => DenseI64ArrayAttribute::new(context, values).into(),
    };
    (Identifier::new(context, name), value)
}
