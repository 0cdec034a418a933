//===- Queries.cpp - What cost models and messages need -------------------===//
//
// Loop ranges and bodies of operations, and diagnostics of all severities, as plain C functions. The Rust side declares them in
// `src/ffi.rs`; the struct is the same there, field by field. Effects and aliases are in `Remat/RematCAPI.h`.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

extern "C" MlirAttribute rematAttributes(MlirOperation raw);

namespace {

/// What is said about an operation.
struct OpFacts {
  bool registered;
  /// A structured operation; the next four fields speak of it.
  bool structured;
  bool reduces;
  bool contracts;
  bool transcendental;
  /// Runs of the body; negative where a loop range is not static.
  int64_t iterations;
  /// Arithmetic operations of one run of the body.
  int64_t bodyOps;
  /// How often the regions run, where that is known; else 1.
  int64_t trips;
};

/// What a function of `math` counts as, in operations.
constexpr int64_t operationsOfTranscendental = 32;

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
    StringRef name = body.getName().getStringRef();
    multiplies |= name.starts_with("arith.mul");
    adds |= name.starts_with("arith.add");
    bool transcendental = name.starts_with("math.") && name != "math.absf" && name != "math.fma";
    facts.transcendental |= transcendental;
    facts.bodyOps += transcendental ? operationsOfTranscendental : 1;
  }
  facts.contracts = facts.reduces && multiplies && adds;
}

/// Adds `expr` times `scale` to a row: a coefficient for each loop, then a constant. False where the expression is no such sum.
bool addLinear(AffineExpr expr, int64_t scale, MutableArrayRef<int64_t> row) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    row[dim.getPosition()] += scale;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    row.back() += scale * constant.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  AffineExpr left = binary.getLHS(), right = binary.getRHS();
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(left, scale, row) && addLinear(right, scale, row);
  if (binary.getKind() != AffineExprKind::Mul)
    return false;
  if (isa<AffineConstantExpr>(left))
    std::swap(left, right);
  auto factor = dyn_cast<AffineConstantExpr>(right);
  return factor && addLinear(left, scale * factor.getValue(), row);
}

/// The rows of a map, one after the other.
std::optional<SmallVector<int64_t>> rowsOf(AffineMap map) {
  if (map.getNumSymbols() != 0)
    return std::nullopt;
  size_t width = map.getNumDims() + 1;
  SmallVector<int64_t> rows(map.getNumResults() * width, 0);
  for (auto [index, expr] : llvm::enumerate(map.getResults()))
    if (!addLinear(expr, 1, MutableArrayRef<int64_t>(rows).slice(index * width, width)))
      return std::nullopt;
  return rows;
}

/// The constant that a loop of StableHLO compares with to go on while it is above a counter: what `jax.lax.scan` becomes, which counts from 0 by
/// ones. 1 for other conditions.
int64_t tripsOfWhile(Operation *loop) {
  if (loop->getNumRegions() == 0 || loop->getRegion(0).empty() || loop->getRegion(0).front().empty())
    return 1;
  Operation &end = loop->getRegion(0).front().back();
  Operation *compare = end.getNumOperands() == 1 ? end.getOperand(0).getDefiningOp() : nullptr;
  if (!compare || compare->getName().getStringRef() != "stablehlo.compare" || compare->getNumOperands() != 2)
    return 1;
  Operation *limit = compare->getOperand(1).getDefiningOp();
  if (!limit || limit->getName().getStringRef() != "stablehlo.constant")
    return 1;
  auto all = cast<DictionaryAttr>(unwrap(rematAttributes(wrap(limit))));
  auto value = all.getAs<DenseIntElementsAttr>("value");
  if (!value || !value.isSplat())
    return 1;
  APInt trips = value.getSplatValue<APInt>();
  return trips.isStrictlyPositive() && trips.isSignedIntN(62) ? trips.getSExtValue() : 1;
}

