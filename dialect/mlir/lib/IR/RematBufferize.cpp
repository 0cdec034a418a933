//===- RematBufferize.cpp - how `remat` bufferizes ------------------------===//
//
// Optimization barriers and statements about lifetime disappear; pages become buffers in the second memory. When buffers are freed is left
// to the deallocation pipeline: it alone knows which tensors share one.
//
//===----------------------------------------------------------------------===//

#include "Remat/RematOps.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

using namespace mlir;
using namespace remat;
using bufferization::AliasingValueList;
using bufferization::AnalysisState;
using bufferization::BufferizationOptions;
using bufferization::BufferizationState;
using bufferization::BufferLikeType;
using bufferization::BufferRelation;

//===----------------------------------------------------------------------===//
// RecomputeOp: one buffer under two names
//===----------------------------------------------------------------------===//

bool RecomputeOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return false; }

bool RecomputeOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }

AliasingValueList RecomputeOp::getAliasingValues(OpOperand &, const AnalysisState &) {
  return {{getOperation()->getOpResult(0), BufferRelation::Equivalent}};
}

LogicalResult RecomputeOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                     BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getInput(), options, state);
  if (failed(buffer))
    return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, getOperation(), *buffer);
  return success();
}

//===----------------------------------------------------------------------===//
// DeallocOp and PageDropOp: erased
//===----------------------------------------------------------------------===//

bool DeallocOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return false; }

bool DeallocOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }

AliasingValueList DeallocOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }

LogicalResult DeallocOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &, BufferizationState &) {
  rewriter.eraseOp(getOperation());
  return success();
}

bool PageDropOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return false; }

bool PageDropOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }

AliasingValueList PageDropOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }

LogicalResult PageDropOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &, BufferizationState &) {
  rewriter.eraseOp(getOperation());
  return success();
}

//===----------------------------------------------------------------------===//
// PageOutOp and PageInOp: a new buffer, and a copy into it
//===----------------------------------------------------------------------===//

/// Replaces the only result of `op` by a new buffer that holds what `operand` does.
static LogicalResult bufferizeToCopy(RewriterBase &rewriter, Operation *op, Value operand,
                                     const BufferizationOptions &options, BufferizationState &state) {
  FailureOr<Value> from = getBuffer(rewriter, operand, options, state);
  FailureOr<BufferLikeType> type = bufferization::getBufferType(op->getResult(0), options, state);
  if (failed(from) || failed(type))
    return failure();
  FailureOr<Value> to = options.createAlloc(rewriter, op->getLoc(), cast<MemRefType>(*type), ValueRange());
  if (failed(to) || failed(options.createMemCpy(rewriter, op->getLoc(), *from, *to)))
    return failure();
  bufferization::replaceOpWithBufferizedValues(rewriter, op, *to);
  return success();
}

bool PageOutOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return true; }

bool PageOutOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }

AliasingValueList PageOutOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }

bool PageOutOp::bufferizesToAllocation(Value) { return true; }

// The interface's own answer is for builtin tensors.
FailureOr<BufferLikeType> PageOutOp::getBufferType(Value, const BufferizationOptions &options,
                                                   const BufferizationState &, SmallVector<Value> &) {
  return getPage().getType().getBufferType(options, [&] { return emitOpError(); });
}

LogicalResult PageOutOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                   BufferizationState &state) {
  return bufferizeToCopy(rewriter, getOperation(), getTensor(), options, state);
}

bool PageInOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return true; }

bool PageInOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }

AliasingValueList PageInOp::getAliasingValues(OpOperand &, const AnalysisState &) { return {}; }

bool PageInOp::bufferizesToAllocation(Value) { return true; }

// Contiguous, in the default memory: it is our own allocation.
FailureOr<BufferLikeType> PageInOp::getBufferType(Value, const BufferizationOptions &options,
                                                  const BufferizationState &, SmallVector<Value> &) {
  auto tensor = cast<RankedTensorType>(getTensor().getType());
  std::optional<Attribute> space = options.defaultMemorySpaceFn(tensor);
  if (!space)
    return emitOpError("could not infer the memory space of `") << tensor << "`";
  return cast<BufferLikeType>(bufferization::getMemRefTypeWithStaticIdentityLayout(tensor, *space));
}

LogicalResult PageInOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                  BufferizationState &state) {
  return bufferizeToCopy(rewriter, getOperation(), getPage(), options, state);
}
