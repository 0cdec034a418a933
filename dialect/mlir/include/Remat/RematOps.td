//===- RematOps.td - operations of `remat` --------------------------------===//

#ifndef REMAT_OPS_TD
#define REMAT_OPS_TD

include "Remat/RematBase.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Remat_SecondMemory : Resource<"::remat::SecondMemory">;

class Remat_Op<string mnemonic, list<Trait> traits = [], list<string> furtherBufferizable = []>
  : Op<Remat_Dialect, mnemonic, traits # [
      DeclareOpInterfaceMethods<BufferizableOpInterface,
        ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"] # furtherBufferizable>]>;

/// What may be moved: the same tensors that `!remat.page` takes, so that building a page of them cannot fail.
def Remat_PageableTensor : Type<
    CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
          "::remat::PageType::holds(::llvm::cast<::mlir::RankedTensorType>($_self))">,
    "tensor of static shape, without encoding, of elements with a size", "::mlir::RankedTensorType">;

def Remat_RecomputeOp : Remat_Op<"recompute", [NoMemoryEffect, SameOperandsAndResultType]> {
  let summary = "operand of an operation that runs again";
  let description = [{
    An optimization barrier: an identity that optimizers do not look through. An operation that runs again is a copy of the first one
    that reads one operand through a barrier. Without it, common subexpression elimination would merge the two, and the result that was meant to be freed would stay.

    `id` distinguishes barriers on the same value; it is unique in a function. `of` names the operation that runs again, for people.

    Put a barrier before one operand of the copy, a ranked tensor that is not a constant: lowerings look for constants, and fold them. An operand
    that is itself made by a copy needs no barrier.

    Before, `%0` stays in memory across the operations in the middle:
    ```mlir
    %0 = tosa.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = tosa.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // ...
    %5 = tosa.add %4, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    ```

    After, it is freed and made again:
    ```mlir
    %0 = tosa.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = tosa.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    remat.dealloc %0 : tensor<8x8xf32>
    // ...
    %6 = remat.recompute %x id(1) of("exp") : tensor<8x8xf32>
    %7 = tosa.exp %6 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = tosa.add %4, %7 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    ```

    It has no effects, so that what nobody reads disappears; it is not speculatable, so that it stays where the plan wants it.
    It bufferizes to nothing: operand and result are the same buffer.

    Folds: a barrier around a constant is the constant; of two barriers in a row the outer one is enough.
  }];
  let arguments = (ins AnyRankedTensor:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$id, OptionalAttr<StrAttr>:$of);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `id` `(` $id `)` (`of` `(` $of^ `)`)? attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Remat_DeallocOp : Remat_Op<"dealloc"> {
  let summary = "a tensor is not needed any more";
  let description = [{
    From here on nothing reads the tensor, nor a view of it: its memory may be taken for something else.

    ```mlir
    remat.dealloc %0 : tensor<8x8xf32>
    ```

    The effect keeps the operation, and with it the order of the plan, in its place. It is a statement, not a command: bufferization
    erases it, and the deallocation pipeline frees buffers after their last use, which is here or earlier. Lowering it to
    `memref.dealloc` would be wrong, as tensors share buffers once they bufferize.

    Canonicalizations: a `remat.dealloc` of a constant is removed; a tensor that would be dead without this operation is not kept alive by it.
  }];
  let arguments = (ins Arg<AnyRankedTensor, "the tensor that is freed", [MemFree]>:$tensor);
  let assemblyFormat = "$tensor attr-dict `:` type($tensor)";
  let hasCanonicalizeMethod = 1;
}

def Remat_PageOutOp : Remat_Op<"page_out", [
    TypesMatchWith<"page holds the type of the tensor", "tensor", "page",
                   "::remat::PageType::get(::llvm::cast<::mlir::RankedTensorType>($_self))">],
    ["bufferizesToAllocation", "getBufferType"]> {
  let summary = "moves a tensor to the second memory";
  let description = [{
    Copies the tensor into a page of the second memory. As with `remat.dealloc`, nothing reads the tensor from here on.

    ```mlir
    %p = remat.page_out %0 : tensor<8x8xf32>
    // ... %0 takes no memory here ...
    %1 = remat.page_in %p : tensor<8x8xf32>
    remat.page_drop %p : !remat.page<tensor<8x8xf32>>
    ```

    A tensor that comes back and goes out again needs no second transfer: the page is still there, so `remat.dealloc` of what came
    back is enough, and another `remat.page_in` later. The same holds for a tensor that was computed again in the meantime.

    It bufferizes to a buffer in the memory space `#remat.second` and a copy into it:
    ```mlir
    %p = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32, #remat.second>
    memref.copy %0, %p : memref<8x8xf32> to memref<8x8xf32, #remat.second>
    ```

    Canonicalization: a page that nobody brings back is not made; `remat.dealloc` takes its place.
  }];
  let arguments = (ins Arg<Remat_PageableTensor, "the tensor that is moved", [MemRead, MemFree]>:$tensor);
  let results = (outs Res<Remat_PageType, "the copy in the second memory", [MemAlloc<Remat_SecondMemory>]>:$page);
  let assemblyFormat = "$tensor attr-dict `:` type($tensor)";
  let hasCanonicalizeMethod = 1;
}

def Remat_PageInOp : Remat_Op<"page_in", [
    TypesMatchWith<"page holds the type of the tensor", "tensor", "page",
                   "::remat::PageType::get(::llvm::cast<::mlir::RankedTensorType>($_self))">],
    ["bufferizesToAllocation", "getBufferType"]> {
  let summary = "brings a tensor back from the second memory";
  let description = [{
    Makes a tensor in memory with the contents of the page, which stays what it is. Every `remat.page_in` makes a tensor of its own:
    two of them are never merged, since between them the tensor takes no memory.

    ```mlir
    %1 = remat.page_in %p : tensor<8x8xf32>
    ```

    It bufferizes to a new buffer and a copy into it:
    ```mlir
    %1 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    memref.copy %p, %1 : memref<8x8xf32, #remat.second> to memref<8x8xf32>
    ```
  }];
  let arguments = (ins Arg<Remat_PageType, "the page", [MemRead<Remat_SecondMemory>]>:$page);
  let results = (outs Res<Remat_PageableTensor, "what the page holds", [MemAlloc]>:$tensor);
  let assemblyFormat = "$page attr-dict `:` type($tensor)";
}

def Remat_PageDropOp : Remat_Op<"page_drop"> {
  let summary = "a page is not needed any more";
  let description = [{
    What `remat.dealloc` is to a tensor: from here on nothing brings the page back, and its place in the second memory may be taken.
    Bufferization erases it, and the deallocation pipeline frees the buffer of the page after its last use. A page that is never
    dropped is freed all the same; the operation tells readers of the IR, `remat-verify` among them, how full the second
    memory is.

    ```mlir
    remat.page_drop %p : !remat.page<tensor<8x8xf32>>
    ```
  }];
  let arguments = (ins Arg<Remat_PageType, "the page that is freed", [MemFree<Remat_SecondMemory>]>:$page);
  let assemblyFormat = "$page attr-dict `:` qualified(type($page))";
}

#endif // REMAT_OPS_TD
