//===- Passes.cpp - The passes, as MLIR wants to know them ----------------===//
//
// The C API cannot register a pass by name nor give it options, statistics and an interface to run on. This file does that and
// nothing else: every pass hands its function and its options, as text, to the Rust side (`src/bridge.rs`).
//
//===----------------------------------------------------------------------===//

#include "Inline.h"
#include "Lower.h"

#include "Remat/RematCAPI.h"
#include "Remat/RematDialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace {

/// The numbers are those of `Job` in Rust.
enum class Job : int32_t { Rematerialize = 0, Annotate = 1, Place = 2, Verify = 3, Module = 4 };

/// An option, as it stands in a pipeline.
struct OptionText {
  const char *name;
  size_t nameLength;
  const char *value;
  size_t valueLength;
};

/// What a pass found out about a function.
struct PassStatistics {
  uint64_t peakBefore;
  uint64_t peakAfter;
  uint64_t recomputes;
  uint64_t addedTime;
  uint64_t boundOnAddedTime;
  uint64_t block;
  uint64_t load;
  uint64_t placed;
  uint64_t others;
};

using Run = bool (*)(int32_t job, MlirOperation function, const OptionText *options, size_t count, PassStatistics *figures);

/// The Rust side.
Run run = nullptr;

/// A pass on functions whose options are all text: what they mean is said once, in Rust. `On` is the kind of operations that it runs on.
template <typename Derived, Job job, typename On = InterfacePass<FunctionOpInterface>>
struct FunctionPass : PassWrapper<Derived, On> {
  using Base = PassWrapper<Derived, On>;

  FunctionPass() = default;
  FunctionPass(const FunctionPass &other) : Base(other) {}

  /// Those of copies of functions that are lowered to see what they take are among them.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, bufferization::BufferizationDialect, func::FuncDialect, memref::MemRefDialect,
                    remat::RematDialect, scf::SCFDialect, tensor::TensorDialect>();
  }
  /// By the name that pipelines have for it.
  StringRef getName() const override { return this->getArgument(); }

  void runOnOperation() override {
    Operation *op = this->getOperation();
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (function && function.isExternal())
      return;
    SmallVector<OptionText> given;
    for (const Pass::Option<std::string> *option : static_cast<Derived *>(this)->texts())
      if (option->hasValue() || !option->getValue().empty())
        given.push_back({option->ArgStr.data(), option->ArgStr.size(), option->getValue().data(), option->getValue().size()});
    PassStatistics figures{};
    if (!run(static_cast<int32_t>(function ? job : Job::Module), wrap(op), given.data(), given.size(), &figures))
      return this->signalPassFailure();
    static_cast<Derived *>(this)->record(figures);
  }

  void record(const PassStatistics &) {}
};

#define REMAT_OPTION(member, argument, description)                                                                                      \
  Pass::Option<std::string> member { *this, argument, llvm::cl::desc(description), llvm::cl::init("") }

/// How costs and sizes are found; the same for all passes.
#define REMAT_MODEL_OPTIONS                                                                                                              \
  REMAT_OPTION(profile, "profile", "file with measured times per operation");                                                           \
  REMAT_OPTION(device, "device", "device that times are estimated for (default: cpu)");                                                  \
  REMAT_OPTION(dynamicExtent, "dynamic-extent", "what dynamic extents count as")

