// What a function takes is what its lowering takes: results in place and shared empty tensors included. A plan that does not pay is taken back.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=none},remat-verify))' %s -o %t.none 2>%t.remarks
// RUN: FileCheck %s < %t.none
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=2000 remarks=false},remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=262144 step-limit=2000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=60%% step-limit=2000}))' %s 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=none remarks=false}),%bufferize)' %s | FileCheck %s --check-prefix=BUFFERS

// REMARK: remat: peak 262144 -> 262144 bytes (100.0 %), 0 operations run again
// SHARE: error: no plan can meet the budget{{.*}}the budget is 153.6 KiB (157286 bytes) (where each result has memory of its own); as it stands, the function takes 262144 bytes once it is lowered

// CHECK-LABEL:   func.func @chain(
// CHECK-SAME:      remat.peak = 262144 : i64
// CHECK:           bufferization.alloc_tensor
// CHECK-NOT:       bufferization.alloc_tensor
// CHECK:           return
// BUFFERS-LABEL: func.func @chain(
// BUFFERS:         memref.alloc
// BUFFERS-NOT:     memref.alloc
func.func @chain(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %0 = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = linalg.tanh ins(%0 : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = linalg.abs ins(%1 : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %3 = linalg.sqrt ins(%2 : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %3 : tensor<256x256xf32>
}
