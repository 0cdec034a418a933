// What is large and needed early and late is released and made again; the copy survives what usually follows.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% remarks=false dealloc=false}))' %s | FileCheck %s --check-prefix=PLAIN
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% remarks=false},cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg),%bufferize)' %s \
// RUN:   | FileCheck %s --check-prefix=BUFFERS

// PLAIN-NOT: remat.dealloc
// PLAIN: remat.recompute
// PLAIN-NOT: remat.dealloc

// CHECK-LABEL: func.func @hump
// CHECK-SAME:    remat.budget = 768 : i64, remat.peak = 768 : i64
// CHECK:       %[[E:.*]] = tosa.exp %arg0
// CHECK-NEXT:  %[[S:.*]] = tosa.sigmoid %[[E]]
// CHECK-NEXT:  remat.dealloc %[[E]]
// CHECK:       tosa.abs
// CHECK:       %[[F:.*]] = remat.recompute %arg0 id(1) of("exp")
// CHECK-NEXT:  %[[X:.*]] = tosa.exp %[[F]]
// CHECK-NEXT:  tosa.add %{{.*}}, %[[X]]

// Three buffers at once, never four: each is freed before the next but two is made.
// BUFFERS-LABEL: func.func @hump
// BUFFERS:       memref.alloc
// BUFFERS:       memref.alloc
// BUFFERS:       memref.dealloc
// BUFFERS:       memref.alloc
// BUFFERS:       memref.alloc
// BUFFERS:       memref.dealloc
// BUFFERS:       memref.dealloc
// BUFFERS:       memref.alloc
// BUFFERS:       memref.dealloc
// BUFFERS:       memref.alloc
// BUFFERS:       memref.alloc
// BUFFERS-NOT:   memref.alloc()
func.func @hump(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tosa.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tosa.sigmoid %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = tosa.tanh %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = tosa.sub %2, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = tosa.abs %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = tosa.add %4, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}
