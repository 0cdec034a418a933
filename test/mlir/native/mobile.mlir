// Written by generate.py. Tiles lower the peak below that of any order, and survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=50%% fission=exact step-limit=200 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @mobile{{.*}}remat.peak
// CHECK: tensor.extract_slice
// CHECK: tensor.insert_slice

// Inverted residual blocks, for inference: the peak is inside of a block, which tiles lower and orders do not.
func.func @mobile(%image: tensor<1x96x96x16xf32>, %expand0: tensor<1x1x16x96xf32>, %depthwise0: tensor<3x3x96xf32>, %project0: tensor<1x1x96x16xf32>, %expand1: tensor<1x1x16x96xf32>, %depthwise1: tensor<3x3x96xf32>, %project1: tensor<1x1x96x16xf32>) -> tensor<1x48x48x16xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -3.0e38 : f32
  %six = arith.constant 6.0 : f32
  %3 = tensor.empty() : tensor<1x96x96x96xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %5 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%image, %expand0 : tensor<1x96x96x16xf32>, tensor<1x1x16x96xf32>) outs(%4 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %6 = tensor.empty() : tensor<1x96x96x96xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<1x96x96x96xf32>) outs(%6 : tensor<1x96x96x96xf32>) { ^bb0(%a: f32, %into: f32): %m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32 linalg.yield %y : f32 } -> tensor<1x96x96x96xf32>
  %8 = tensor.pad %7 low[0, 1, 1, 0] high[0, 1, 1, 0] { ^bb0(%a: index, %b: index, %c: index, %d: index): tensor.yield %zero : f32 } : tensor<1x96x96x96xf32> to tensor<1x98x98x96xf32>
  %9 = tensor.empty() : tensor<1x96x96x96xf32>
  %10 = linalg.fill ins(%zero : f32) outs(%9 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %11 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%8, %depthwise0 : tensor<1x98x98x96xf32>, tensor<3x3x96xf32>) outs(%10 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %12 = tensor.empty() : tensor<1x96x96x96xf32>
  %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<1x96x96x96xf32>) outs(%12 : tensor<1x96x96x96xf32>) { ^bb0(%a: f32, %into: f32): %m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32 linalg.yield %y : f32 } -> tensor<1x96x96x96xf32>
  %14 = tensor.empty() : tensor<1x96x96x16xf32>
  %15 = linalg.fill ins(%zero : f32) outs(%14 : tensor<1x96x96x16xf32>) -> tensor<1x96x96x16xf32>
  %16 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%13, %project0 : tensor<1x96x96x96xf32>, tensor<1x1x96x16xf32>) outs(%15 : tensor<1x96x96x16xf32>) -> tensor<1x96x96x16xf32>
  %17 = tensor.empty() : tensor<1x96x96x16xf32>
  %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%image, %16 : tensor<1x96x96x16xf32>, tensor<1x96x96x16xf32>) outs(%17 : tensor<1x96x96x16xf32>) { ^bb0(%a: f32, %b: f32, %into: f32): %y = arith.addf %a, %b : f32 linalg.yield %y : f32 } -> tensor<1x96x96x16xf32>
  %19 = tensor.empty() : tensor<1x96x96x96xf32>
  %20 = linalg.fill ins(%zero : f32) outs(%19 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %21 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%18, %expand1 : tensor<1x96x96x16xf32>, tensor<1x1x16x96xf32>) outs(%20 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %22 = tensor.empty() : tensor<1x96x96x96xf32>
  %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<1x96x96x96xf32>) outs(%22 : tensor<1x96x96x96xf32>) { ^bb0(%a: f32, %into: f32): %m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32 linalg.yield %y : f32 } -> tensor<1x96x96x96xf32>
  %24 = tensor.pad %23 low[0, 1, 1, 0] high[0, 1, 1, 0] { ^bb0(%a: index, %b: index, %c: index, %d: index): tensor.yield %zero : f32 } : tensor<1x96x96x96xf32> to tensor<1x98x98x96xf32>
  %25 = tensor.empty() : tensor<1x96x96x96xf32>
  %26 = linalg.fill ins(%zero : f32) outs(%25 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %27 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%24, %depthwise1 : tensor<1x98x98x96xf32>, tensor<3x3x96xf32>) outs(%26 : tensor<1x96x96x96xf32>) -> tensor<1x96x96x96xf32>
  %28 = tensor.empty() : tensor<1x96x96x96xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<1x96x96x96xf32>) outs(%28 : tensor<1x96x96x96xf32>) { ^bb0(%a: f32, %into: f32): %m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32 linalg.yield %y : f32 } -> tensor<1x96x96x96xf32>
  %30 = tensor.empty() : tensor<1x96x96x16xf32>
  %31 = linalg.fill ins(%zero : f32) outs(%30 : tensor<1x96x96x16xf32>) -> tensor<1x96x96x16xf32>
  %32 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%29, %project1 : tensor<1x96x96x96xf32>, tensor<1x1x96x16xf32>) outs(%31 : tensor<1x96x96x16xf32>) -> tensor<1x96x96x16xf32>
  %33 = tensor.empty() : tensor<1x96x96x16xf32>
  %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %32 : tensor<1x96x96x16xf32>, tensor<1x96x96x16xf32>) outs(%33 : tensor<1x96x96x16xf32>) { ^bb0(%a: f32, %b: f32, %into: f32): %y = arith.addf %a, %b : f32 linalg.yield %y : f32 } -> tensor<1x96x96x16xf32>
  %35 = tensor.empty() : tensor<2x2xf32>
  %36 = tensor.empty() : tensor<1x48x48x16xf32>
  %37 = linalg.fill ins(%least : f32) outs(%36 : tensor<1x48x48x16xf32>) -> tensor<1x48x48x16xf32>
  %38 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%34, %35 : tensor<1x96x96x16xf32>, tensor<2x2xf32>) outs(%37 : tensor<1x48x48x16xf32>) -> tensor<1x48x48x16xf32>
  return %38 : tensor<1x48x48x16xf32>
}
