//===- Lowered.cpp - what a function takes once it is lowered -------------===//
//
// A copy of the function goes through the passes that make buffers of its tensors, and its allocations and deallocations are added up. So
// destinations, results written in place and shared empty tensors count as bufferization treats them, not as a model of it does.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Threading.h"

#include "Remat/RematDialect.h"

using namespace mlir;

namespace {

/// Bytes of a buffer in the default memory; those of others take none of it.
std::optional<int64_t> bytesOf(MemRefType type) {
  if (type.getMemorySpace())
    return 0;
  return remat::getBufferBytes(type, DataLayout());
}

/// What a block takes beyond what was there before: at its peak, and at its end.
struct Taken {
  int64_t peak = 0;
  int64_t left = 0;
};

std::optional<Taken> takenBy(Block &block);

/// What the regions of an operation take; nothing is known where they leave different amounts behind, which data decide.
std::optional<Taken> takenInside(Operation &op) {
  Taken all;
  bool first = true;
  for (Region &region : op.getRegions()) {
    Taken own;
    if (!region.empty()) {
      std::optional<Taken> taken = region.hasOneBlock() ? takenBy(region.front()) : std::nullopt;
      if (!taken)
        return std::nullopt;
      own = *taken;
    }
    if (!first && own.left != all.left)
      return std::nullopt;
    first = false;
    all.left = own.left;
    all.peak = std::max(all.peak, own.peak);
  }
  if (all.left != 0 && !isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op))
    return std::nullopt;
  return all;
}

/// Bytes that an operation allocates (above zero) or frees (below).
std::optional<int64_t> changeBy(Operation &op) {
  if (isa<memref::AllocOp, bufferization::CloneOp>(op)) {
    auto type = dyn_cast<MemRefType>(op.getResult(0).getType());
    return type ? bytesOf(type) : std::nullopt;
  }
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    Value freed = dealloc.getMemref();
    while (auto metadata = freed.getDefiningOp<memref::ExtractStridedMetadataOp>())
      freed = metadata.getSource();
    auto type = dyn_cast<MemRefType>(freed.getType());
    Operation *maker = freed.getDefiningOp();
    bool isWhole = isa_and_nonnull<memref::AllocOp, bufferization::CloneOp, scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(maker);
    std::optional<int64_t> bytes = type && isWhole ? bytesOf(type) : std::nullopt;
    return bytes ? std::optional<int64_t>(-*bytes) : std::nullopt;
  }
  if (isa<memref::ReallocOp, bufferization::DeallocOp, CallOpInterface>(op))
    return std::nullopt;
  return 0;
}

std::optional<Taken> takenBy(Block &block) {
  Taken taken;
  for (Operation &op : block) {
    std::optional<int64_t> change = changeBy(op);
    std::optional<Taken> inside = takenInside(op);
    if (!change || !inside)
      return std::nullopt;
    std::optional<int64_t> during = llvm::checkedAdd(taken.left, inside->peak);
    std::optional<int64_t> left = llvm::checkedAdd(taken.left, *change + inside->left);
    if (!during || !left)
      return std::nullopt;
    taken.left = *left;
    taken.peak = std::max({taken.peak, *during, *left});
  }
  return taken;
}

/// Whether bufferization knows all operations on tensors in the function, and no other function is asked for.
bool isReady(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return false;
  auto isTensor = llvm::IsaPred<TensorType>;
  WalkResult walked = function.walk([&](Operation *op) {
    bool onTensors = llvm::any_of(op->getOperandTypes(), isTensor) || llvm::any_of(op->getResultTypes(), isTensor);
    bool isKnown = op->isRegistered() && !isa<CallOpInterface>(op) && (!onTensors || isa<bufferization::BufferizableOpInterface>(op));
    return isKnown ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

} // namespace

extern "C" {

/// Bytes of the heap at the peak of the function, its results included, once the passes of the documented pipeline have made buffers of its
/// tensors; -1 where they do not take the function as it stands, or where data decide what is freed when.
int64_t rematLoweredPeak(MlirOperation raw) {
  auto function = dyn_cast<func::FuncOp>(unwrap(raw));
  if (!function || function.isExternal() || !isReady(function))
    return -1;
  MLIRContext *context = function.getContext();
  // What is wrong with the copy is said once the function itself is lowered.
  uint64_t thread = llvm::get_threadid();
  ScopedDiagnosticHandler silence(context, [thread](Diagnostic &) { return success(llvm::get_threadid() == thread); });
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  module->push_back(function.clone());
  PassManager passes(context, ModuleOp::getOperationName());
  passes.enableVerifier(false);
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  passes.addPass(bufferization::createOneShotBufferizePass(options));
  bufferization::buildBufferDeallocationPipeline(passes);
  passes.addNestedPass<func::FuncOp>(bufferization::createOptimizeAllocationLivenessPass());
  if (failed(passes.run(*module)))
    return -1;
  auto functions = module->getOps<func::FuncOp>();
  if (!llvm::hasSingleElement(functions))
    return -1;
  std::optional<Taken> taken = takenBy((*functions.begin()).getBody().front());
  return taken ? taken->peak : -1;
}

/// Gives a function the body of its copy, which has none then.
void rematRestore(MlirOperation function, MlirOperation copy) {
  for (auto [region, before] : llvm::zip(unwrap(function)->getRegions(), unwrap(copy)->getRegions()))
    region.takeBody(before);
}

/// Puts an allocation in the place of each empty tensor, right before its first reader: equal allocations are never merged.
void rematOwnEmpties(MlirOperation function) {
  unwrap(function)->walk([](tensor::EmptyOp empty) {
    Block *block = empty->getBlock();
    Operation *first = nullptr;
    for (Operation *user : empty->getUsers()) {
      Operation *reader = block->findAncestorOpInBlock(*user);
      if (!reader)
        return;
      if (!first || reader->isBeforeInBlock(first))
        first = reader;
    }
    if (!first)
      return;
    OpBuilder builder(first);
    auto own = bufferization::AllocTensorOp::create(builder, empty.getLoc(), empty.getType(), empty.getDynamicSizes());
    empty.getResult().replaceAllUsesWith(own.getResult());
    empty.erase();
  });
}

/// Whether the function allocates buffers: it is bufferized already.
bool rematAllocatesBuffers(MlirOperation function) {
  return unwrap(function)->walk([](memref::AllocOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

} // extern "C"
