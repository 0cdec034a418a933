// A program of somebody else: builds a function with the dialect, prints it, and keeps a page.
#include "Remat/RematOps.h"
#include "Remat/RematRuntime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

int main() {
  MLIRContext context;
  context.loadDialect<remat::RematDialect, func::FuncDialect>();
  OpBuilder builder(&context);
  Location location = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToEnd(module->getBody());
  auto tensor = RankedTensorType::get({4, 4}, builder.getF32Type());
  auto function = func::FuncOp::create(builder, location, "scheduled", builder.getFunctionType(tensor, tensor));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  Value page = remat::PageOutOp::create(builder, location, remat::PageType::get(tensor), function.getArgument(0));
  Value back = remat::PageInOp::create(builder, location, tensor, page);
  Value fenced = remat::RecomputeOp::create(builder, location, back, 1, StringAttr());
  func::ReturnOp::create(builder, location, fenced);
  if (failed(verify(*module)))
    return 1;
  module->print(llvm::outs());

  float there[4] = {1, 2, 3, 4}, here[4] = {};
  intptr_t bytes = sizeof there, handle = remat_page_create(bytes);
  remat_page_write(handle, reinterpret_cast<intptr_t>(there), bytes);
  remat_page_read(handle, reinterpret_cast<intptr_t>(here), bytes);
  remat_page_destroy(handle);
  return here[3] == 4 ? 0 : 2;
}
