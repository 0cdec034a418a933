// Errors stand at the operation that causes them.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=80%%}))' --verify-diagnostics --split-input-file %s
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=much}))' %s 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=}))' %s 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: option `budget` of the pass: `` is not a budget
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(remat-place)' %s 2>&1 | FileCheck %s --check-prefix=WHERE
// WHERE: unable to schedule pass 'remat-place'
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{solver=none}))' %s 2>&1 | FileCheck %s --check-prefix=SOLVER
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{speed=1}))' %s 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{profile=/none}))' %s 2>&1 | FileCheck %s --check-prefix=PROFILE
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=none dynamic-extent=4 remarks=false}))' --split-input-file %s 2>&1 | FileCheck %s --check-prefix=EXTENT

// BUDGET: error: option `budget` of the pass: `much` is not a budget
// SOLVER: error: there is no solver `none`; known are `auto`
// OPTION: no such option speed
// PROFILE: error: option `profile` of the pass: `/none`

// EXTENT: @dynamic{{.*}}remat.peak = 128 : i64
func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{result 0 of `math.exp` has type `tensor<?x8xf32>`, whose size is not known; the option `dynamic-extent` says what dynamic extents count as}}
  %0 = math.exp %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @blocks(%c: i1, %x: tensor<64xf32>) -> tensor<64xf32> {
  cf.cond_br %c, ^one, ^two
^one:
  %0 = math.exp %x : tensor<64xf32>
  // expected-error @below {{`blocks ^bb1`: what is live at its end takes 256 bytes, the budget is 204 bytes}}
  return %0 : tensor<64xf32>
^two:
  return %x : tensor<64xf32>
}

// -----

// The copy of an argument that is returned.
// expected-remark @below {{remat: peak 256 -> 256 bytes}}
func.func @again(%x: tensor<64xf32>) -> tensor<64xf32> {
  return %x : tensor<64xf32>
}

// -----

func.func @scheduled(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{`remat.recompute`: the function is scheduled already; start from what it was before}}
  %0 = remat.recompute %x id(1) : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// expected-error @below {{no plan can meet the budget: op `arith.addf#2` needs 768 bytes, the budget is 614 bytes}}
func.func @infeasible(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  %2 = arith.addf %0, %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
