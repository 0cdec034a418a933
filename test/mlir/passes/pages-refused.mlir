// REQUIRES: scheduler
// RUN: mlir-opt %load --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(remat{budget=min device=desktop paging=sync solver=paging:transfers dynamic-extent=4096 step-limit=20000 time-limit=60s remarks=false}))' %s

// There is no page for a tensor whose size is known at run time only, although it can be planned for.
// expected-error @below {{cannot move to the second memory: no page holds a `tensor<?xf32>`}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %a = math.exp %x : tensor<?xf32>
  %b = math.tanh %a : tensor<?xf32>
  %c = math.sin %b : tensor<?xf32>
  %d = arith.mulf %c, %b : tensor<?xf32>
  %e = arith.addf %d, %a : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// Where nothing moves, none is needed.
func.func @nothing_moves(%x: tensor<?xf32>) -> tensor<?xf32> {
  %a = math.exp %x : tensor<?xf32>
  %b = math.tanh %a : tensor<?xf32>
  return %b : tensor<?xf32>
}
