//===- LowerPages.cpp - buffers in the second memory become handles -------===//
//
// A conversion of types: a buffer in the second memory becomes an `index`, the handle of a page, wherever it goes (results of functions
// and of control flow too). Only what makes, frees and copies such buffers has patterns; whatever else touches one is an error.
//
//===----------------------------------------------------------------------===//

#include "Remat/RematDialect.h"
#include "Remat/RematPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/Transforms/StructuralTypeConversions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Transforms/DialectConversion.h"

namespace remat {
#define GEN_PASS_DEF_REMATLOWERPAGES
#include "Remat/RematPasses.h.inc"
} // namespace remat

using namespace mlir;
using namespace remat;

static bool isPageBuffer(Type type) {
  auto memref = dyn_cast<BaseMemRefType>(type);
  return memref && isa_and_nonnull<SecondAttr>(memref.getMemorySpace());
}

namespace {

/// Calls of the runtime library; declares its functions in the module when they are first used.
class Runtime {
public:
  explicit Runtime(ModuleOp module) : module(module), symbols(module) {}

  func::CallOp call(OpBuilder &builder, Location location, StringRef name, ValueRange arguments,
                    bool returnsHandle = false) {
    Type index = builder.getIndexType();
    SmallVector<Type> inputs(arguments.size(), index);
    SmallVector<Type> results(returnsHandle ? 1 : 0, index);
    if (!symbols.lookup(name)) {
      auto function = func::FuncOp::create(module.getLoc(), name, builder.getFunctionType(inputs, results));
      function.setPrivate();
      symbols.insert(function, module.getBody()->begin());
    }
    return func::CallOp::create(builder, location, name, results, arguments);
  }

private:
  ModuleOp module;
  SymbolTable symbols;
};

template <typename SourceOp> struct PagePattern : OpConversionPattern<SourceOp> {
  PagePattern(const TypeConverter &converter, MLIRContext *context, Runtime &runtime)
      : OpConversionPattern<SourceOp>(converter, context), runtime(runtime) {}

  Runtime &runtime;
};

struct AllocPattern : PagePattern<memref::AllocOp> {
  using PagePattern::PagePattern;

  LogicalResult matchAndRewrite(memref::AllocOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> bytes = getBufferBytes(op.getType(), DataLayout::closest(op));
    if (!bytes)
      return op.emitOpError("page of unknown size: `") << op.getType() << "`";
    Value size = arith::ConstantIndexOp::create(rewriter, op.getLoc(), *bytes);
    rewriter.replaceOp(op, runtime.call(rewriter, op.getLoc(), "remat_page_create", size, /*returnsHandle=*/true));
    return success();
  }
};

struct DeallocPattern : PagePattern<memref::DeallocOp> {
  using PagePattern::PagePattern;

  LogicalResult matchAndRewrite(memref::DeallocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    runtime.call(rewriter, op.getLoc(), "remat_page_destroy", adaptor.getMemref());
    rewriter.eraseOp(op);
    return success();
  }
};

/// What the deallocation pipeline frees where it must find out at run time who owns a buffer. Nothing of a page is known but its handle.
struct MetadataPattern : PagePattern<memref::ExtractStridedMetadataOp> {
  using PagePattern::PagePattern;

  LogicalResult matchAndRewrite(memref::ExtractStridedMetadataOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!llvm::all_of(op.getResults().drop_front(), [](Value value) { return value.use_empty(); }))
      return op.emitOpError("looks into the layout of a page");
    Value none = arith::ConstantIndexOp::create(rewriter, op.getLoc(), 0);
    SmallVector<Value> replacements(op.getNumResults(), none);
    replacements.front() = adaptor.getSource();
    rewriter.replaceOp(op, replacements);
    return success();
  }
};

/// What it compares for that. A handle does as well.
struct PointerPattern : PagePattern<memref::ExtractAlignedPointerAsIndexOp> {
  using PagePattern::PagePattern;

  LogicalResult matchAndRewrite(memref::ExtractAlignedPointerAsIndexOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

struct CopyPattern : PagePattern<memref::CopyOp> {
  using PagePattern::PagePattern;

  LogicalResult matchAndRewrite(memref::CopyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    bool out = isPageBuffer(op.getTarget().getType());
    if (out && isPageBuffer(op.getSource().getType()))
      return op.emitOpError("copies a page into another one, which no transfer does");
    Value page = out ? adaptor.getTarget() : adaptor.getSource();
    auto memory = cast<TypedValue<BaseMemRefType>>(out ? op.getSource() : op.getTarget());
    auto type = dyn_cast<MemRefType>(memory.getType());
    DataLayout layout = DataLayout::closest(op);
    std::optional<int64_t> bytes = type ? getBufferBytes(type, layout) : std::nullopt;
    if (!bytes)
      return op.emitOpError("transfer of unknown size: `") << memory.getType() << "`";
    Location location = op.getLoc();
    auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(rewriter, location, value); };
    Value pointer = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, location, memory);
    // The common case, and the only one for what bufferization allocates.
    if (type.getLayout().isIdentity()) {
      runtime.call(rewriter, location, out ? "remat_page_write" : "remat_page_read", {page, pointer, constant(*bytes)});
      rewriter.eraseOp(op);
      return success();
    }
    int64_t element = *getElementStride(type.getElementType(), layout);
    auto metadata = memref::ExtractStridedMetadataOp::create(rewriter, location, memory);
    Value offset = arith::MulIOp::create(rewriter, location, metadata.getOffset(), constant(element));
    Value origin = arith::AddIOp::create(rewriter, location, pointer, offset);
    Value extents = storeLayout(op, metadata, rewriter);
    runtime.call(rewriter, location, out ? "remat_page_write_strided" : "remat_page_read_strided",
                 {page, origin, constant(element), constant(type.getRank()), extents});
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Extents and strides on the stack, once for each copy in a function however often it runs; the address as an `index`.
  static Value storeLayout(memref::CopyOp op, memref::ExtractStridedMetadataOp metadata,
                           ConversionPatternRewriter &rewriter) {
    SmallVector<Value> values(metadata.getSizes());
    llvm::append_range(values, metadata.getStrides());
    Location location = op.getLoc();
    Value buffer;
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&op->getParentOfType<FunctionOpInterface>().getFunctionBody().front());
      auto type = MemRefType::get({static_cast<int64_t>(values.size())}, rewriter.getIndexType());
      buffer = memref::AllocaOp::create(rewriter, location, type);
    }
    for (auto [position, value] : llvm::enumerate(values)) {
      Value index = arith::ConstantIndexOp::create(rewriter, location, position);
      memref::StoreOp::create(rewriter, location, value, buffer, index);
    }
    return memref::ExtractAlignedPointerAsIndexOp::create(rewriter, location, buffer);
  }
};

struct LowerPages : remat::impl::RematLowerPagesBase<LowerPages> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion([](BaseMemRefType type) -> std::optional<Type> {
      if (!isPageBuffer(type))
        return std::nullopt;
      return IndexType::get(type.getContext());
    });

    Runtime runtime(getOperation());
    RewritePatternSet patterns(context);
    patterns.add<AllocPattern, DeallocPattern, MetadataPattern, PointerPattern, CopyPattern>(converter, context,
                                                                                             runtime);
    ConversionTarget target(*context);
    target.markUnknownOpDynamicallyLegal([&](Operation *op) { return converter.isLegal(op); });
    // Branches bring the arguments of their blocks along.
    target.addDynamicallyLegalOp<func::FuncOp>(
        [&](func::FuncOp function) { return converter.isSignatureLegal(function.getFunctionType()); });
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    cf::populateCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
