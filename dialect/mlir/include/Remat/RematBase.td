//===- RematBase.td - dialect, attributes and types of `remat` ------------===//

#ifndef REMAT_BASE_TD
#define REMAT_BASE_TD

include "mlir/Dialect/Bufferization/IR/BufferizationTypeInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Remat_Dialect : Dialect {
  let name = "remat";
  let cppNamespace = "::remat";
  let summary = "plans of rematerialization and paging, written into the IR";
  let description = [{
    A plan makes a function use less memory: results that are expensive to keep are freed and computed
    again, or moved to a second memory and back. This dialect states such a plan on tensors, in SSA form, so that ordinary
    transformations keep it and bufferization carries it out.

    | plan | IR |
    |---|---|
    | run an op again | the op once more, one of its operands through `remat.recompute` |
    | free a tensor | `remat.dealloc` |
    | move a tensor to the second memory | `remat.page_out` |
    | bring it back | `remat.page_in`, as often as it is needed |
    | free the copy | `remat.page_drop` |

    The operations only say *when*; taking all of them out leaves a function that computes the same. So the verifiers of the
    operations look at types and attributes alone, and every transformation may move or merge what is around them. Whether the
    plan is still valid (ids are unique, nothing is read after it was freed) is a property of a whole function: the pass
    `remat-verify-lifetimes` checks it, and `remat-verify` checks the budget.

    Functions with operations of this dialect are not inlined: ids are unique in one function, and a budget is for one function.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Remat_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Remat_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Remat_Type<string name, string typeMnemonic, list<Trait> traits = []> : TypeDef<Remat_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Remat_SecondAttr : Remat_Attr<"Second", "second"> {
  let summary = "memory space of what is paged out";
  let description = [{
    The memory space of the buffers that pages bufferize to. No target has an address space for it: the pass `remat-lower-pages` turns
    these buffers into handles of the runtime library, and without it the conversion to LLVM fails.

    ```mlir
    memref<8x8xf32, #remat.second>
    ```
  }];
}

def Remat_PageType : Remat_Type<"Page", "page", [
    DeclareTypeInterfaceMethods<Bufferization_TensorLikeTypeInterface, ["getBufferType", "verifyCompatibleBufferType"]>]> {
  let summary = "a tensor in the second memory";
  let description = [{
    A copy of a tensor that lies in the second memory, where nothing can read it but `remat.page_in`. It never changes. The tensor
    has a static shape, no encoding, and elements with a size.

    ```mlir
    !remat.page<tensor<8x8xf32>>
    ```

    It bufferizes to a buffer in the memory space `#remat.second`.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether there is a page that holds such a tensor.
    static bool holds(::mlir::RankedTensorType tensor);
  }];
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensor), [{
    return $_get(tensor.getContext(), tensor);
  }]>];
}

#endif // REMAT_BASE_TD
