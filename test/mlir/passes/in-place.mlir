// Where the budget asks for it, results are written where operands die; plans are measured with that.
// REQUIRES: scheduler
// RUN: mlir-opt %load --split-input-file --pass-pipeline='builtin.module(func.func(remat{budget=50%% step-limit=2000 remarks=false},remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --split-input-file --pass-pipeline='builtin.module(func.func(remat{budget=none remarks=false}))' %s | FileCheck %s --check-prefix=NONE
// RUN: mlir-opt %load --split-input-file --pass-pipeline='builtin.module(func.func(remat{budget=50%% step-limit=2000 remarks=false}),%bufferize)' %s | FileCheck %s --check-prefix=BUFFERS

// No order needs less than two tensors at once, unless one of them is overwritten.
// CHECK-LABEL:   func.func @chain(
// CHECK-SAME:      remat.peak = 262144 : i64
// CHECK:           %[[E:.*]] = bufferization.alloc_tensor
// CHECK-NEXT:      %[[A:.*]] = linalg.exp ins(%{{.*}}) outs(%[[E]]
// CHECK-NEXT:      %[[B:.*]] = linalg.tanh ins(%[[A]] {{.*}}) outs(%[[A]]
// CHECK-NEXT:      linalg.abs ins(%[[B]] {{.*}}) outs(%[[B]]
// NONE-LABEL:    func.func @chain(
// NONE-SAME:       remat.peak = 524288 : i64
// BUFFERS-LABEL: func.func @chain(
// BUFFERS:         memref.alloc
// BUFFERS-NOT:     memref.alloc
// BUFFERS:         return
func.func @chain(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %0 = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e1 = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.tanh ins(%0 : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %2 = linalg.abs ins(%1 : tensor<256x256xf32>) outs(%e2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %2 : tensor<256x256xf32>
}

// -----

// In the model no plan takes less than three tensors. The lowest one takes two once its results are written in place. Arguments never are.
// CHECK-LABEL: func.func @again(
// CHECK-SAME:    remat.peak = 524288 : i64
// CHECK-NOT:     outs(%arg0
// CHECK:         linalg.exp
// CHECK:         linalg.exp
// CHECK:         return
// NONE-LABEL:  func.func @again(
// NONE-SAME:     remat.peak = 1048576 : i64
func.func @again(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %0 = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e1 = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.tanh ins(%0 : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %2 = linalg.abs ins(%1 : tensor<256x256xf32>) outs(%e2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e3 = tensor.empty() : tensor<256x256xf32>
  %3 = linalg.add ins(%2, %1 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e3 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e4 = tensor.empty() : tensor<256x256xf32>
  %4 = linalg.add ins(%3, %0 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e4 : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %4 : tensor<256x256xf32>
}
