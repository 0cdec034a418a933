// An operation with regions is one op; what it reads inside keeps values alive, and is exchanged in copies.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s

// CHECK-LABEL: func.func @loop
// CHECK-SAME:    remat.peak = 768 : i64
// CHECK:       %[[A:.*]] = math.exp %arg0
// CHECK:       scf.for
// CHECK:         arith.addf %{{.*}}, %[[A]]
// CHECK:       }
// CHECK-NEXT:  remat.dealloc %[[A]]
// CHECK:       %[[F:.*]] = remat.recompute %arg0
// CHECK:       %[[AGAIN:.*]] = math.exp %[[F]]
// CHECK:       arith.subf %{{.*}}, %[[AGAIN]]
func.func @loop(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = math.exp %x : tensor<8x8xf32>
  %b = math.tanh %a : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %b) -> tensor<8x8xf32> {
    %u = arith.addf %t, %a : tensor<8x8xf32>
    scf.yield %u : tensor<8x8xf32>
  }
  %s = arith.mulf %r, %b : tensor<8x8xf32>
  %v = tensor.collapse_shape %s [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %w = arith.subf %s, %a : tensor<8x8xf32>
  return %w, %v : tensor<8x8xf32>, tensor<64xf32>
}

// The operation that runs again has regions and reads, inside them alone, something that was made again.
// CHECK-LABEL: func.func @branch
// CHECK:       scf.if
// CHECK:       scf.if
func.func @branch(%c: i1, %x: tensor<64xf32>) -> tensor<64xf32> {
  %a = scf.if %c -> tensor<64xf32> {
    %t = math.exp %x : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  } else {
    scf.yield %x : tensor<64xf32>
  }
  %b = math.tanh %a : tensor<64xf32>
  %d = arith.addf %b, %b : tensor<64xf32>
  %e = arith.mulf %d, %b : tensor<64xf32>
  %f = math.absf %e : tensor<64xf32>
  %g = arith.addf %f, %a : tensor<64xf32>
  return %g : tensor<64xf32>
}
