//===- Buffers.cpp - Allocations, and views of one block in their place ---===//
//
// The C API knows neither the data layout nor the layouts of buffers, and cannot change the arguments of a function. Which buffers are
// placed, and where, is decided in Rust (`src/buffers.rs`); the structs are the same in `src/ffi/buffers.rs`, field by field.
//
//===----------------------------------------------------------------------===//

#include "Remat/RematDialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace {

/// Attribute of an allocation or of an argument of a function: it is a block.
constexpr StringLiteral blockName = "remat.block";
/// Attribute of a view of a block: a number of its own. Without it `cse` would merge views of buffers that follow each other in the same bytes.
constexpr StringLiteral bufferName = "remat.buffer";
/// What `malloc` aligns to where an allocation says nothing.
constexpr uint64_t usualAlignment = 16;

enum class Obstacle : int32_t { None = 0, DynamicSize = 1, OtherMemory = 2, Layout = 3, Element = 4 };

/// What is said about an allocation; bytes and alignment only where there is no obstacle.
struct AllocationFacts {
  Obstacle obstacle;
  int64_t bytes;
  int64_t alignment;
};

/// What is said about a view of bytes; negative where it is not known before the program runs.
struct ViewFacts {
  int64_t offset;
  int64_t bytes;
  /// What elements need.
  int64_t alignment;
  /// The number of the buffer.
  int64_t buffer;
};

/// Elements from the first byte of the buffer to the end of the last element; nothing if a stride is not static or negative.
std::optional<int64_t> spanOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset) || offset < 0)
    return std::nullopt;
  std::optional<int64_t> last = offset;
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (extent == 0)
      return 0;
    if (ShapedType::isDynamic(stride) || stride < 0)
      return std::nullopt;
    std::optional<int64_t> reach = llvm::checkedMul(extent - 1, stride);
    last = last && reach ? llvm::checkedAdd(*last, *reach) : std::nullopt;
  }
  return last ? llvm::checkedAdd<int64_t>(*last, 1) : std::nullopt;
}

/// The elements of the type in a row.
MemRefType inARow(MemRefType type, int64_t elements) { return MemRefType::get({elements}, type.getElementType()); }

/// 1 for types of unknown size.
int64_t alignmentOf(Type element, const DataLayout &layout) {
  return remat::getElementStride(element, layout) ? layout.getTypeABIAlignment(element) : 1;
}

void describe(memref::AllocOp op, AllocationFacts &facts) {
  MemRefType type = op.getType();
  DataLayout layout = DataLayout::closest(op);
  std::optional<int64_t> elements = type.hasStaticShape() ? spanOf(type) : std::nullopt;
  std::optional<int64_t> bytes = elements ? remat::getBufferBytes(inARow(type, *elements), layout) : std::nullopt;
  if (!type.hasStaticShape() || !op.getSymbolOperands().empty())
    facts.obstacle = Obstacle::DynamicSize;
  else if (type.getMemorySpace())
    facts.obstacle = Obstacle::OtherMemory;
  else if (!elements)
    facts.obstacle = Obstacle::Layout;
  else if (!bytes)
    facts.obstacle = Obstacle::Element;
  else
    facts = {Obstacle::None, *bytes,
             static_cast<int64_t>(std::max<uint64_t>(op.getAlignment().value_or(usualAlignment), alignmentOf(type.getElementType(), layout)))};
}

MemRefType bytesType(MLIRContext *context, int64_t bytes) { return MemRefType::get({bytes}, IntegerType::get(context, 8)); }

} // namespace

