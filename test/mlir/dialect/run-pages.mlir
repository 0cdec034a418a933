// A function that pages computes what it computes without: natively, with the pages in a file.
// REQUIRES: runtime
// RUN: mkdir -p %t.pages
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(tosa-to-linalg-named,tosa-to-linalg),%bufferize,remat-lower-pages,%llvm)' %s -o %t.mlir
// RUN: env REMAT_PAGE_DIR=%t.pages %run %t.mlir | FileCheck %s
//
// What cannot be done ends the process with a message.
// RUN: not --crash env REMAT_PAGE_DIR=%t.nowhere %run %t.mlir 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: remat runtime: cannot make a file for pages in `{{.*}}.nowhere`: No such file or directory

func.func private @printMemrefF32(tensor<*xf32>)

func.func @plain(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = tosa.abs %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = tosa.ceil %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = tosa.add %1, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = tosa.add %2, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

func.func @paged(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = tosa.abs %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = tosa.ceil %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = remat.page_out %0 : tensor<2x4xf32>
  %q = remat.page_out %1 : tensor<2x4xf32>
  %a1 = remat.page_in %q : tensor<2x4xf32>
  remat.page_drop %q : !remat.page<tensor<2x4xf32>>
  %a0 = remat.page_in %p : tensor<2x4xf32>
  %2 = tosa.add %a1, %a0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  remat.dealloc %a0 : tensor<2x4xf32>
  remat.dealloc %a1 : tensor<2x4xf32>
  %b0 = remat.page_in %p : tensor<2x4xf32>
  remat.page_drop %p : !remat.page<tensor<2x4xf32>>
  %3 = tosa.add %2, %b0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// A page of a part of a tensor, of a transposed one, and pages through a loop.
func.func @parts(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<4x2xf32>) {
  %part = tensor.extract_slice %x[0, 1] [2, 2] [1, 2] : tensor<2x4xf32> to tensor<2x2xf32>
  %p = remat.page_out %part : tensor<2x2xf32>
  %0 = remat.page_in %p : tensor<2x2xf32>
  %e = tensor.empty() : tensor<4x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x4xf32>) outs(%e : tensor<4x2xf32>) permutation = [1, 0]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %1 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %t) -> tensor<4x2xf32> {
    %q = remat.page_out %acc : tensor<4x2xf32>
    %a = remat.page_in %q : tensor<4x2xf32>
    %b = remat.page_in %q : tensor<4x2xf32>
    %sum = linalg.add ins(%a, %b : tensor<4x2xf32>, tensor<4x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
    scf.yield %sum : tensor<4x2xf32>
  }
  return %0, %1 : tensor<2x2xf32>, tensor<4x2xf32>
}

func.func @main() {
  %x = arith.constant dense<[[0.5, -1.0, 2.0, -3.0], [4.0, -5.0, 6.0, -7.5]]> : tensor<2x4xf32>
  // CHECK:      {{\[\[}}2,   3,   6,   9],
  // CHECK-NEXT: [12,   15,   18,   23]]
  %0 = call @plain(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %u0 = tensor.cast %0 : tensor<2x4xf32> to tensor<*xf32>
  call @printMemrefF32(%u0) : (tensor<*xf32>) -> ()
  // CHECK:      {{\[\[}}2,   3,   6,   9],
  // CHECK-NEXT: [12,   15,   18,   23]]
  %1 = call @paged(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %u1 = tensor.cast %1 : tensor<2x4xf32> to tensor<*xf32>
  call @printMemrefF32(%u1) : (tensor<*xf32>) -> ()
  // CHECK:      {{\[\[}}-1,   -3],
  // CHECK-NEXT: [-5,   -7.5]]
  // CHECK:      {{\[\[}}4,   32],
  // CHECK-NEXT: [-8,   -40],
  // CHECK-NEXT: [16,   48],
  // CHECK-NEXT: [-24,   -60]]
  %2, %3 = call @parts(%x) : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<4x2xf32>)
  %u2 = tensor.cast %2 : tensor<2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u2) : (tensor<*xf32>) -> ()
  %u3 = tensor.cast %3 : tensor<4x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u3) : (tensor<*xf32>) -> ()
  return
}
