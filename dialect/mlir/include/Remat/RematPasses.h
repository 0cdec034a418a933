//===- RematPasses.h - passes that need no scheduler ------------*- C++ -*-===//

#ifndef REMAT_REMATPASSES_H
#define REMAT_REMATPASSES_H

#include "mlir/Pass/Pass.h"

namespace remat {

#define GEN_PASS_DECL
#include "Remat/RematPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "Remat/RematPasses.h.inc"

} // namespace remat

#endif // REMAT_REMATPASSES_H
