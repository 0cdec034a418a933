//===- RematDialect.cpp - dialect, attributes and types of `remat` --------===//

#include "Remat/RematDialect.h"

#include "Remat/RematOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

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

LogicalResult PageType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor) {
  if (!tensor.hasStaticShape())
    return emitError() << "a page needs a static shape, got `" << tensor << "`";
  if (tensor.getEncoding())
    return emitError() << "a page needs a tensor without encoding, got `" << tensor << "`";
  if (!MemRefType::isValidElementType(tensor.getElementType()))
    return emitError() << "a page needs elements that a buffer can hold, got `" << tensor << "`";
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
  return emitError() << "a page of `" << getTensor() << "` lies in `" << bufferOf(*this) << "`, not in `" << buffer << "`";
}
