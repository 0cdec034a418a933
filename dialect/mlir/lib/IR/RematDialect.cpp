//===- RematDialect.cpp - dialect, attributes and types of `remat` --------===//

#include "Remat/RematDialect.h"

#include "Remat/RematOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace remat;

#include "Remat/RematDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Remat/RematAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "Remat/RematTypes.cpp.inc"

void RematDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Remat/RematOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Remat/RematAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "Remat/RematTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Whether a data layout knows the size of a type by itself; it ends the process where it is asked for another one.
static bool hasSize(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return hasSize(complex.getElementType());
  return isa<IntegerType, FloatType, IndexType>(element);
}

std::optional<int64_t> remat::getElementStride(Type element, const DataLayout &layout) {
  if (!hasSize(element))
    return std::nullopt;
  return llvm::alignTo(layout.getTypeSize(element).getFixedValue(), layout.getTypeABIAlignment(element));
}

std::optional<int64_t> remat::getBufferBytes(ShapedType type, const DataLayout &layout) {
  if (!type.hasStaticShape())
    return std::nullopt;
  std::optional<int64_t> bytes = getElementStride(type.getElementType(), layout);
  for (int64_t extent : type.getShape())
    if (bytes)
      bytes = llvm::checkedMul(*bytes, extent);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// What keeps a tensor from being put into a page; null if nothing does.
static const char *whyNoPageHolds(RankedTensorType tensor) {
  if (!tensor.hasStaticShape())
    return "a page needs a static shape";
  if (tensor.getEncoding())
    return "a page needs a tensor without encoding";
  if (!hasSize(tensor.getElementType()))
    return "a page needs elements with a size";
  if (!getBufferBytes(tensor, DataLayout()))
    return "a page needs a size below 2^63 bytes";
  return nullptr;
}

bool PageType::holds(RankedTensorType tensor) { return !whyNoPageHolds(tensor); }

LogicalResult PageType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor) {
  if (const char *reason = whyNoPageHolds(tensor))
    return emitError() << reason << ", got `" << tensor << "`";
  return success();
}

/// The buffer of a page: contiguous, in the second memory.
static MemRefType bufferOf(PageType page) {
  RankedTensorType tensor = page.getTensor();
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), MemRefLayoutAttrInterface(),
                         SecondAttr::get(page.getContext()));
}

FailureOr<bufferization::BufferLikeType> PageType::getBufferType(const bufferization::BufferizationOptions &,
                                                                 function_ref<InFlightDiagnostic()>) const {
  return cast<bufferization::BufferLikeType>(bufferOf(*this));
}

LogicalResult PageType::verifyCompatibleBufferType(bufferization::BufferLikeType buffer,
                                                   function_ref<InFlightDiagnostic()> emitError) const {
  if (buffer == bufferOf(*this))
    return success();
  return emitError() << "a page of `" << getTensor() << "` lies in `" << bufferOf(*this) << "`, not in `" << buffer
                     << "`";
}
