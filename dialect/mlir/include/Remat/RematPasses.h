//===- RematPasses.h - passes that need no scheduler ------------*- C++ -*-===//

#ifndef REMAT_REMATPASSES_H
#define REMAT_REMATPASSES_H

#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace remat {

/// Whether the function keeps what the pass `remat-verify-lifetimes` checks; says what it breaks, all of it, where it does.
mlir::LogicalResult verifyLifetimes(mlir::FunctionOpInterface function);

#define GEN_PASS_DECL
#include "Remat/RematPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "Remat/RematPasses.h.inc"

} // namespace remat

#endif // REMAT_REMATPASSES_H
