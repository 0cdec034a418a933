//===- RematDialect.h - dialect, attributes and types of `remat` -*- C++ -*-===//

#ifndef REMAT_REMATDIALECT_H
#define REMAT_REMATDIALECT_H

#include "mlir/Dialect/Bufferization/IR/BufferizationTypeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
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

} // namespace remat

#endif // REMAT_REMATDIALECT_H
