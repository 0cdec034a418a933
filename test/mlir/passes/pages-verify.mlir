// Pages that people wrote, replayed.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify))' --verify-diagnostics --split-input-file %s

// What is out takes no memory, twice.
func.func @kept(%x: tensor<64xf32>) -> tensor<64xf32> attributes {remat.budget = 512 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %1 = math.tanh %x : tensor<64xf32>
  %2 = math.sin %1 : tensor<64xf32>
  remat.dealloc %1 : tensor<64xf32>
  %a = remat.page_in %p : tensor<64xf32>
  %q = remat.page_out %2 : tensor<64xf32>
  %3 = math.cos %a : tensor<64xf32>
  remat.dealloc %a : tensor<64xf32>
  %b = remat.page_in %q : tensor<64xf32>
  remat.page_drop %q : !remat.page<tensor<64xf32>>
  %r = remat.page_out %3 : tensor<64xf32>
  %c = remat.page_in %p : tensor<64xf32>
  remat.page_drop %p : !remat.page<tensor<64xf32>>
  remat.dealloc %b : tensor<64xf32>
  %4 = math.absf %c : tensor<64xf32>
  remat.dealloc %c : tensor<64xf32>
  remat.dealloc %4 : tensor<64xf32>
  %d = remat.page_in %r : tensor<64xf32>
  %5 = math.ceil %d : tensor<64xf32>
  return %5 : tensor<64xf32>
}

// -----

// What comes back takes memory from then on.
// expected-error @below {{the schedule needs 768 bytes at `math.sin#4`, the budget is 512 bytes}}
func.func @over(%x: tensor<64xf32>) -> tensor<64xf32> attributes {remat.budget = 512 : i64} {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %1 = math.tanh %x : tensor<64xf32>
  %a = remat.page_in %p : tensor<64xf32>
  %2 = math.sin %1 : tensor<64xf32>
  remat.dealloc %1 : tensor<64xf32>
  %3 = arith.addf %2, %a : tensor<64xf32>
  return %3 : tensor<64xf32>
}

// -----

// expected-error @below {{reads `%math.exp#0` while its storage is in the second memory}}
func.func @read_while_out(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %1 = math.tanh %0 : tensor<64xf32>
  %a = remat.page_in %p : tensor<64xf32>
  %2 = arith.addf %1, %a : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// expected-error @below {{page_in of `%math.exp#0` is not possible: it is in memory}}
func.func @two_at_once(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %a = remat.page_in %p : tensor<64xf32>
  %b = remat.page_in %p : tensor<64xf32>
  %1 = arith.addf %a, %b : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// Outputs stay.
// expected-error @below {{pages out `%math.exp#0`, which holds a graph output}}
func.func @output(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %a = remat.page_in %p : tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

func.func @dropped_and_back(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  remat.page_drop %p : !remat.page<tensor<64xf32>>
  // expected-error @+1 {{`remat.page_in`: the page was dropped before, by `remat.page_drop`}}
  %1 = remat.page_in %p : tensor<64xf32>
  %2 = math.tanh %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

func.func @dropped_twice(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %p = remat.page_out %0 : tensor<64xf32>
  %1 = remat.page_in %p : tensor<64xf32>
  remat.page_drop %p : !remat.page<tensor<64xf32>>
  // expected-error @+1 {{`remat.page_drop`: the page was dropped before, by `remat.page_drop`}}
  remat.page_drop %p : !remat.page<tensor<64xf32>>
  return %1 : tensor<64xf32>
}
