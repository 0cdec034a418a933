// Schedules that move tensors to the second memory, as `remat` writes them and `remat-verify` reads them.
// REQUIRES: scheduler
// RUN: mlir-opt %load --split-input-file --pass-pipeline='builtin.module(func.func(remat{budget=min device=desktop paging=sync solver=paging:transfers step-limit=20000 time-limit=60s},remat-verify,remat-verify-lifetimes))' %s 2> %t.remarks \
// RUN:   | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min device=cortex-m7 paging=sync}))' %s 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: error: {{.*}}`cortex-m7`

// REMARK: remark: remat: peak 98304 -> 49152 bytes (50.0 %), 0 operations run again, 3 tensors brought back from the second memory
// CHECK-LABEL: func.func @chain(
// CHECK:         %[[A:.*]] = tosa.tanh %arg0
// CHECK:         %[[B:.*]] = tosa.exp %[[A]]
// CHECK:         %[[PAGE:.*]] = remat.page_out %[[A]]
// CHECK:         remat.page_out
// CHECK:         remat.page_out
// CHECK-NOT:     %[[A]]
// CHECK:         %[[BACK:.*]] = remat.page_in %[[PAGE]]
// CHECK:         remat.page_drop %[[PAGE]]
// CHECK:         tosa.add %{{.*}}, %[[BACK]]
func.func @chain(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = tosa.tanh %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = tosa.exp %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = tosa.tanh %b : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = tosa.exp %c : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tosa.tanh %d : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = tosa.add %e, %d : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = tosa.add %f, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = tosa.add %g, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %i = tosa.add %h, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %i : tensor<64x64xf32>
}

// -----

// Views are made again of what came back.
// CHECK-LABEL: func.func @view(
// CHECK:         %[[A:.*]] = math.exp %arg0
// CHECK:         %[[V:.*]] = tensor.collapse_shape %[[A]]
// CHECK:         %[[B:.*]] = math.tanh %[[V]]
// CHECK:         %[[PAGE:.*]] = remat.page_out %[[A]]
// CHECK:         %[[BACK:.*]] = remat.page_in %[[PAGE]]
// CHECK:         %[[W:.*]] = tensor.collapse_shape %[[BACK]]
// CHECK:         arith.addf %{{.*}}, %[[W]]
func.func @view(%x: tensor<64x64xf32>) -> tensor<4096xf32> {
  %a = math.exp %x : tensor<64x64xf32>
  %v = tensor.collapse_shape %a [[0, 1]] : tensor<64x64xf32> into tensor<4096xf32>
  %b = math.tanh %v : tensor<4096xf32>
  %c = math.sin %b : tensor<4096xf32>
  %d = math.cos %c : tensor<4096xf32>
  %e = arith.mulf %d, %c : tensor<4096xf32>
  %f = arith.addf %e, %v : tensor<4096xf32>
  return %f : tensor<4096xf32>
}

// -----

// A tensor that goes out and comes back twice is moved out once: its page is still there.
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[A:.*]] = math.exp %arg0
// CHECK:         %[[PAGE:.*]] = remat.page_out %[[A]]
// CHECK:         %[[ONCE:.*]] = remat.page_in %[[PAGE]]
// CHECK-NOT:     remat.page_drop %[[PAGE]]
// CHECK:         arith.addf %{{.*}}, %[[ONCE]]
// CHECK:         remat.dealloc %[[ONCE]]
// CHECK:         %[[AGAIN:.*]] = remat.page_in %[[PAGE]]
// CHECK:         remat.page_drop %[[PAGE]]
// CHECK:         arith.addf %{{.*}}, %[[AGAIN]]
func.func @twice(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %a = math.exp %x : tensor<4096xf32>
  %b = math.tanh %a : tensor<4096xf32>
  %c = math.sin %b : tensor<4096xf32>
  %d = arith.mulf %c, %b : tensor<4096xf32>
  %e = arith.addf %d, %a : tensor<4096xf32>
  %f = math.tanh %e : tensor<4096xf32>
  %g = math.sin %f : tensor<4096xf32>
  %h = arith.mulf %g, %f : tensor<4096xf32>
  %i = arith.addf %h, %a : tensor<4096xf32>
  return %i : tensor<4096xf32>
}
