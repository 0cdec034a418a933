// Written by generate.py. Tiles lower the peak below that of any order, and survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=50%% fission=exact step-limit=200 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @perceptron{{.*}}remat.peak
// CHECK: tensor.extract_slice
// CHECK: tensor.insert_slice

// A perceptron for inference whose inner layer is wide.
func.func @perceptron(%x: tensor<2048x64xf32>, %up: tensor<64x1024xf32>, %down: tensor<1024x64xf32>) -> tensor<2048x64xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -3.0e38 : f32
  %six = arith.constant 6.0 : f32
  %3 = tensor.empty() : tensor<2048x1024xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %5 = linalg.matmul ins(%x, %up : tensor<2048x64xf32>, tensor<64x1024xf32>) outs(%4 : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %6 = tensor.empty() : tensor<2048x1024xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<2048x1024xf32>) outs(%6 : tensor<2048x1024xf32>) { ^bb0(%a: f32, %into: f32): %m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32 linalg.yield %y : f32 } -> tensor<2048x1024xf32>
  %8 = tensor.empty() : tensor<2048x64xf32>
  %9 = linalg.fill ins(%zero : f32) outs(%8 : tensor<2048x64xf32>) -> tensor<2048x64xf32>
  %10 = linalg.matmul ins(%7, %down : tensor<2048x1024xf32>, tensor<1024x64xf32>) outs(%9 : tensor<2048x64xf32>) -> tensor<2048x64xf32>
  return %10 : tensor<2048x64xf32>
}
