// A chain with long skips, every level of which waits in the second memory: 1 MiB a tensor, by hand.
//
// With all levels in memory it takes 6 MiB; here the levels down hold two tensors at most, and the sums on the way up three.
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat-verify{budget=3MiB}))' %s | FileCheck %s
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify{budget=2MiB}))' %s 2>&1 | FileCheck %s --check-prefix=LESS
// REQUIRES: scheduler
// CHECK-COUNT-3: remat.page_in
// LESS: the schedule needs 3145728 bytes
func.func @pages(%x: tensor<1x512x512xf32>) -> (tensor<1x512x512xf32>) attributes {remat.peak = 3145728 : i64} {
  %a = tosa.tanh %x : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %b = tosa.exp %a : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %page_a = remat.page_out %a : tensor<1x512x512xf32>
  %c = tosa.tanh %b : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %page_b = remat.page_out %b : tensor<1x512x512xf32>
  %d = tosa.exp %c : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %page_c = remat.page_out %c : tensor<1x512x512xf32>
  %e = tosa.tanh %d : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %up_d = tosa.add %e, %d : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  remat.dealloc %d : tensor<1x512x512xf32>
  remat.dealloc %e : tensor<1x512x512xf32>
  %c1 = remat.page_in %page_c : tensor<1x512x512xf32>
  remat.page_drop %page_c : !remat.page<tensor<1x512x512xf32>>
  %up_c = tosa.add %up_d, %c1 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  remat.dealloc %up_d : tensor<1x512x512xf32>
  remat.dealloc %c1 : tensor<1x512x512xf32>
  %b1 = remat.page_in %page_b : tensor<1x512x512xf32>
  remat.page_drop %page_b : !remat.page<tensor<1x512x512xf32>>
  %up_b = tosa.add %up_c, %b1 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  remat.dealloc %up_c : tensor<1x512x512xf32>
  remat.dealloc %b1 : tensor<1x512x512xf32>
  %a1 = remat.page_in %page_a : tensor<1x512x512xf32>
  remat.page_drop %page_a : !remat.page<tensor<1x512x512xf32>>
  %up_a = tosa.add %up_b, %a1 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  return %up_a : tensor<1x512x512xf32>
}
