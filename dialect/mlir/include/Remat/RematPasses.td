//===- RematPasses.td - passes that need no scheduler ---------------------===//

#ifndef REMAT_PASSES_TD
#define REMAT_PASSES_TD

include "mlir/Pass/PassBase.td"

def RematLowerPages : Pass<"remat-lower-pages", "::mlir::ModuleOp"> {
  let summary = "turns buffers in the second memory into calls of the runtime library";
  let description = [{
    Runs after the deallocation pipeline, when every buffer in the memory space `#remat.second` has been given its allocation, copies and
    deallocation. They become calls of `libremat_runtime.so`, which keeps pages in a file, and the buffers become handles.

    Before:
    ```mlir
    %p = memref.alloc() : memref<8x8xf32, #remat.second>
    memref.copy %a, %p : memref<8x8xf32> to memref<8x8xf32, #remat.second>
    memref.dealloc %a : memref<8x8xf32>
    // ...
    %b = memref.alloc() : memref<8x8xf32>
    memref.copy %p, %b : memref<8x8xf32, #remat.second> to memref<8x8xf32>
    memref.dealloc %p : memref<8x8xf32, #remat.second>
    ```

    After:
    ```mlir
    %bytes = arith.constant 256 : index
    %p = call @remat_page_create(%bytes) : (index) -> index
    %from = memref.extract_aligned_pointer_as_index %a : memref<8x8xf32> -> index
    call @remat_page_write(%p, %from, %bytes) : (index, index, index) -> ()
    memref.dealloc %a : memref<8x8xf32>
    // ...
    %b = memref.alloc() : memref<8x8xf32>
    %to = memref.extract_aligned_pointer_as_index %b : memref<8x8xf32> -> index
    call @remat_page_read(%p, %to, %bytes) : (index, index, index) -> ()
    call @remat_page_destroy(%p) : (index) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
}

def RematVerifyLifetimes : InterfacePass<"remat-verify-lifetimes", "::mlir::FunctionOpInterface"> {
  let summary = "fails if a function uses what its plan has freed";
  let description = [{
    Checks what the operations of `remat` say about each other, which their own verifiers leave alone as other transformations may
    change it:

    - ids of `remat.recompute` are unique in the function;
    - after `remat.dealloc` and `remat.page_out`, nothing uses the tensor, nor another name for its memory (a view, a cast, a
      recompute barrier); after `remat.page_drop`, nothing uses the page. So nothing is freed twice;
    - nothing is freed that does not belong to the function: the arguments of blocks;
    - a value is freed in the region that made it, exactly once.

    Memory and budgets are the business of `remat-verify`. The function is not changed.

    ```mlir
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = math.exp %x : tensor<8xf32>
      remat.dealloc %0 : tensor<8xf32>           // note: released here
      %1 = math.tanh %0 : tensor<8xf32>          // error: 'math.tanh' op uses what was released
      return %1 : tensor<8xf32>
    }
    ```
  }];
}

#endif // REMAT_PASSES_TD
