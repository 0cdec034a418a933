//===- Inline.cpp - The pass `remat-inline` -------------------------------===//
//
// JAX writes functions that it calls (`@relu`, `@_where`) as private functions. The pass `inline` of MLIR asks the dialects of all that is moved,
// so it leaves operations of dialects that are not loaded where they are; those of StableHLO may stand anywhere.
//
//===----------------------------------------------------------------------===//

#include "Inline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace {

/// Functions that each call the next one twice must not fill the memory.
constexpr size_t mostCopied = 1'000'000;

struct InlinePass : PassWrapper<InlinePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlinePass)

  StringRef getArgument() const final { return "remat-inline"; }
  StringRef getDescription() const final { return "Put the bodies of private functions in the place of their calls, whatever their dialects"; }

  void runOnOperation() final {
    copied = 0;
    SymbolTable symbols(getOperation());
    llvm::SmallPtrSet<Operation *, 8> done, within;
    for (auto function : getOperation().getOps<func::FuncOp>())
      expand(function, symbols, done, within);
    if (copied > mostCopied) {
      getOperation()->emitError() << "inlining would copy more than " << mostCopied << " operations";
      return signalPassFailure();
    }
    llvm::StringSet<> used = named();
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function.isPrivate() && done.contains(function) && !used.contains(function.getName()))
        function.erase();
  }

  /// The names that attributes of operations refer to, those of dialects that are not loaded among them.
  llvm::StringSet<> named() {
    llvm::StringSet<> used;
    auto collect = [&](Attribute attribute) {
      if (attribute)
        attribute.walk([&](SymbolRefAttr symbol) { used.insert(symbol.getRootReference()); });
    };
    getOperation()->walk([&](Operation *op) {
      collect(op->getDiscardableAttrDictionary());
      collect(op->getPropertiesAsAttribute());
    });
    return used;
  }

  /// Expands the calls in a function, those in the functions that it calls before. Functions that call themselves stay.
  void expand(func::FuncOp function, SymbolTable &symbols, llvm::SmallPtrSetImpl<Operation *> &done,
              llvm::SmallPtrSetImpl<Operation *> &within) {
    if (done.contains(function) || !within.insert(function).second)
      return;
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal() || !callee.isPrivate() || within.contains(callee))
        continue;
      expand(callee, symbols, done, within);
      if (copied > mostCopied)
        return;
      if (llvm::hasSingleElement(callee.getBody()) && isa<func::ReturnOp>(callee.getBody().front().getTerminator()))
        replace(call, callee);
    }
    within.erase(function);
    done.insert(function);
  }

  void replace(func::CallOp call, func::FuncOp callee) {
    OpBuilder builder(call);
    IRMapping mapping;
    Block &body = callee.getBody().front();
    mapping.map(body.getArguments(), call.getOperands());
    for (Operation &op : body.without_terminator()) {
      builder.clone(op, mapping);
      ++copied;
    }
    for (auto [result, returned] : llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(returned));
    call.erase();
  }

  /// Operations that were copied so far.
  size_t copied = 0;
};

} // namespace

void rematRegisterInline() { PassRegistration<InlinePass>(); }
