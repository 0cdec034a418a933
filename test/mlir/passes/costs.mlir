// Costs of operations by their names and their loops, in orders of magnitude.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-annotate{device=cpu}))' %s | FileCheck %s

// A convolution takes nine times the input channels of multiply-adds for each element, one of every channel by itself nine.
// CHECK-LABEL: func.func @convolution
// CHECK:       tosa.conv2d {{.*}}remat.bytes = 262144 : i64, remat.cost = {{......}} : i64
// CHECK:       tosa.depthwise_conv2d {{.*}}remat.cost = {{.....}} : i64
// CHECK:       tosa.add {{.*}}remat.cost = {{.....}} : i64
func.func @convolution(%x: tensor<1x32x32x64xf32>, %w: tensor<64x3x3x64xf32>, %d: tensor<3x3x64x1xf32>, %b: tensor<64xf32>, %z: tensor<1xf32>) -> tensor<1x32x32x64xf32> {
  %0 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}
      : (tensor<1x32x32x64xf32>, tensor<64x3x3x64xf32>, tensor<64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x64xf32>
  %1 = tosa.depthwise_conv2d %0, %d, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}
      : (tensor<1x32x32x64xf32>, tensor<3x3x64x1xf32>, tensor<64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x64xf32>
  %2 = tosa.add %1, %0 : (tensor<1x32x32x64xf32>, tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32>
  return %2 : tensor<1x32x32x64xf32>
}

// What is in a loop costs as often as the loop runs.
// CHECK-LABEL: func.func @loops
// CHECK:       linalg.matmul {{.*}}remat.cost = {{.....}} : i64
// CHECK:       } {remat.bytes = 65536 : i64, remat.cost = {{......}} : i64
func.func @loops(%x: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<128x128xf32>, tensor<128x128xf32>) outs(%f : tensor<128x128xf32>) -> tensor<128x128xf32>
  %1 = scf.for %i = %c0 to %c10 step %c1 iter_args(%t = %0) -> tensor<128x128xf32> {
    %e1 = tensor.empty() : tensor<128x128xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %m = linalg.matmul ins(%t, %x : tensor<128x128xf32>, tensor<128x128xf32>) outs(%f1 : tensor<128x128xf32>) -> tensor<128x128xf32>
    scf.yield %m : tensor<128x128xf32>
  }
  return %1 : tensor<128x128xf32>
}
