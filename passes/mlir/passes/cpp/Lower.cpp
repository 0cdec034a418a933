//===- Lower.cpp - The pass `remat-lower` ---------------------------------===//
//
// What tools that do not know the dialect want: the schedule in the order of operations alone.
//
//===----------------------------------------------------------------------===//

#include "Lower.h"

#include "Remat/RematDialect.h"
#include "Remat/RematOps.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace {

struct LowerPass : PassWrapper<LowerPass, InterfacePass<FunctionOpInterface>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerPass)

  StringRef getArgument() const final { return "remat-lower"; }
  StringRef getDescription() const final { return "Take fences and markers out, and give every destination an allocation of its own"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<bufferization::BufferizationDialect>(); }

  void runOnOperation() final {
    getOperation()->walk([](Operation *op) {
      if (auto fence = dyn_cast<remat::RecomputeOp>(op)) {
        fence.getResult().replaceAllUsesWith(fence.getInput());
        fence.erase();
      } else if (isa<remat::DeallocOp>(op)) {
        op->erase();
      } else if (auto destinations = dyn_cast<DestinationStyleOpInterface>(op)) {
        allocate(destinations);
      }
    });
    getOperation()->walk([](tensor::EmptyOp empty) {
      if (empty->use_empty())
        empty.erase();
    });
  }

  /// Empty tensors may be merged, and one buffer would live from the first operation that writes into it to the last. Allocations may not.
  static void allocate(DestinationStyleOpInterface op) {
    for (OpOperand &destination : op.getDpsInitsMutable()) {
      auto empty = destination.get().getDefiningOp<tensor::EmptyOp>();
      if (!empty)
        continue;
      OpBuilder builder(op);
      destination.set(bufferization::AllocTensorOp::create(builder, op->getLoc(), empty.getType(), empty.getDynamicSizes()));
    }
  }
};

} // namespace

void rematRegisterLower() { PassRegistration<LowerPass>(); }
