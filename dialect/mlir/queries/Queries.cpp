//===- Queries.cpp - What MLIR's C API does not say about operations ------===//
//
// Side effects, aliases and loop ranges of operations, and diagnostics of all severities, as plain C functions. The Rust side
// declares them in `src/ffi.rs`; the structs below are the same there, field by field.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace {

/// What is said about an operation.
struct OpFacts {
  bool registered;
  /// Neither reads nor writes memory, its regions included.
  bool effectFree;
  bool constantLike;
  /// A structured operation; the next four fields speak of it.
  bool structured;
  bool reduces;
  bool contracts;
  bool transcendental;
  /// Runs of the body; negative where a loop range is not static.
  int64_t iterations;
  /// Arithmetic operations in the body.
  int64_t bodyOps;
  /// How often the regions run, where that is known; else 1.
  int64_t trips;
};

/// What is said about an operand.
struct OperandFacts {
  /// Result that may live in the operand's memory; negative where there is none.
  int64_t aliasedResult;
  /// The operation writes into the operand's memory.
  bool writes;
};

void describeStructured(linalg::LinalgOp op, OpFacts &facts) {
  facts.structured = true;
  facts.reduces = op.getNumReductionLoops() > 0;
  facts.iterations = 1;
  for (int64_t range : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(range) || __builtin_mul_overflow(facts.iterations, range, &facts.iterations)) {
      facts.iterations = -1;
      break;
    }
  }
  bool multiplies = false, adds = false;
  for (Operation &body : op.getBlock()->without_terminator()) {
    ++facts.bodyOps;
    StringRef name = body.getName().getStringRef();
    multiplies |= name.starts_with("arith.mul");
    adds |= name.starts_with("arith.add");
    facts.transcendental |= name.starts_with("math.") && name != "math.absf" && name != "math.fma";
  }
  facts.contracts = facts.reduces && multiplies && adds;
}

} // namespace

extern "C" {

void rematDescribeOp(MlirOperation raw, OpFacts *facts) {
  Operation *op = unwrap(raw);
  *facts = OpFacts{};
  facts->trips = 1;
  facts->registered = op->isRegistered();
  facts->effectFree = isMemoryEffectFree(op);
  facts->constantLike = op->hasTrait<OpTrait::ConstantLike>();
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    describeStructured(structured, *facts);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (trips && trips->isIntN(62))
      facts->trips = trips->getSExtValue();
  }
}

void rematDescribeOperand(MlirOperation raw, intptr_t index, OperandFacts *facts) {
  Operation *op = unwrap(raw);
  *facts = OperandFacts{-1, false};
  OpOperand &operand = op->getOpOperand(index);
  // Calls ask for the callee, which a bare analysis state does not hold.
  if (!isa<TensorType>(operand.get().getType()) || isa<CallOpInterface>(op))
    return;
  if (auto destinations = dyn_cast<DestinationStyleOpInterface>(op)) {
    if (destinations.isDpsInit(&operand)) {
      OpResult result = destinations.getTiedOpResult(&operand);
      *facts = OperandFacts{static_cast<int64_t>(result.getResultNumber()), true};
    }
    return;
  }
  auto bufferizable = dyn_cast<bufferization::BufferizableOpInterface>(op);
  if (!bufferizable)
    return;
  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state(options);
  for (const bufferization::AliasingValue &alias : bufferizable.getAliasingValues(operand, state)) {
    if (auto result = dyn_cast<OpResult>(alias.value); result && result.getOwner() == op) {
      *facts = OperandFacts{static_cast<int64_t>(result.getResultNumber()),
                            bufferizable.bufferizesToMemoryWrite(operand, state)};
      return;
    }
  }
}

/// Bits of one element of a tensor in memory; 0 where the type does not say.
int64_t rematElementBits(MlirType raw) {
  Type type = unwrap(raw);
  if (type.isIndex())
    return 64;
  if (type.isIntOrFloat())
    return type.getIntOrFloatBitWidth();
  if (auto complex = dyn_cast<ComplexType>(type); complex && complex.getElementType().isIntOrFloat())
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return 0;
}

bool rematIsFunction(MlirOperation raw) { return isa<FunctionOpInterface>(unwrap(raw)); }

/// Severities: 0 remark, 1 warning, 2 error.
void rematEmit(MlirOperation raw, int32_t severity, const char *text, size_t length) {
  Operation *op = unwrap(raw);
  StringRef message(text, length);
  switch (severity) {
  case 0:
    op->emitRemark(message);
    return;
  case 1:
    op->emitWarning(message);
    return;
  default:
    op->emitError(message);
    return;
  }
}

} // extern "C"
