//===- RematDialect.h - dialect, attributes and types of `remat` -*- C++ -*-===//

#ifndef REMAT_REMATDIALECT_H
#define REMAT_REMATDIALECT_H

#include "mlir/Dialect/Bufferization/IR/BufferizationTypeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Remat/RematDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Remat/RematAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Remat/RematTypes.h.inc"

namespace remat {

/// The memory that pages lie in. Apart from the default resource, so that transfers do not order accesses to buffers.
struct SecondMemory : mlir::SideEffects::Resource::Base<SecondMemory> {
  llvm::StringRef getName() final { return "remat.SecondMemory"; }
};

/// Bytes from one element of a buffer to the next: whole bytes, and as many as keep the next element aligned, which is what the conversion
/// to LLVM makes of it. Nothing for types without a size of their own.
std::optional<int64_t> getElementStride(mlir::Type element, const mlir::DataLayout &layout);

/// Bytes of a contiguous buffer for the elements of a tensor or buffer. Nothing if the shape is not static, the elements have no size, or
/// the product does not fit.
std::optional<int64_t> getBufferBytes(mlir::ShapedType type, const mlir::DataLayout &layout);

} // namespace remat

#endif // REMAT_REMATDIALECT_H
