// From a plan with pages to a program: half the memory, the same numbers.
// REQUIRES: scheduler, runtime
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min device=desktop paging=sync solver=paging:transfers step-limit=20000 time-limit=60s remarks=false}))' %s -o %t.planned.mlir
// RUN: FileCheck %s --check-prefix=PLANNED < %t.planned.mlir
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(tosa-to-linalg-named,tosa-to-linalg),%bufferize,remat-lower-pages,%llvm)' %t.planned.mlir -o %t.paged.mlir
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(tosa-to-linalg-named,tosa-to-linalg),%bufferize,%llvm)' %s -o %t.plain.mlir
// RUN: %run %t.plain.mlir | tail -n +2 > %t.plain
// RUN: %run %t.paged.mlir | tail -n +2 > %t.paged
// RUN: FileCheck %s --input-file=%t.plain
// RUN: diff %t.plain %t.paged

// PLANNED: remat.page_out
// PLANNED: remat.page_in

// CHECK: {{\[\[}}{{.*}}],
func.func private @printMemrefF32(tensor<*xf32>)

func.func @chain(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = tosa.tanh %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = tosa.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tosa.tanh %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = tosa.exp %c : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = tosa.tanh %d : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = tosa.add %e, %d : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = tosa.add %f, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = tosa.add %g, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %i = tosa.add %h, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %i : tensor<8x8xf32>
}

func.func @main() {
  %x = tensor.generate {
  ^bb0(%i: index, %j: index):
    %0 = arith.subi %i, %j : index
    %1 = arith.index_cast %0 : index to i32
    %2 = arith.sitofp %1 : i32 to f32
    tensor.yield %2 : f32
  } : tensor<8x8xf32>
  %0 = call @chain(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tensor.cast %0 : tensor<8x8xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}
