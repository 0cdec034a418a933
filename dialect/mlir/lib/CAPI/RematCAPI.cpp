//===- RematCAPI.cpp - the `remat` dialect, and queries, in C -------------===//

#include "Remat/RematCAPI.h"

#include "Remat/RematOps.h"
#include "Remat/RematPasses.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace remat;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Remat, remat, ::remat::RematDialect)

void rematRegisterDialect(MlirDialectRegistry registry) { unwrap(registry)->insert<RematDialect>(); }

void rematRegisterTransforms() { registerRematPasses(); }

bool rematVerifyLifetimes(MlirOperation op) {
  auto function = dyn_cast<FunctionOpInterface>(unwrap(op));
  if (!function)
    return true;
  return succeeded(verifyLifetimes(function));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

MlirType rematPageTypeGet(MlirType tensor) {
  auto ranked = dyn_cast<RankedTensorType>(unwrap(tensor));
  if (!ranked || !PageType::holds(ranked))
    return MlirType{nullptr};
  return wrap(static_cast<Type>(PageType::get(ranked)));
}

bool rematTypeIsPage(MlirType type) { return isa<PageType>(unwrap(type)); }

MlirType rematPageTypeGetTensor(MlirType page) {
  return wrap(static_cast<Type>(cast<PageType>(unwrap(page)).getTensor()));
}

int64_t rematTypeGetBytes(MlirType type) {
  Type tensor = unwrap(type);
  if (auto page = dyn_cast<PageType>(tensor))
    tensor = page.getTensor();
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  if (!ranked)
    return -1;
  return getBufferBytes(ranked, DataLayout()).value_or(-1);
}

//===----------------------------------------------------------------------===//
// What an operation does
//===----------------------------------------------------------------------===//

bool rematOperationIsMemoryEffectFree(MlirOperation op) { return isMemoryEffectFree(unwrap(op)); }

bool rematOperationIsConstantLike(MlirOperation op) { return unwrap(op)->hasTrait<OpTrait::ConstantLike>(); }

bool rematOperationIsTerminator(MlirOperation op) { return unwrap(op)->hasTrait<OpTrait::IsTerminator>(); }

static RematAliasRelation relationOf(const bufferization::AliasingValue &alias) {
  if (!alias.isDefinite)
    return RematAliasMaybe;
  bool equivalent = alias.relation == bufferization::BufferRelation::Equivalent;
  return equivalent ? RematAliasEquivalent : RematAliasOverlapping;
}

bool rematOperationForEachAlias(MlirOperation wrapped, RematAliasCallback callback, void *userData) {
  Operation *op = unwrap(wrapped);
  auto bufferizable = dyn_cast<bufferization::BufferizableOpInterface>(op);
  // Calls ask the state for an analysis of the called function, which there is none of here.
  if (!bufferizable || isa<CallOpInterface>(op))
    return false;
  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state(options);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<TensorType>(operand.get().getType()))
      continue;
    for (const bufferization::AliasingValue &alias : bufferizable.getAliasingValues(operand, state)) {
      auto result = dyn_cast<OpResult>(alias.value);
      if (!result || result.getOwner() != op)
        continue;
      callback(operand.getOperandNumber(), result.getResultNumber(), relationOf(alias),
               bufferizable.bufferizesToMemoryWrite(operand, state), userData);
    }
  }
  return true;
}
