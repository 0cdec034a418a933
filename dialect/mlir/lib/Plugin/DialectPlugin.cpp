//===- DialectPlugin.cpp - the dialect as a plugin of its own -------------===//
//
// What `mlir-opt --load-dialect-plugin` and `--load-pass-plugin` load where only the dialect is wanted, built without cargo.
//
//===----------------------------------------------------------------------===//

#include "Remat/RematCAPI.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "RematDialect", LLVM_VERSION_STRING,
          [](DialectRegistry *registry) { rematRegisterDialect(wrap(registry)); }};
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "RematDialect", LLVM_VERSION_STRING, [] { rematRegisterTransforms(); }};
}
