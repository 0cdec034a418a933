// A tensor that is put together from parts has one buffer, so its parts are written by one op of the schedule. Its destination becomes an
// allocation, which nothing merges with another.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-annotate))' %s | FileCheck %s --check-prefix=ANNOTATED
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s

// ANNOTATED-LABEL: func.func @concatenated
// ANNOTATED-SAME:    remat.peak = 1024 : i64
// ANNOTATED:       remat.bytes = 512 : i64, {{.*}}remat.live = 1024 : i64

// CHECK-LABEL: func.func @concatenated
// CHECK:       %[[OWN:.*]] = bufferization.alloc_tensor() : tensor<128xf32>
// CHECK-NEXT:  %[[HALF:.*]] = tensor.insert_slice %{{.*}} into %[[OWN]]
// CHECK-NEXT:  %{{.*}} = tensor.insert_slice %{{.*}} into %[[HALF]]
func.func @concatenated(%x: tensor<64xf32>) -> tensor<128xf32> {
  %a = math.exp %x : tensor<64xf32>
  %b = math.tanh %a : tensor<64xf32>
  %e = tensor.empty() : tensor<128xf32>
  %half = tensor.insert_slice %a into %e[0] [64] [1] : tensor<64xf32> into tensor<128xf32>
  %all = tensor.insert_slice %b into %half[64] [64] [1] : tensor<64xf32> into tensor<128xf32>
  return %all : tensor<128xf32>
}
