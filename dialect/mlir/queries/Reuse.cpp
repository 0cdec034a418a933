//===- Reuse.cpp - results in the memory of operands that die -------------===//
//
// An operation that computes element by element may write its result where one of its operands is, if nobody reads that later. Bufferization
// does so only where the operand is the destination, so that is what these functions make it. What is allowed here, one-shot analysis finds in
// place: reading and writing the same element in one round of the loops is no conflict for it.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

#include "Remat/RematOps.h"

using namespace mlir;

namespace {

/// A tensor of static shape without contents.
bool isEmpty(Value value) {
  if (auto allocation = value.getDefiningOp<bufferization::AllocTensorOp>())
    return !allocation.getCopy() && allocation.getDynamicSizes().empty();
  auto empty = value.getDefiningOp<tensor::EmptyOp>();
  return empty && empty.getDynamicSizes().empty();
}

/// The only destination of an operation that computes element by element, over tensors of static shape.
OpOperand *onlyDestination(linalg::LinalgOp op) {
  bool isParallel = op.getNumLoops() == op.getNumParallelLoops();
  if (!isParallel || !op.hasPureTensorSemantics() || op->getNumResults() != 1 || op.getNumDpsInits() != 1)
    return nullptr;
  OpOperand *destination = op.getDpsInitOperand(0);
  bool isStatic = cast<RankedTensorType>(destination->get().getType()).hasStaticShape();
  bool isWrittenOnly = !op.payloadUsesValueFromOperand(destination) && op.getMatchingIndexingMap(destination).isIdentity();
  return isStatic && isWrittenOnly ? destination : nullptr;
}

/// Whether a result of this operation may stand where the operand is: each round of the loops reads the element that it writes, and no other.
bool fits(linalg::LinalgOp op, OpOperand &operand, OpOperand &destination) {
  if (&operand == &destination || operand.get().getType() != destination.get().getType())
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &other) {
    return other.get() != operand.get() || op.getMatchingIndexingMap(&other).isIdentity();
  });
}

/// Finds results in the memory of operands, in one function.
class Reuse {
public:
  /// Gives every operation that writes into an empty tensor one of its own, right before it.
  void setApart(Operation *function) {
    SmallVector<OpOperand *> destinations;
    function->walk([&](DestinationStyleOpInterface op) {
      for (OpOperand &destination : op.getDpsInitsMutable())
        if (isEmpty(destination.get()))
          destinations.push_back(&destination);
    });
    for (OpOperand *destination : destinations) {
      Operation *empty = destination->get().getDefiningOp();
      OpBuilder builder(destination->getOwner());
      auto type = cast<RankedTensorType>(destination->get().getType());
      destination->set(bufferization::AllocTensorOp::create(builder, empty->getLoc(), type, ValueRange()).getResult());
      eraseUnused(empty);
    }
  }

  /// Puts results where operands die; returns how many.
  int64_t run(Operation *function) {
    // What follows an operation may be erased, so the walk comes first.
    SmallVector<linalg::LinalgOp> ops;
    function->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    return llvm::count_if(ops, [&](linalg::LinalgOp op) { return overwrites(op); });
  }

private:
  /// Puts the result of an operation where one of its operands dies, if one does.
  bool overwrites(linalg::LinalgOp op) {
    OpOperand *destination = onlyDestination(op);
    if (!destination || !isEmpty(destination->get()))
      return false;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Value dead = operand->get();
      if (!fits(op, *operand, *destination) || !isOwned(dead) || !diesAt(dead, op))
        continue;
      // The memory goes on.
      for (Operation *user : llvm::make_early_inc_range(dead.getUsers()))
        if (isa<remat::DeallocOp>(user))
          user->erase();
      Operation *empty = destination->get().getDefiningOp();
      destination->set(dead);
      eraseUnused(empty);
      return true;
    }
    return false;
  }

  static void eraseUnused(Operation *empty) {
    if (empty->use_empty())
      empty->erase();
  }

  /// Whether the value is in memory that the function allocates for it, or for what it was made of in place.
  bool isOwned(Value value) {
    SmallVector<Value> passed;
    std::optional<bool> owned;
    while (!owned) {
      auto known = ownedBy.find(value);
      if (known != ownedBy.end()) {
        owned = known->second;
        break;
      }
      passed.push_back(value);
      auto maker = value.getDefiningOp<DestinationStyleOpInterface>();
      if (isEmpty(value))
        owned = true;
      else if (!maker || !isa<bufferization::BufferizableOpInterface>(maker.getOperation()))
        owned = false;
      else
        value = maker.getTiedOpOperand(cast<OpResult>(value))->get();
    }
    for (Value each : passed)
      ownedBy[each] = *owned;
    return *owned;
  }

  /// Whether nobody reads the value after the operation, under any name.
  bool diesAt(Value value, linalg::LinalgOp op) const {
    Block *block = op->getBlock();
    if (value.getParentBlock() != block)
      return false;
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (user == op.getOperation() || isa<remat::DeallocOp>(user))
        return true;
      Operation *here = block->findAncestorOpInBlock(*user);
      auto known = dyn_cast<bufferization::BufferizableOpInterface>(user);
      bool isReader = known && !isa<CallOpInterface>(user) && !user->hasTrait<OpTrait::IsTerminator>() &&
                      known.getAliasingValues(use, state).getNumAliases() == 0;
      return here && isReader && here->isBeforeInBlock(op);
    });
  }

  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state{options};
  DenseMap<Value, bool> ownedBy;
};

} // namespace

extern "C" {

/// Puts results of operations that compute element by element into the memory of operands that nobody reads later; returns how many. Empty
/// tensors that several operations write into become one allocation each before.
int64_t rematReuseOperands(MlirOperation function) {
  Reuse reuse;
  reuse.setApart(unwrap(function));
  return reuse.run(unwrap(function));
}

} // extern "C"
