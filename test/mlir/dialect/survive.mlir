// Schedules outlive what usually runs between a model and its buffers, and fences say why: without one, the copy is gone.
// RUN: mlir-opt %load -cse -canonicalize %s | FileCheck %s
// RUN: mlir-opt %load -loop-invariant-code-motion -cse %s | FileCheck %s --check-prefix=LICM
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,cse,canonicalize))' %s \
// RUN:   | FileCheck %s --check-prefix=LINALG
// RUN: mlir-opt %load -inline %s | FileCheck %s --check-prefix=INLINE

// CHECK-LABEL: func.func @fenced
// LINALG-LABEL: func.func @fenced
func.func @fenced(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: tosa.exp %arg0
  // CHECK: remat.dealloc
  // CHECK: %[[F:.*]] = remat.recompute %arg0 id(1)
  // CHECK: tosa.exp %[[F]]
  // CHECK: %[[G:.*]] = remat.recompute %arg0 id(2)
  // CHECK: tosa.exp %[[G]]
  // LINALG: math.exp
  // LINALG: remat.dealloc
  // LINALG: %[[F:.*]] = remat.recompute %arg0 id(1)
  // LINALG: linalg.generic {{.*}} ins(%[[F]]
  // LINALG: math.exp
  // LINALG: %[[G:.*]] = remat.recompute %arg0 id(2)
  // LINALG: linalg.generic {{.*}} ins(%[[G]]
  // LINALG: math.exp
  %0 = tosa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = tosa.tanh %0 : (tensor<8xf32>) -> tensor<8xf32>
  remat.dealloc %0 : tensor<8xf32>
  %f = remat.recompute %x id(1) : tensor<8xf32>
  %2 = tosa.exp %f : (tensor<8xf32>) -> tensor<8xf32>
  %3 = tosa.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  remat.dealloc %2 : tensor<8xf32>
  %g = remat.recompute %x id(2) : tensor<8xf32>
  %4 = tosa.exp %g : (tensor<8xf32>) -> tensor<8xf32>
  %5 = tosa.add %3, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}

// CHECK-LABEL: func.func @not_fenced
func.func @not_fenced(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-COUNT-1: tosa.exp
  // CHECK-NOT: tosa.exp
  %0 = tosa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = tosa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %2 = tosa.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// Two fences with one id on one value are the same fence: that is why ids are unique.
// CHECK-LABEL: func.func @same_id
func.func @same_id(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[F:.*]] = remat.recompute
  // CHECK-NEXT: return %[[F]], %[[F]]
  %0 = remat.recompute %x id(1) : tensor<8xf32>
  %1 = remat.recompute %x id(1) : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// LINALG-LABEL: func.func @paged
func.func @paged(%x: tensor<8xf32>) -> tensor<8xf32> {
  // LINALG: linalg.generic
  // LINALG: %[[P:.*]] = remat.page_out
  // LINALG: linalg.generic
  // LINALG: %[[A:.*]] = remat.page_in %[[P]]
  // LINALG: linalg.generic {{.*}} ins(%{{.*}}, %[[A]]
  // LINALG: remat.dealloc %[[A]]
  // LINALG: %[[B:.*]] = remat.page_in %[[P]]
  // LINALG: remat.page_drop %[[P]]
  %0 = tosa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %p = remat.page_out %0 : tensor<8xf32>
  %1 = tosa.tanh %x : (tensor<8xf32>) -> tensor<8xf32>
  %a = remat.page_in %p : tensor<8xf32>
  %2 = tosa.add %1, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  remat.dealloc %a : tensor<8xf32>
  %b = remat.page_in %p : tensor<8xf32>
  remat.page_drop %p : !remat.page<tensor<8xf32>>
  %3 = tosa.add %2, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// What the plan runs in a loop stays in it.
// LICM-LABEL: func.func @in_a_loop
func.func @in_a_loop(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // LICM: scf.for
  // LICM: remat.recompute
  // LICM: math.exp
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<8xf32> {
    %f = remat.recompute %x id(1) : tensor<8xf32>
    %0 = math.exp %f : tensor<8xf32>
    %1 = arith.addf %acc, %0 : tensor<8xf32>
    remat.dealloc %0 : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// INLINE-LABEL: func.func @calls_a_scheduled_function
// INLINE: call @fenced
// INLINE: call @fenced
func.func @calls_a_scheduled_function(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @fenced(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @fenced(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
