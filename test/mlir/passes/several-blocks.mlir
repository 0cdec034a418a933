// Each block of a function has what the budget leaves beside what is live across it.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-annotate))' %s | FileCheck %s --check-prefix=LIVE
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify{budget=1300}))' %s 2>&1 | FileCheck %s --check-prefix=OVER
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},remat-lower))' %s | FileCheck %s --check-prefix=LOWER
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=1000}))' %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=500}))' %s 2>&1 | FileCheck %s --check-prefix=END
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=80%% paging=sync device=desktop}))' %s 2>&1 | FileCheck %s --check-prefix=PAGES

// OVER: error: the schedule needs 1536 bytes at `arith.addf#4` in `branch ^bb1`, the budget is 1300 bytes
// NONE: error: `branch ^bb1`: beside 256 bytes that are held outside of it, no plan can meet the budget: op `arith.addf#3` needs 768 bytes, the budget is 744 bytes
// END: error: `branch ^bb0`: what is live at its end takes 512 bytes, the budget is 500 bytes
// PAGES: error: each block of a function of several is planned on its own: leave out `paging`

// LOWER-NOT: remat.recompute
// LOWER-NOT: remat.dealloc

// What the first block makes for the last is there in both branches; numbers tell copies apart across blocks.
// CHECK-LABEL: func.func @branch
// CHECK-SAME:    remat.peak = 1280 : i64
// CHECK:         %[[A:.*]] = math.exp %arg1
// CHECK:         cf.cond_br %arg0, ^[[UP:bb[0-9]+]], ^[[DOWN:bb[0-9]+]]
// CHECK:       ^[[UP]]:
// CHECK:         %[[U0:.*]] = math.tanh %[[A]]
// CHECK:         remat.recompute %[[U0]] id(1) of("sqrt")
// CHECK:         math.sqrt
// CHECK:       ^[[DOWN]](%[[T:.*]]: tensor<64xf32>):
// CHECK:         remat.recompute %[[T]] id(2) of("tanh")
// CHECK:         math.tanh

// LIVE-LABEL: func.func @branch
// LIVE-SAME:    remat.peak = 1536 : i64
// LIVE:         math.exp %arg1 {remat.bytes = 256 : i64, {{.*}}, remat.live = 256 : i64}
// LIVE:       ^bb1:
// LIVE:         math.tanh {{.*}}remat.live = 512 : i64
// LIVE:       ^bb3(
// LIVE:         arith.addf {{.*}}remat.live = 768 : i64
func.func @branch(%p: i1, %x: tensor<64xf32>) -> tensor<64xf32> {
  %a = math.exp %x : tensor<64xf32>
  %b = math.absf %x : tensor<64xf32>
  cf.cond_br %p, ^up, ^down(%b : tensor<64xf32>)
^up:
  %u0 = math.tanh %a : tensor<64xf32>
  %u1 = math.sqrt %u0 : tensor<64xf32>
  %u2 = math.absf %u1 : tensor<64xf32>
  %u3 = arith.addf %u2, %u1 : tensor<64xf32>
  %u4 = arith.addf %u3, %u2 : tensor<64xf32>
  %u5 = arith.addf %u4, %u1 : tensor<64xf32>
  %u6 = arith.addf %u5, %u0 : tensor<64xf32>
  cf.br ^join(%u6 : tensor<64xf32>)
^down(%t: tensor<64xf32>):
  %d0 = math.tanh %t : tensor<64xf32>
  %d1 = math.sqrt %d0 : tensor<64xf32>
  %d2 = math.absf %d1 : tensor<64xf32>
  %d3 = arith.addf %d2, %d1 : tensor<64xf32>
  %d6 = arith.addf %d3, %d0 : tensor<64xf32>
  cf.br ^join(%d6 : tensor<64xf32>)
^join(%r: tensor<64xf32>):
  %k = arith.addf %r, %a : tensor<64xf32>
  return %k : tensor<64xf32>
}

// What is made before a loop and needed after it is there in all blocks of the loop.
// LIVE-LABEL: func.func @again
// LIVE:       ^bb1(
// LIVE:         math.absf {{.*}}remat.live = 768 : i64
// LIVE:       ^bb2(
// LIVE:         math.exp {{.*}}remat.live = 768 : i64
// LIVE:       ^bb3:
// LIVE:         arith.addf {{.*}}remat.live = 768 : i64
// CHECK-LABEL: func.func @again
func.func @again(%x: tensor<64xf32>, %i: index) -> tensor<64xf32> {
  %a = math.exp %x : tensor<64xf32>
  %one = arith.constant 1 : index
  %n = arith.constant 4 : index
  %zero = arith.constant 0 : index
  cf.br ^head(%a, %zero : tensor<64xf32>, index)
^head(%t: tensor<64xf32>, %j: index):
  %h = math.absf %t : tensor<64xf32>
  %more = arith.cmpi ult, %j, %n : index
  cf.cond_br %more, ^body(%h : tensor<64xf32>), ^end
^body(%u: tensor<64xf32>):
  %v = math.exp %u : tensor<64xf32>
  %next = arith.addi %j, %one : index
  cf.br ^head(%v, %next : tensor<64xf32>, index)
^end:
  %k = arith.addf %h, %a : tensor<64xf32>
  return %k : tensor<64xf32>
}
