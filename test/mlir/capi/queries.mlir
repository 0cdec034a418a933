// REQUIRES: cmake
// RUN: %build/test/mlir/remat-capi-queries %s | FileCheck %s

func.func private @callee(tensor<8xf32>) -> tensor<8xf32>

func.func @operations(%x: tensor<8xf32>, %v: f32, %i: index, %c: i1) {
  // CHECK: arith.constant: free constant, no alias
  %0 = arith.constant dense<1.0> : tensor<8xf32>
  // CHECK: math.exp: free, aliases unknown
  %1 = math.exp %x : tensor<8xf32>
  // CHECK: tensor.expand_shape: free, operand 0 is result 0{{$}}
  %2 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  // CHECK: tensor.extract_slice: free, operand 0 overlaps result 0
  %3 = tensor.extract_slice %x[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  // CHECK: tensor.insert_slice: free, operand 1 is result 0 if written
  %4 = tensor.insert_slice %3 into %x[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
  // CHECK: arith.select: free, operand 1 may be result 0, operand 2 may be result 0{{$}}
  %5 = arith.select %c, %x, %1 : tensor<8xf32>
  // CHECK: linalg.exp: free, operand 1 is result 0 if written
  %6 = linalg.exp ins(%x : tensor<8xf32>) outs(%1 : tensor<8xf32>) -> tensor<8xf32>
  // CHECK: func.call:, aliases unknown
  %7 = call @callee(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: tosa.exp: free, aliases unknown
  %8 = tosa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: other.op:, aliases unknown
  %9 = "other.op"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: remat.recompute: free, operand 0 is result 0{{$}}
  %10 = remat.recompute %x id(1) : tensor<8xf32>
  // CHECK: remat.page_out:, no alias
  // CHECK-NEXT: !remat.page<tensor<8xf32>> of 32 bytes, which holds tensor<8xf32>
  %11 = remat.page_out %1 : tensor<8xf32>
  // CHECK: remat.page_in:, no alias
  %12 = remat.page_in %11 : tensor<8xf32>
  // CHECK: remat.page_drop:, no alias
  remat.page_drop %11 : !remat.page<tensor<8xf32>>
  // CHECK: remat.dealloc:, no alias
  remat.dealloc %1 : tensor<8xf32>
  // CHECK: func.return: free terminator
  return
}

func.func @sizes() {
  // CHECK: test.types
  // CHECK-NEXT: tensor<3xf32> of 12 bytes, !remat.page<tensor<3xf32>>
  // CHECK-NEXT: tensor<bf16> of 2 bytes, !remat.page<tensor<bf16>>
  // CHECK-NEXT: tensor<9xi1> of 9 bytes, !remat.page<tensor<9xi1>>
  // CHECK-NEXT: tensor<9xi4> of 9 bytes, !remat.page<tensor<9xi4>>
  // CHECK-NEXT: tensor<2xi24> of 8 bytes, !remat.page<tensor<2xi24>>
  // CHECK-NEXT: tensor<2xindex> of 16 bytes, !remat.page<tensor<2xindex>>
  // CHECK-NEXT: tensor<2xcomplex<f32>> of 16 bytes, !remat.page<tensor<2xcomplex<f32>>>
  // CHECK-NEXT: tensor<0x7xf32> of 0 bytes, !remat.page<tensor<0x7xf32>>
  // CHECK-NEXT: tensor<?xf32> of -1 bytes, no page
  // CHECK-NEXT: tensor<*xf32> of -1 bytes, no page
  // CHECK-NEXT: tensor<4xf32, "sparse"> of 16 bytes, no page
  // CHECK-NEXT: tensor<2x!llvm.ptr> of -1 bytes, no page
  // CHECK-NEXT: tensor<4611686018427387904xf64> of -1 bytes, no page
  // CHECK-NEXT: f32 of -1 bytes, no page
  // CHECK-NEXT: memref<4xf32> of -1 bytes, no page
  %0:15 = "test.types"() : () -> (tensor<3xf32>, tensor<bf16>, tensor<9xi1>, tensor<9xi4>, tensor<2xi24>, tensor<2xindex>,
    tensor<2xcomplex<f32>>, tensor<0x7xf32>, tensor<?xf32>, tensor<*xf32>, tensor<4xf32, "sparse">, tensor<2x!llvm.ptr>,
    tensor<4611686018427387904xf64>, f32, memref<4xf32>)
  return
}
