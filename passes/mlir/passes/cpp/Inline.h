//===- Inline.h - The pass `remat-inline` -----------------------*- C++ -*-===//

#ifndef REMAT_MLIR_PASSES_INLINE_H
#define REMAT_MLIR_PASSES_INLINE_H

/// Registers the pass with the process.
void rematRegisterInline();

#endif // REMAT_MLIR_PASSES_INLINE_H
