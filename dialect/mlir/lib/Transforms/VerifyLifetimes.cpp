//===- VerifyLifetimes.cpp - nothing is used that was released ------------===//
//
// The rules, in the order of the pass's documentation: ids, uses, owners, regions. All of it is about tensors and pages as the IR has
// them before bufferization; a value that shares its buffer with another one by definition (a view) is the same thing here.
//
//===----------------------------------------------------------------------===//

#include "Remat/RematOps.h"
#include "Remat/RematPasses.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"

namespace remat {
#define GEN_PASS_DEF_REMATVERIFYLIFETIMES
#include "Remat/RematPasses.h.inc"
} // namespace remat

using namespace mlir;
using namespace remat;

namespace {

/// Which values are names for one buffer.
class Views {
public:
  Views() : state(options) {}

  /// The value that the buffer of `value` was made for.
  Value rootOf(Value value) const {
    while (auto result = dyn_cast<OpResult>(value)) {
      OpOperand *viewed = nullptr;
      for (OpOperand &operand : result.getOwner()->getOpOperands())
        if (isView(operand, result, /*onlyDefinite=*/true))
          viewed = &operand;
      if (!viewed)
        break;
      value = viewed->get();
    }
    return value;
  }

  /// All names for the buffer of `root`, itself first, those that only may be one included.
  SmallVector<Value> namesOf(Value root) const {
    llvm::SmallSetVector<Value, 4> names;
    names.insert(root);
    for (size_t next = 0; next < names.size(); ++next)
      for (OpOperand &use : names[next].getUses())
        for (OpResult result : use.getOwner()->getResults())
          if (isView(use, result, /*onlyDefinite=*/false))
            names.insert(result);
    return names.takeVector();
  }

private:
  bool isView(OpOperand &operand, OpResult result, bool onlyDefinite) const {
    auto op = dyn_cast<bufferization::BufferizableOpInterface>(operand.getOwner());
    // Calls need an analysis of what they call; their results are taken for new.
    if (!op || isa<CallOpInterface>(operand.getOwner()) || !isa<TensorType>(operand.get().getType()) ||
        !isa<TensorType>(result.getType()) || op.bufferizesToMemoryWrite(operand, state))
      return false;
    return llvm::any_of(op.getAliasingValues(operand, state), [&](const bufferization::AliasingValue &alias) {
      return alias.value == result && (alias.isDefinite || !onlyDefinite);
    });
  }

  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state;
};

/// One run over a function. All findings are reported, not only the first.
class Verifier {
public:
  explicit Verifier(FunctionOpInterface function) : function(function) {}

  LogicalResult run() {
    function.walk([&](Operation *op) {
      if (auto barrier = dyn_cast<RecomputeOp>(op))
        verifyId(barrier);
      else if (isa<DeallocOp, PageOutOp, PageDropOp>(op))
        verifyReleased(op);
    });
    return failure(broken);
  }

private:
  void verifyId(RecomputeOp barrier) {
    auto [other, isNew] = barriers.try_emplace(barrier.getId(), barrier);
    if (!isNew)
      fail(barrier, "has an id that is taken in this function", other->second, "taken here");
  }

  void verifyReleased(Operation *op) {
    Value root = views.rootOf(op->getOperand(0));
    // Constants are never in the way; releasing one says nothing.
    if (matchPattern(root, m_Constant()))
      return;
    for (Value name : views.namesOf(root))
      for (Operation *user : name.getUsers())
        if (mayFollow(op, user, root))
          fail(user, "uses what was released", op, "released here");
    if (isa<BlockArgument>(root))
      return fail(op, "releases an argument of a block, whose memory belongs to others");
    if (root.getParentRegion() != op->getParentRegion())
      fail(op, "releases in one region what another one made, so perhaps never, or twice", root.getDefiningOp(),
           "made here");
  }

  /// Whether `user` may run after `op` without `root` being made again in between.
  static bool mayFollow(Operation *op, Operation *user, Value root) {
    user = op->getParentRegion()->findAncestorOpInRegion(*user);
    if (!user)
      return false;
    if (user->getBlock() == op->getBlock() && op->isBeforeInBlock(user))
      return true;
    // Nothing reads the root in its own block before it is made there.
    llvm::SmallSetVector<Block *, 8> reached;
    auto reach = [&](Block *block) {
      for (Block *next : block->getSuccessors())
        if (next != root.getParentBlock())
          reached.insert(next);
    };
    reach(op->getBlock());
    for (size_t next = 0; next < reached.size(); ++next)
      reach(reached[next]);
    return reached.contains(user->getBlock());
  }

  void fail(Operation *op, StringRef message) {
    broken = true;
    op->emitOpError(message);
  }

  void fail(Operation *op, StringRef message, Operation *other, StringRef note) {
    broken = true;
    op->emitOpError(message).attachNote(other->getLoc()) << note;
  }

  FunctionOpInterface function;
  Views views;
  DenseMap<uint64_t, Operation *> barriers;
  bool broken = false;
};

struct VerifyLifetimes : remat::impl::RematVerifyLifetimesBase<VerifyLifetimes> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(verifyLifetimes(getOperation())))
      signalPassFailure();
  }
};

} // namespace

LogicalResult remat::verifyLifetimes(FunctionOpInterface function) {
  return Verifier(function).run();
}
