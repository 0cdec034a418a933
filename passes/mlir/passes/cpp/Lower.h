//===- Lower.h - The pass `remat-lower` -------------------------*- C++ -*-===//

#ifndef REMAT_MLIR_PASSES_LOWER_H
#define REMAT_MLIR_PASSES_LOWER_H

/// Registers the pass with the process.
void rematRegisterLower();

#endif // REMAT_MLIR_PASSES_LOWER_H
