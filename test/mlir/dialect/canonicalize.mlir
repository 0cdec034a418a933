// RUN: mlir-opt %load -canonicalize="test-convergence" -split-input-file %s | FileCheck %s

// Constants take no part in schedules.
// CHECK-LABEL: func.func @fence_of_a_constant
func.func @fence_of_a_constant() -> tensor<4xf32> {
  // CHECK-NEXT: %[[C:.*]] = arith.constant
  // CHECK-NEXT: return %[[C]]
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %0 = remat.recompute %c id(1) : tensor<4xf32>
  remat.dealloc %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The id of the outer fence sets the copy apart; others may read the inner one.
// CHECK-LABEL: func.func @fences_in_a_row
// CHECK-SAME:  (%[[X:.*]]: tensor<4xf32>)
func.func @fences_in_a_row(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-DAG: %[[INNER:.*]] = remat.recompute %[[X]] id(1)
  // CHECK-DAG: %[[OUTER:.*]] = remat.recompute %[[X]] id(2)
  // CHECK: return %[[INNER]], %[[OUTER]]
  %0 = remat.recompute %x id(1) : tensor<4xf32>
  %1 = remat.recompute %0 id(2) : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A run that nobody profits from is not kept by releasing what it made.
// CHECK-LABEL: func.func @dead_but_for_dealloc
// CHECK-NEXT: return
func.func @dead_but_for_dealloc(%x: tensor<4xf32>) {
  %0 = remat.recompute %x id(1) : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  remat.dealloc %1 : tensor<4xf32>
  return
}

// -----

// What is read is released where the plan says so; arguments and effects stay as they are.
// CHECK-LABEL: func.func @dealloc_that_says_something
func.func @dealloc_that_says_something(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[E:.*]] = math.exp
  // CHECK: %[[R:.*]] = math.tanh %[[E]]
  // CHECK: remat.dealloc %[[E]]
  // CHECK: %[[C:.*]] = call @effect
  // CHECK: remat.dealloc %[[C]]
  // CHECK: remat.dealloc %arg0
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  remat.dealloc %0 : tensor<4xf32>
  %2 = call @effect(%1) : (tensor<4xf32>) -> tensor<4xf32>
  remat.dealloc %2 : tensor<4xf32>
  remat.dealloc %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @effect(tensor<4xf32>) -> tensor<4xf32>

// -----

// A page that nobody brings back is not made, but the tensor is released all the same.
// CHECK-LABEL: func.func @page_that_nobody_reads
func.func @page_that_nobody_reads(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[E:.*]] = math.exp
  // CHECK-NEXT: %[[R:.*]] = math.tanh %[[E]]
  // CHECK-NEXT: remat.dealloc %[[E]]
  // CHECK-NEXT: return %[[R]]
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  %p = remat.page_out %0 : tensor<4xf32>
  %2 = remat.page_in %p : tensor<4xf32>
  remat.dealloc %2 : tensor<4xf32>
  remat.page_drop %p : !remat.page<tensor<4xf32>>
  return %1 : tensor<4xf32>
}

// -----

// What comes back is not taken for what went out: in between, it takes no memory.
// CHECK-LABEL: func.func @pages_are_not_forwarded
func.func @pages_are_not_forwarded(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[P:.*]] = remat.page_out
  // CHECK: %[[A:.*]] = remat.page_in %[[P]]
  // CHECK: %[[B:.*]] = remat.page_in %[[P]]
  // CHECK: return %[[A]], %[[B]]
  %0 = math.exp %x : tensor<4xf32>
  %p = remat.page_out %0 : tensor<4xf32>
  %1 = remat.page_in %p : tensor<4xf32>
  %2 = remat.page_in %p : tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
