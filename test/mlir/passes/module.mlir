// On a module the budget is one for all of its functions: a share is one of the highest peak, and what a callee takes counts where it is called.
// REQUIRES: scheduler
// RUN: mlir-opt %load --split-input-file --pass-pipeline='builtin.module(remat{budget=80%% step-limit=20000 remarks=false})' %s | FileCheck %s
// RUN: not mlir-opt %load --split-input-file --pass-pipeline='builtin.module(func.func(remat{budget=80%% step-limit=20000 remarks=false}))' %s 2>&1 | FileCheck %s --check-prefix=EACH

// EACH: no plan can meet the budget

// CHECK-LABEL: func.func @large(
// CHECK-SAME:    remat.budget = 819 : i64, remat.peak = 768 : i64
// CHECK:       remat.recompute
func.func @large(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.sin %0 : tensor<64xf32>
  %2 = math.tanh %1 : tensor<64xf32>
  %3 = arith.subf %2, %1 : tensor<64xf32>
  %4 = math.absf %3 : tensor<64xf32>
  %5 = arith.addf %4, %0 : tensor<64xf32>
  return %5 : tensor<64xf32>
}

// It has nothing to give, and need not.
// CHECK-LABEL: func.func @small(
// CHECK-SAME:    remat.budget = 819 : i64, remat.peak = 512 : i64
// CHECK-NOT:   remat.recompute
func.func @small(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// What waits while the callee runs, and the callee: 256 and 1024 bytes. The callee gives up what the caller cannot.
// CHECK-LABEL: func.func private @callee(
// CHECK-SAME:    remat.budget = 768 : i64, remat.peak = 768 : i64
// CHECK-LABEL: func.func @caller(
// CHECK-SAME:    remat.budget = 1024 : i64, remat.peak = 1024 : i64
// CHECK:       call @callee(%{{.*}}) : (tensor<64xf32>)
func.func private @callee(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.sin %0 : tensor<64xf32>
  %2 = math.tanh %1 : tensor<64xf32>
  %3 = arith.subf %2, %1 : tensor<64xf32>
  %4 = math.absf %3 : tensor<64xf32>
  %5 = arith.addf %4, %0 : tensor<64xf32>
  return %5 : tensor<64xf32>
}

func.func @caller(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = call @callee(%0) : (tensor<64xf32>) -> tensor<64xf32>
  %2 = arith.addf %1, %0 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
