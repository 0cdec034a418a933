//===- RematOps.cpp - folds and canonicalizations of `remat` --------------===//

#include "Remat/RematOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace remat;

#define GET_OP_CLASSES
#include "Remat/RematOps.cpp.inc"

OpFoldResult RecomputeOp::fold(FoldAdaptor) {
  // Constants take no part in schedules, and lowerings look for them.
  if (matchPattern(getInput(), m_Constant()))
    return getInput();
  // The id of the outer barrier alone sets the copy apart.
  if (auto inner = getInput().getDefiningOp<RecomputeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

/// Whether the operation is of use only to those that give its results up.
static bool wouldBeDeadWithoutDeallocs(Operation *op) {
  return isMemoryEffectFree(op) && !op->hasTrait<OpTrait::IsTerminator>() &&
         llvm::all_of(op->getUsers(), llvm::IsaPred<DeallocOp>);
}

LogicalResult DeallocOp::canonicalize(DeallocOp op, PatternRewriter &rewriter) {
  Operation *source = op.getTensor().getDefiningOp();
  if (!source)
    return failure();
  bool constant = matchPattern(op.getTensor(), m_Constant());
  // A page that is brought back only to be dropped: reading it has no effect that anybody sees.
  bool dead = wouldBeDeadWithoutDeallocs(source) ||
              (isa<PageInOp>(source) && llvm::all_of(source->getUsers(), llvm::IsaPred<DeallocOp>));
  if (!constant && !dead)
    return failure();
  rewriter.eraseOp(op);
  return success();
}

LogicalResult PageOutOp::canonicalize(PageOutOp op, PatternRewriter &rewriter) {
  if (!llvm::all_of(op->getUsers(), llvm::IsaPred<PageDropOp>))
    return failure();
  for (Operation *drop : llvm::make_early_inc_range(op->getUsers()))
    rewriter.eraseOp(drop);
  rewriter.replaceOpWithNewOp<DeallocOp>(op, op.getTensor());
  return success();
}
