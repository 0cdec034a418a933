// Views keep the memory they look into; arguments and constants take none of the run's.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-annotate))' %s | FileCheck %s

// CHECK-LABEL: func.func @views(
// CHECK-SAME:    remat.peak = 576 : i64
// CHECK:       math.exp {{.*}}remat.bytes = 256 : i64, {{.*}}remat.live = 256 : i64
// CHECK:       tensor.collapse_shape {{.*}}remat.bytes = 0 : i64, remat.cost = {{[0-9]+}} : i64, remat.live = 256 : i64
// CHECK:       tensor.extract_slice {{.*}}remat.bytes = 0 : i64
// CHECK:       math.tanh {{.*}}remat.bytes = 64 : i64, {{.*}}remat.live = 320 : i64
func.func @views(%x: tensor<8x8xf32>) -> (tensor<16xf32>, tensor<64xf32>) {
  %a = math.exp %x : tensor<8x8xf32>
  %b = tensor.collapse_shape %a [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %c = tensor.extract_slice %b[8] [16] [1] : tensor<64xf32> to tensor<16xf32>
  %d = math.tanh %c : tensor<16xf32>
  %w = arith.constant dense<1.0> : tensor<64xf32>
  %e = arith.addf %b, %w : tensor<64xf32>
  return %d, %e : tensor<16xf32>, tensor<64xf32>
}

// Memory of an argument is the caller's, and so are views of it.
// CHECK-LABEL: func.func @argument(
// CHECK-SAME:    remat.peak = 256 : i64
func.func @argument(%x: tensor<8x8xf32>) -> tensor<64xf32> {
  %a = tosa.const_shape {values = dense<64> : tensor<1xindex>} : () -> !tosa.shape<1>
  %b = tosa.reshape %x, %a : (tensor<8x8xf32>, !tosa.shape<1>) -> tensor<64xf32>
  %c = tosa.exp %b : (tensor<64xf32>) -> tensor<64xf32>
  return %c : tensor<64xf32>
}

// A result that is written where an operand was cheaply prepared takes that memory; one that is written over a value takes its own.
// CHECK-LABEL: func.func @destinations(
// CHECK:       linalg.fill ins
// CHECK:       linalg.matmul {remat.bytes = 256 : i64
// CHECK:       linalg.exp {remat.bytes = 256 : i64
func.func @destinations(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.exp ins(%x : tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

// Several results: each takes memory; one that nobody reads is released at once.
// CHECK-LABEL: func.func @results(
// CHECK-SAME:    remat.peak = 768 : i64
// CHECK:       linalg.generic {{.*}}remat.bytes = 512 : i64
// CHECK:       math.exp {{.*}}remat.live = 512 : i64
func.func @results(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e, %e : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32, %p: f32):
    %s = arith.addf %i, %i : f32
    linalg.yield %i, %s : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  %b = math.exp %a#0 : tensor<64xf32>
  %c = math.tanh %b : tensor<64xf32>
  %d = arith.addf %c, %b : tensor<64xf32>
  return %d : tensor<64xf32>
}