/// How a softmax indexes its operands and its result, as `rowsOf`. The axis that it sums over belongs to no loop: it is never cut.
SmallVector<int64_t> rowsOfSoftmax(linalg::SoftmaxOp op) {
  int64_t rank = op.getInputOperandRank(), width = rank + 1;
  SmallVector<int64_t> rows(rank * width, 0);
  for (auto [axis, kind] : llvm::enumerate(op.getLoopIteratorTypes()))
    rows[axis * width + axis] = kind == utils::IteratorType::parallel;
  return rows;
}

/// Tensors of static shape without an encoding, and scalars.
bool isPlain(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.hasStaticShape() && !tensor.getEncoding();
  return !isa<ShapedType>(type);
}

} // namespace

extern "C" {

/// Tells how a structured operation with one result, or a softmax, runs over tensors of static shape: the extents of its loops (number -1), how it
/// indexes its result (-2), and how it indexes each operand (its number). A map is told as a row for each axis: a coefficient for each loop, then
/// a constant. Nothing is told, and false returned, where an index is another function of the loops, or the body looks at the loops.
bool rematForEachIndexing(MlirOperation raw, void (*tell)(intptr_t number, const int64_t *values, intptr_t count, void *found),
                          void *found) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(unwrap(raw))) {
    if (softmax->getNumResults() != 1 || !llvm::all_of(softmax->getOperandTypes(), isPlain))
      return false;
    ArrayRef<int64_t> shape = softmax.getInputOperandType().getShape();
    SmallVector<int64_t> rows = rowsOfSoftmax(softmax);
    tell(-1, shape.data(), shape.size(), found);
    for (intptr_t number : {-2, 0, 1})
      tell(number, rows.data(), rows.size(), found);
    return true;
  }
  auto op = dyn_cast<linalg::LinalgOp>(unwrap(raw));
  if (!op || op->getNumResults() != 1 || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics() || op.hasIndexSemantics())
    return false;
  if (!llvm::all_of(op->getOperandTypes(), isPlain))
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (llvm::any_of(extents, ShapedType::isDynamic))
    return false;
  SmallVector<SmallVector<int64_t>> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<SmallVector<int64_t>> rows = rowsOf(op.getMatchingIndexingMap(&operand));
    if (!rows)
      return false;
    maps.push_back(std::move(*rows));
  }
  tell(-1, extents.data(), extents.size(), found);
  SmallVector<int64_t> &result = maps[op.getDpsInitOperand(0)->getOperandNumber()];
  tell(-2, result.data(), result.size(), found);
  for (auto [number, rows] : llvm::enumerate(maps))
    tell(number, rows.data(), rows.size(), found);
  return true;
}


void rematDescribeOp(MlirOperation raw, OpFacts *facts) {
  Operation *op = unwrap(raw);
  *facts = OpFacts{};
  facts->trips = 1;
  facts->registered = op->isRegistered();
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    describeStructured(structured, *facts);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (trips && trips->isIntN(62))
      facts->trips = trips->getSExtValue();
  }
  if (op->getName().getStringRef() == "stablehlo.while")
    facts->trips = tripsOfWhile(op);
}

/// All attributes of an operation as a dictionary; those that an operation which is not registered holds as properties are among them.
MlirAttribute rematAttributes(MlirOperation raw) {
  Operation *op = unwrap(raw);
  if (op->isRegistered())
    return wrap(Attribute(op->getAttrDictionary()));
  NamedAttrList all(op->getDiscardableAttrDictionary());
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    for (NamedAttribute attribute : properties)
      all.set(attribute.getName(), attribute.getValue());
  return wrap(Attribute(all.getDictionary(op->getContext())));
}

bool rematIsFunction(MlirOperation raw) { return isa<FunctionOpInterface>(unwrap(raw)); }

/// Severities: 0 remark, 1 warning, 2 error. At the location only: the operation may be a function of many thousand lines.
void rematEmit(MlirOperation raw, int32_t severity, const char *text, size_t length) {
  Location location = unwrap(raw)->getLoc();
  StringRef message(text, length);
  switch (severity) {
  case 0:
    emitRemark(location, message);
    return;
  case 1:
    emitWarning(location, message);
    return;
  default:
    emitError(location, message);
    return;
  }
}

} // extern "C"
