//===- Lower.cpp - The pass `remat-lower` ---------------------------------===//
//
// What tools that do not know the dialect want: the schedule in the order of operations alone, or in optimization barriers that they know.
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
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace {

/// An operation of a dialect that need not be loaded.
constexpr StringLiteral stablehloBarrier = "stablehlo.optimization_barrier";

struct LowerPass : PassWrapper<LowerPass, InterfacePass<FunctionOpInterface>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerPass)

  StringRef getArgument() const final { return "remat-lower"; }
  StringRef getDescription() const final { return "Take optimization barriers and markers out, and give every destination an allocation of its own"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<bufferization::BufferizationDialect>(); }

  LowerPass() = default;
  LowerPass(const LowerPass &other) : PassWrapper(other) {}

  Option<std::string> barriers{*this, "barriers", llvm::cl::desc("what takes the place of optimization barriers: none, or stablehlo (default: none)"),
                               llvm::cl::init("none")};

  void runOnOperation() final {
    if (barriers == "stablehlo") {
      if (!getContext().allowsUnregisteredDialects() && !getContext().isOperationRegistered(stablehloBarrier)) {
        getOperation()->emitError("`barriers=stablehlo` needs --allow-unregistered-dialect");
        return signalPassFailure();
      }
      getOperation()->walk([](Block *block) { placeBarriers(*block); });
    } else if (barriers != "none") {
      getOperation()->emitError() << "`barriers` is `none` or `stablehlo`, not `" << barriers << "`";
      return signalPassFailure();
    }
    // Without a plan destinations are what bufferization makes of them: sharing them may be what keeps the peak.
    bool isPlanned = getOperation()->walk([](Operation *op) {
      return isa<remat::RecomputeOp, remat::DeallocOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
    }).wasInterrupted();
    getOperation()->walk([isPlanned](Operation *op) {
      if (auto fence = dyn_cast<remat::RecomputeOp>(op)) {
        fence.getResult().replaceAllUsesWith(fence.getInput());
        fence.erase();
      } else if (isa<remat::DeallocOp>(op)) {
        op->erase();
      } else if (auto destinations = dyn_cast<DestinationStyleOpInterface>(op); destinations && isPlanned) {
        allocate(destinations);
      }
    });
    getOperation()->walk([](tensor::EmptyOp empty) {
      if (empty->use_empty())
        empty.erase();
    });
  }

  /// Puts a barrier of StableHLO in the place of every group of fences that stand in a row. The value that was made last before them, and is read
  /// after them, goes through the barrier, too, as `jax.checkpoint` does it with what comes back: so the copies cannot run earlier.
  static void placeBarriers(Block &block) {
    for (Operation *next = block.empty() ? nullptr : &block.front(); next;) {
      SmallVector<Operation *> fences;
      Operation *first = next;
      for (; isa_and_nonnull<remat::RecomputeOp>(next); next = next->getNextNode())
        fences.push_back(next);
      if (fences.empty()) {
        next = next->getNextNode();
        continue;
      }
      SmallVector<Value> inputs, through;
      for (Operation *fence : fences) {
        inputs.push_back(behind(fence, fences));
        if (!llvm::is_contained(through, inputs.back()))
          through.push_back(inputs.back());
      }
      Value last = lastMade(first, fences.back());
      if (last && !llvm::is_contained(through, last))
        through.push_back(last);
      OperationState state(first->getLoc(), stablehloBarrier);
      state.addOperands(through);
      state.addTypes(ValueRange(through).getTypes());
      OpBuilder builder(first);
      Operation *barrier = builder.create(state);
      for (auto [fence, input] : llvm::zip(fences, inputs)) {
        auto number = llvm::find(through, input) - through.begin();
        fence->getResult(0).replaceAllUsesWith(barrier->getResult(number));
      }
      for (Operation *fence : fences)
        fence->erase();
      if (last)
        last.replaceUsesWithIf(barrier->getResult(llvm::find(through, last) - through.begin()), [&](OpOperand &use) {
          Operation *reader = block.findAncestorOpInBlock(*use.getOwner());
          return reader && barrier->isBeforeInBlock(reader);
        });
    }
  }

  /// What a fence reads, behind those of the same group: one barrier takes the place of all.
  static Value behind(Operation *fence, ArrayRef<Operation *> group) {
    Value input = fence->getOperand(0);
    for (Operation *maker = input.getDefiningOp(); maker && llvm::is_contained(group, maker); maker = input.getDefiningOp())
      input = maker->getOperand(0);
    return input;
  }

  /// The last tensor made before the fences that is read after them.
  static Value lastMade(Operation *first, Operation *last) {
    Block *block = first->getBlock();
    for (Operation *op = first->getPrevNode(); op; op = op->getPrevNode()) {
      StringRef name = op->getName().getStringRef();
      // What is there without a run says nothing of the time.
      if (name == stablehloBarrier || op->getNumOperands() == 0 || isa<remat::DeallocOp>(op))
        continue;
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()) && llvm::any_of(result.getUsers(), [&](Operation *user) {
              Operation *reader = block->findAncestorOpInBlock(*user);
              return reader && last->isBeforeInBlock(reader) && !isa<remat::DeallocOp>(reader);
            }))
          return result;
    }
    return nullptr;
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
