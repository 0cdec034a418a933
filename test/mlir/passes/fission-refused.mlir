// What tiles cannot be combined with.
// REQUIRES: scheduler
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min fission=exact paging=sync device=desktop}))' %s 2>&1 | FileCheck %s --check-prefix=PAGES
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min tiles=4}))' %s 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min fission=yes}))' %s 2>&1 | FileCheck %s --check-prefix=HOW

// PAGES: error: tiles do not move to a second memory: leave out `fission` or `paging`
// TILES: error: option `tiles` of the pass: say `fission=exact` first
// HOW: error: option `fission` of the pass: `yes` is none of `off`, `exact` and `close`
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
