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

#endif // REMAT_PASSES_TD