extern "C" {

/// False for operations that allocate no buffer on the heap.
bool rematDescribeAllocation(MlirOperation raw, AllocationFacts *facts) {
  auto op = dyn_cast<memref::AllocOp>(unwrap(raw));
  *facts = AllocationFacts{};
  if (op)
    describe(op, *facts);
  return static_cast<bool>(op);
}

/// False for operations that are no view of bytes.
bool rematDescribeView(MlirOperation raw, ViewFacts *facts) {
  auto op = dyn_cast<memref::ViewOp>(unwrap(raw));
  *facts = ViewFacts{-1, -1, 1, -1};
  if (!op)
    return false;
  APInt shift;
  if (matchPattern(op.getByteShift(), m_ConstantInt(&shift)) && shift.isSignedIntN(64))
    facts->offset = shift.getSExtValue();
  DataLayout layout = DataLayout::closest(op);
  facts->bytes = remat::getBufferBytes(op.getType(), layout).value_or(-1);
  facts->alignment = alignmentOf(op.getType().getElementType(), layout);
  if (auto buffer = op->getAttrOfType<IntegerAttr>(bufferName))
    facts->buffer = buffer.getInt();
  return true;
}

/// The bytes of a block; negative for values that are none.
int64_t rematBlockBytes(MlirValue raw) {
  Value value = unwrap(raw);
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || type.getRank() != 1 || !type.hasStaticShape() || !type.getElementType().isInteger(8))
    return -1;
  bool isBlock = false;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    isBlock = function && argument.getOwner()->isEntryBlock() && function.getArgAttr(argument.getArgNumber(), blockName);
  } else {
    isBlock = isa<memref::AllocOp>(value.getDefiningOp()) && value.getDefiningOp()->hasAttr(blockName);
  }
  return isBlock ? type.getDimSize(0) : -1;
}

/// A block that is allocated before `first` and freed after `last`; where these are null, at the start of the function and before it returns.
MlirValue rematAllocateBlock(MlirOperation raw, MlirOperation first, MlirOperation last, int64_t bytes, int64_t alignment) {
  auto function = cast<FunctionOpInterface>(unwrap(raw));
  Region &body = function.getFunctionBody();
  OpBuilder builder(function.getContext());
  if (first.ptr)
    builder.setInsertionPoint(unwrap(first));
  else
    builder.setInsertionPointToStart(&body.front());
  auto block = memref::AllocOp::create(builder, function.getLoc(), bytesType(builder.getContext(), bytes), builder.getI64IntegerAttr(alignment));
  block->setAttr(blockName, builder.getUnitAttr());
  auto freeIt = [&] { memref::DeallocOp::create(builder, function.getLoc(), block); };
  if (last.ptr) {
    builder.setInsertionPointAfter(unwrap(last));
    freeIt();
    return wrap(block.getResult());
  }
  for (Block &each : body)
    if (each.getTerminator()->getNumSuccessors() == 0) {
      builder.setInsertionPoint(each.getTerminator());
      freeIt();
    }
  return wrap(block.getResult());
}

/// A block that the callers hand over, as a last argument; null if the function takes none.
MlirValue rematAppendBlock(MlirOperation raw, int64_t bytes, int64_t alignment) {
  auto function = cast<FunctionOpInterface>(unwrap(raw));
  OpBuilder builder(function.getContext());
  auto marked = builder.getDictionaryAttr(builder.getNamedAttr(blockName, builder.getUnitAttr()));
  unsigned position = function.getNumArguments();
  if (failed(function.insertArgument(position, bytesType(builder.getContext(), bytes), marked, function.getLoc())))
    return MlirValue{nullptr};
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  Value block = function.getArgument(position);
  return wrap(memref::AssumeAlignmentOp::create(builder, function.getLoc(), block, alignment).getResult());
}

/// Puts a view of the block in the place of an allocation, and takes its deallocation out.
void rematPlaceAllocation(MlirOperation raw, MlirOperation dealloc, MlirValue block, int64_t offset, int64_t buffer) {
  auto op = cast<memref::AllocOp>(unwrap(raw));
  MemRefType type = op.getType();
  OpBuilder builder(op);
  Location location = op.getLoc();
  Value shift = arith::ConstantIndexOp::create(builder, location, offset);
  MemRefType row = type.getLayout().isIdentity() ? type : inARow(type, spanOf(type).value_or(0));
  auto view = memref::ViewOp::create(builder, location, row, unwrap(block), shift, ValueRange{});
  view->setAttr(bufferName, builder.getI64IntegerAttr(buffer));
  Value value = view;
  if (row != type) {
    auto [strides, start] = type.getStridesAndOffset();
    value = memref::ReinterpretCastOp::create(builder, location, type, value, start, type.getShape(), strides);
  }
  op.getResult().replaceAllUsesWith(value);
  op.erase();
  unwrap(dealloc)->erase();
}

} // extern "C"
