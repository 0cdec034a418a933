//===- RematOps.h - operations of `remat` -----------------------*- C++ -*-===//

#ifndef REMAT_REMATOPS_H
#define REMAT_REMATOPS_H

#include "Remat/RematDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#define GET_OP_CLASSES
#include "Remat/RematOps.h.inc"

#endif // REMAT_REMATOPS_H
