// Structured operations: what prepares a destination goes with the operation, and results are written into allocations of their
// own, which are never merged. Empty tensors would be.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s

// CHECK-LABEL: func.func @shared
// CHECK-SAME:    remat.peak = 768 : i64
// CHECK:       %[[ZERO:.*]] = arith.constant
// CHECK:       linalg.fill
// CHECK:       %[[A:.*]] = linalg.matmul ins(%arg0, %arg1
// CHECK:       linalg.exp ins(%[[A]]
// CHECK-NEXT:  remat.dealloc %[[A]]
// CHECK:       linalg.sub
// CHECK:       %[[OUT:.*]] = bufferization.alloc_tensor()
// CHECK-NEXT:  %[[FILLED:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[OUT]]
// CHECK-NEXT:  %[[AGAIN:.*]] = linalg.matmul ins(%arg0, %arg1 {{.*}}) outs(%[[FILLED]]
// CHECK-NEXT:  bufferization.alloc_tensor
// CHECK-NEXT:  linalg.add ins(%[[AGAIN]]
func.func @shared(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %b = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e3 = tensor.empty() : tensor<8x8xf32>
  %c = linalg.tanh ins(%b : tensor<8x8xf32>) outs(%e3 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e4 = tensor.empty() : tensor<8x8xf32>
  %d = linalg.sub ins(%b, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e4 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %g = linalg.add ins(%a, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}
