// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify))' --verify-diagnostics --split-input-file %s
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify{budget=1KiB}))' %s --split-input-file 2>&1 | FileCheck %s

// A schedule that keeps what was noted.
func.func @kept(%x: tensor<64xf32>) -> tensor<64xf32> attributes {remat.budget = 512 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  %f = remat.recompute %x id(1) : tensor<64xf32>
  %1 = math.exp %f : tensor<64xf32>
  %2 = math.tanh %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// One that does not.
// expected-error @below {{the schedule needs 768 bytes at `arith.addf#2`, the budget is 700 bytes}}
func.func @over(%x: tensor<64xf32>) -> tensor<64xf32> attributes {remat.budget = 700 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  %2 = arith.addf %0, %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// Markers that come late keep memory.
// expected-error @below {{the schedule needs 768 bytes at `math.absf#2`, the budget is 512 bytes}}
func.func @late(%x: tensor<64xf32>) -> tensor<64xf32> attributes {remat.budget = 512 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  %2 = math.absf %1 : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// CHECK: error: the schedule is broken: op `math.tanh#2` reads `%math.exp#0` after its storage was deallocated
// expected-error @below {{the schedule is broken: op `math.tanh#2` reads `%math.exp#0` after its storage was deallocated}}
func.func @early(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// expected-error @below {{it is already deallocated}}
func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// expected-error @below {{it is a graph output}}
func.func @returned(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  remat.dealloc %0 : tensor<64xf32>
  return %0 : tensor<64xf32>
}
