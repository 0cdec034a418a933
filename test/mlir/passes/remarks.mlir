// A remark says what was done; options reach the search.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% solver=search step-limit=20000 seed=1 threads=1 order=fixed max-computes=2}))' %s 2>&1 | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=none}))' %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% max-computes=1 step-limit=20000}))' %s 2>&1 | FileCheck %s --check-prefix=ONCE
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=auto max-overhead=0%% step-limit=20000}))' %s 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%% remarks=false}))' %s 2>&1 | FileCheck %s --check-prefix=SILENT
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=75%%}))' --mlir-pass-statistics %s 2>&1 | FileCheck %s --check-prefix=STATISTICS

// CHECK: [[#@LINE+12]]:1: remark: remat: peak 1024 -> 768 bytes (75.0 %), 1 operation run again, estimated time +
// NONE:  remark: remat: peak 1024 -> 1024 bytes (100.0 %), 0 operations run again, estimated time +0.00 %
// ONCE:  error: no plan
// AUTO:  remark: remat: peak 1024 -> {{[0-9]+}} bytes
// SILENT-NOT: remark
// What the packages of a release build of LLVM print of statistics is their headline only.
// STATISTICS: Pass statistics report

// One that takes no part in it.
module {
func.func private @declared(tensor<8x8xf32>)

func.func @hump(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tosa.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tosa.sigmoid %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = tosa.tanh %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = tosa.sub %2, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = tosa.abs %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = tosa.add %4, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}
}