struct RematPass : FunctionPass<RematPass, Job::Rematerialize, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RematPass)

  RematPass() = default;
  RematPass(const RematPass &other) : FunctionPass(other) {}
  StringRef getArgument() const final { return "remat"; }
  StringRef getDescription() const final { return "Compute tensors again where that keeps the peak of memory within a budget"; }

  /// A function, or a module: then the budget is one for all of its functions.
  bool canScheduleOn(RegisteredOperationName name) const final {
    return name.hasInterface<FunctionOpInterface>() || name.getStringRef() == ModuleOp::getOperationName();
  }

  REMAT_OPTION(budget, "budget", "peak to stay within: 80%, 512MiB, a number of bytes, min, auto or none (default: auto)");
  REMAT_OPTION(maxOverhead, "max-overhead", "time that may be added (default: 5% for budget=auto, no limit for others)");
  REMAT_OPTION(solver, "solver", "solver to use (default: auto)");
  REMAT_OPTION(timeLimit, "time-limit", "longest time to search, per function (default: 10s)");
  REMAT_OPTION(stepLimit, "step-limit", "most search steps to take, per function");
  REMAT_OPTION(threads, "threads", "threads to search with, per function (default: 1)");
  REMAT_OPTION(seed, "seed", "seed of random choices (default: 0)");
  REMAT_OPTION(order, "order", "free, or fixed: first runs keep the order of the function (default: free)");
  REMAT_OPTION(maxComputes, "max-computes", "how often one operation may run at most");
  REMAT_OPTION(paging, "paging", "whether tensors may move to the device's second memory: off, sync, or dma, beside computing (default: off)");
  REMAT_OPTION(tierCapacity, "tier-capacity", "what the second memory holds, 32GB for instance (default: what the device says)");
  REMAT_OPTION(objective, "objective", "what the schedule is to be good at within the budget: time, energy or peak (default: time)");
  REMAT_OPTION(deadline, "deadline", "when it has to have ended, transfers included: 1.5x or 40ms");
  REMAT_OPTION(fission, "fission", "whether operations may run tile by tile: off, exact (every bit stays) or any (default: off)");
  REMAT_OPTION(tiles, "tiles", "numbers of tiles to try, 4,8 for instance");
  REMAT_OPTION(dealloc, "dealloc", "whether remat.dealloc marks where tensors are released (default: true)");
  REMAT_OPTION(remarks, "remarks", "whether a remark says what was done (default: true)");
  REMAT_MODEL_OPTIONS;

  Statistic peakBefore{this, "peak-before", "Bytes of the functions' peaks before"};
  Statistic peakAfter{this, "peak-after", "Bytes of the functions' peaks after"};
  Statistic recomputes{this, "recomputed", "Operations that run again"};
  Statistic addedTime{this, "added-time", "Nanoseconds that recomputing adds, as estimated"};
  Statistic bound{this, "added-time-bound", "Nanoseconds that any schedule within the budgets adds, as proved"};

  SmallVector<const Pass::Option<std::string> *> texts() {
    return {&budget,      &maxOverhead, &solver,  &timeLimit, &stepLimit, &threads,      &seed, &order,
            &maxComputes, &paging, &tierCapacity, &objective, &deadline, &fission, &tiles, &dealloc, &remarks, &profile, &device, &dynamicExtent};
  }

  void record(const PassStatistics &figures) {
    peakBefore += figures.peakBefore;
    peakAfter += figures.peakAfter;
    recomputes += figures.recomputes;
    addedTime += figures.addedTime;
    bound += figures.boundOnAddedTime;
  }
};

struct AnnotatePass : FunctionPass<AnnotatePass, Job::Annotate> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotatePass)

  AnnotatePass() = default;
  AnnotatePass(const AnnotatePass &other) : FunctionPass(other) {}
  StringRef getArgument() const final { return "remat-annotate"; }
  StringRef getDescription() const final { return "Say of every operation what it takes: bytes, time, and memory in use while it runs"; }

  REMAT_MODEL_OPTIONS;

  SmallVector<const Pass::Option<std::string> *> texts() { return {&profile, &device, &dynamicExtent}; }
};

struct PlacePass : FunctionPass<PlacePass, Job::Place> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlacePass)

  PlacePass() = default;
  PlacePass(const PlacePass &other) : FunctionPass(other) {}
  StringRef getArgument() const final { return "remat-place"; }
  StringRef getDescription() const final { return "Give the buffers of a function offsets in one block of memory"; }

  REMAT_OPTION(block, "block", "alloc: the function allocates the block, or argument: it is the last argument (default: alloc)");
  REMAT_OPTION(timeLimit, "time-limit", "longest time to search, per function (default: 10s)");
  REMAT_OPTION(stepLimit, "step-limit", "most tries of a buffer at an offset, per function");
  REMAT_OPTION(seed, "seed", "seed of random choices (default: 0)");
  REMAT_OPTION(remarks, "remarks", "whether remarks say what was placed and what was not (default: true)");

  Statistic blockBytes{this, "block", "Bytes of the blocks"};
  Statistic load{this, "load", "Bytes that the placed buffers need at one time"};
  Statistic placed{this, "placed", "Buffers that became views of a block"};
  Statistic others{this, "others", "Buffers that stay allocated"};

  SmallVector<const Pass::Option<std::string> *> texts() { return {&block, &timeLimit, &stepLimit, &seed, &remarks}; }

  void record(const PassStatistics &figures) {
    blockBytes += figures.block;
    load += figures.load;
    placed += figures.placed;
    others += figures.others;
  }
};

struct VerifyPass : FunctionPass<VerifyPass, Job::Verify> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPass)

  VerifyPass() = default;
  VerifyPass(const VerifyPass &other) : FunctionPass(other) {}
  StringRef getArgument() const final { return "remat-verify"; }
  StringRef getDescription() const final { return "Replay the schedule as it stands, or check the views of blocks, and fail if the budget is exceeded"; }

  REMAT_OPTION(budget, "budget", "peak to stay within, in bytes or as 512MiB (default: what remat noted at the function)");
  REMAT_OPTION(dynamicExtent, "dynamic-extent", "what dynamic extents count as");

  SmallVector<const Pass::Option<std::string> *> texts() { return {&budget, &dynamicExtent}; }
};

} // namespace

extern "C" {

void rematRegisterPasses(Run rust) {
  run = rust;
  PassRegistration<RematPass>();
  PassRegistration<AnnotatePass>();
  PassRegistration<PlacePass>();
  PassRegistration<VerifyPass>();
  rematRegisterInline();
  rematRegisterLower();
  rematRegisterTransforms();
}

void rematInsertDialect(void *registry) { rematRegisterDialect(MlirDialectRegistry{registry}); }

} // extern "C"
