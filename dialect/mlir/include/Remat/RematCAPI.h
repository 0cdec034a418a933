/*===- RematCAPI.h - the `remat` dialect, and queries, in C ------*- C -*-===*/

#ifndef REMAT_REMATCAPI_H
#define REMAT_REMATCAPI_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `mlirGetDialectHandle__remat__`, as every dialect has it. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Remat, remat);

/** Puts the dialect into the registry. What a dialect plugin is handed, a `DialectRegistry *`, is the `ptr` of the handle. */
MLIR_CAPI_EXPORTED void rematRegisterDialect(MlirDialectRegistry registry);

/** Registers the passes of the dialect (`remat-lower-pages`, `remat-verify-lifetimes`) with the process, for textual pipelines. */
MLIR_CAPI_EXPORTED void rematRegisterTransforms(void);

/**
 * Whether a function uses nothing that its schedule has released, and its ids are unique: what the pass `remat-verify-lifetimes` checks.
 * Says at the operations what is wrong. True for operations that are no functions.
 */
MLIR_CAPI_EXPORTED bool rematVerifyLifetimes(MlirOperation function);

/*===----------------------------------------------------------------------===*/
/* Types                                                                      */
/*===----------------------------------------------------------------------===*/

/** The type of the page that holds such a tensor; null if there is none (unranked, dynamic shape, encoding). Says nothing then. */
MLIR_CAPI_EXPORTED MlirType rematPageTypeGet(MlirType tensor);

/** Whether a type is `!remat.page`. */
MLIR_CAPI_EXPORTED bool rematTypeIsPage(MlirType type);

/** The type of the tensor in a page. The type must be a page. */
MLIR_CAPI_EXPORTED MlirType rematPageTypeGetTensor(MlirType page);

/**
 * Bytes of the buffer that a tensor bufferizes to on a machine with the default data layout: an element takes whole bytes, and as many as
 * keep the next one aligned (`i1` one, `i4` one, `i24` four). A page counts as its tensor. Negative where the type says no size:
 * dynamic or unranked shapes, elements of other dialects, products beyond 64 bits, everything that is no tensor.
 */
MLIR_CAPI_EXPORTED int64_t rematTypeGetBytes(MlirType type);

/*===----------------------------------------------------------------------===*/
/* What an operation does                                                     */
/*===----------------------------------------------------------------------===*/

/** Whether running the operation, its regions included, has no effect on memory. Operations that are not registered: false. */
MLIR_CAPI_EXPORTED bool rematOperationIsMemoryEffectFree(MlirOperation op);

/** Whether the operation makes a constant. */
MLIR_CAPI_EXPORTED bool rematOperationIsConstantLike(MlirOperation op);

/** Whether the operation is registered as a terminator. */
MLIR_CAPI_EXPORTED bool rematOperationIsTerminator(MlirOperation op);

/** How the buffers of an operand and a result relate. */
typedef enum RematAliasRelation {
  /** The same buffer, with the same layout. */
  RematAliasEquivalent = 0,
  /** A part of the buffer or another layout of it. */
  RematAliasOverlapping = 1,
  /** Perhaps the same buffer, perhaps another one. */
  RematAliasMaybe = 2,
} RematAliasRelation;

/** One alias: the number of the operand, that of the result, how they relate, and whether the operation writes the operand's buffer. */
typedef void (*RematAliasCallback)(intptr_t operand, intptr_t result, RematAliasRelation relation, bool written,
                                   void *userData);

/**
 * Calls `callback` for every pair of operand and result that may share a buffer once the operation is bufferized in place, operands in
 * order. False, without any call, where nothing is known: operations without bufferization interface, and calls of functions,
 * whose answer depends on the function that is called.
 *
 * A pair that is `written` (the destination of an operation) says that the result *may* be put where the operand is; whether it is,
 * bufferization decides: not if the operand is read later.
 */
MLIR_CAPI_EXPORTED bool rematOperationForEachAlias(MlirOperation op, RematAliasCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* REMAT_REMATCAPI_H */
