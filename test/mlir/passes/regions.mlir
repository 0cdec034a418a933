// What an operation with regions reads inside keeps values alive, and is exchanged in copies. Regions of `scf` operations are planned within what the
// plan around them leaves.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=none remarks=false}))' %s | FileCheck %s --check-prefix=NONE
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify{budget=1800}))' %s 2>&1 | FileCheck %s --check-prefix=OVER

// OVER: error: the schedule needs 2048 bytes at `scf.for#4`, the budget is 1800 bytes

// Nothing is written where everything fits.
// NONE-NOT: remat.recompute

// CHECK-LABEL: func.func @loop
// CHECK-SAME:    remat.peak = 1024 : i64
// CHECK:       %[[A:.*]] = math.exp %arg0
// CHECK:       scf.for
// CHECK:         arith.addf %{{.*}}, %[[A]]
// CHECK:       }
// CHECK:       remat.dealloc %[[A]]
// CHECK:       %[[F:.*]] = remat.recompute %arg0
// CHECK:       %[[AGAIN:.*]] = math.exp %[[F]]
// CHECK:       arith.subf %{{.*}}, %[[AGAIN]]
func.func @loop(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = math.exp %x : tensor<8x8xf32>
  %b = math.tanh %x : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %b) -> tensor<8x8xf32> {
    %u = arith.addf %t, %a : tensor<8x8xf32>
    %n = linalg.copy ins(%u : tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %n : tensor<8x8xf32>
  }
  %s = math.exp %r : tensor<8x8xf32>
  %p = math.tanh %s : tensor<8x8xf32>
  %q = arith.addf %s, %p : tensor<8x8xf32>
  %v = tensor.collapse_shape %s [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %z = arith.addf %q, %p : tensor<8x8xf32>
  %w = arith.subf %z, %a : tensor<8x8xf32>
  return %w, %v : tensor<8x8xf32>, tensor<64xf32>
}

// The operation that runs again has regions and reads, inside them alone, something that was made again.
// CHECK-LABEL: func.func @again
// CHECK-SAME:    remat.peak = 1024 : i64
// CHECK:       scf.for
// CHECK:       remat.recompute %arg0 id({{[0-9]+}}) of("sqrt")
// CHECK:       %[[O:.*]] = math.sqrt
// CHECK:       scf.for
// CHECK:         linalg.add ins(%arg0, %[[O]]
func.func private @draw(tensor<64xf32>) -> tensor<64xf32>
func.func @again(%x: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant dense<0.0> : tensor<64xf32>
  %o = math.sqrt %x : tensor<64xf32>
  %a = scf.for %j = %c0 to %c4 step %c1 iter_args(%t = %z) -> tensor<64xf32> {
    %n = linalg.add ins(%x, %o : tensor<64xf32>, tensor<64xf32>) outs(%t : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %n : tensor<64xf32>
  }
  %b = func.call @draw(%a) : (tensor<64xf32>) -> tensor<64xf32>
  %c = func.call @draw(%b) : (tensor<64xf32>) -> tensor<64xf32>
  %d = func.call @draw(%c) : (tensor<64xf32>) -> tensor<64xf32>
  %f = arith.addf %d, %b : tensor<64xf32>
  %g = arith.addf %f, %c : tensor<64xf32>
  %l = arith.addf %g, %a : tensor<64xf32>
  return %l : tensor<64xf32>
}

// The body of the loop holds four tensors, and two more where something runs again in it. Around it there are what it began with, which is needed
// afterwards, and what it carries.
// CHECK-LABEL: func.func @body
// CHECK-SAME:    remat.peak = 1280 : i64
// CHECK:       %[[W:.*]] = math.tanh %arg0
// CHECK-NOT:   remat.recompute
// CHECK:       scf.for {{.*}} iter_args(%[[T:.*]] = %[[W]])
// CHECK:         %[[U:.*]] = math.exp %[[T]]
// CHECK:         remat.dealloc %[[U]]
// CHECK:         %[[F:.*]] = remat.recompute %[[T]] id({{[0-9]+}}) of("exp")
// CHECK:         math.exp %[[F]]
// CHECK:         scf.yield
func.func @body(%x: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = math.tanh %x : tensor<64xf32>
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %w) -> tensor<64xf32> {
    %u0 = math.exp %t : tensor<64xf32>
    %u1 = math.tanh %u0 : tensor<64xf32>
    %u2 = math.sqrt %u1 : tensor<64xf32>
    %u3 = math.absf %u2 : tensor<64xf32>
    %u4 = arith.addf %u3, %u2 : tensor<64xf32>
    %u5 = arith.addf %u4, %u3 : tensor<64xf32>
    %u6 = arith.addf %u5, %u2 : tensor<64xf32>
    %u7 = arith.addf %u6, %u1 : tensor<64xf32>
    %u8 = arith.addf %u7, %u0 : tensor<64xf32>
    %n = linalg.copy ins(%u8 : tensor<64xf32>) outs(%t : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %n : tensor<64xf32>
  }
  %k = arith.subf %y, %w : tensor<64xf32>
  return %k : tensor<64xf32>
}

// A region in a region.
// CHECK-LABEL: func.func @nested
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK:           remat.recompute
// CHECK:         } else {
func.func @nested(%p: i1, %x: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = math.tanh %x : tensor<64xf32>
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %w) -> tensor<64xf32> {
    %v = scf.if %p -> tensor<64xf32> {
      %u0 = math.exp %t : tensor<64xf32>
      %u1 = math.tanh %u0 : tensor<64xf32>
      %u2 = math.sqrt %u1 : tensor<64xf32>
      %u3 = arith.addf %u2, %u1 : tensor<64xf32>
      %u4 = arith.addf %u3, %u2 : tensor<64xf32>
      %u5 = arith.addf %u4, %u0 : tensor<64xf32>
      scf.yield %u5 : tensor<64xf32>
    } else {
      scf.yield %t : tensor<64xf32>
    }
    %n = linalg.copy ins(%v : tensor<64xf32>) outs(%t : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %n : tensor<64xf32>
  }
  %k = arith.subf %y, %w : tensor<64xf32>
  return %k : tensor<64xf32>
}
