// Right before bufferization, for tools that do not know the dialect: no fence, no marker, and no destination that two operations share.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-lower))' %s | FileCheck %s

// CHECK-LABEL: func.func @lowered
// CHECK-NOT:   remat.
// CHECK-NOT:   tensor.empty
// CHECK:       %[[A:.*]] = bufferization.alloc_tensor() : tensor<64xf32>
// CHECK-NEXT:  %[[E:.*]] = linalg.exp ins(%arg0 {{.*}}) outs(%[[A]]
// CHECK-NEXT:  %[[B:.*]] = bufferization.alloc_tensor() : tensor<64xf32>
// CHECK-NEXT:  linalg.tanh ins(%[[E]] {{.*}}) outs(%[[B]]
// CHECK-NEXT:  %[[M:.*]] = math.exp %arg0
// CHECK-NOT:   remat.
// CHECK:       return
func.func @lowered(%x: tensor<64xf32>) -> tensor<64xf32> attributes {no_inline} {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.exp ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.tanh ins(%0 : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  %f = remat.recompute %x id(1) : tensor<64xf32>
  %2 = math.exp %f : tensor<64xf32>
  %3 = arith.addf %1, %2 : tensor<64xf32>
  return %3 : tensor<64xf32>
}
