// Fused chains run tile by tile: clones of operations with slices of their operands, each tile wholly before the next one.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min fission=exact tiles=2 step-limit=400 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s

// CHECK-LABEL: func.func @products
// CHECK-SAME:    remat.peak = 1088 : i64
// CHECK:       %[[ROWS:.*]] = tensor.extract_slice %arg0[0, 0] [4, 4] [1, 1]
// CHECK-NEXT:  %[[X:.*]] = bufferization.alloc_tensor() copy(%[[ROWS]])
// CHECK:       %[[OUT:.*]] = bufferization.alloc_tensor() : tensor<4x32xf32>
// CHECK-NEXT:  %[[FILLED:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[OUT]] : tensor<4x32xf32>)
// CHECK-NEXT:  %[[UP:.*]] = linalg.matmul ins(%[[X]], %arg1 : tensor<4x4xf32>, tensor<4x32xf32>) outs(%[[FILLED]]
// CHECK-NEXT:  remat.dealloc %[[X]]
// CHECK:       %[[EXP:.*]] = linalg.exp ins(%[[UP]]
// CHECK:       %[[ONE:.*]] = linalg.matmul ins(%[[EXP]], %arg2
// CHECK-NEXT:  remat.dealloc %[[EXP]]
// CHECK:       tensor.extract_slice %arg0[4, 0] [4, 4] [1, 1]
// CHECK:       %[[TWO:.*]] = linalg.matmul ins(%{{.*}}, %arg2 : tensor<4x32xf32>, tensor<32x4xf32>)
// CHECK:       %[[WHOLE:.*]] = bufferization.alloc_tensor() : tensor<8x4xf32>
// CHECK-NEXT:  %[[FIRST:.*]] = tensor.insert_slice %[[ONE]] into %[[WHOLE]][0, 0] [4, 4] [1, 1]
// CHECK-NEXT:  %[[BOTH:.*]] = tensor.insert_slice %[[TWO]] into %[[FIRST]][4, 0] [4, 4] [1, 1]
// CHECK:       return %[[BOTH]]
func.func @products(%x: tensor<8x4xf32>, %up: tensor<4x32xf32>, %down: tensor<32x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%x, %up : tensor<8x4xf32>, tensor<4x32xf32>) outs(%f0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e1 = tensor.empty() : tensor<8x32xf32>
  %1 = linalg.exp ins(%0 : tensor<8x32xf32>) outs(%e1 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e2 = tensor.empty() : tensor<8x4xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = linalg.matmul ins(%1, %down : tensor<8x32xf32>, tensor<32x4xf32>) outs(%f2 : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @images
// CHECK-SAME:    remat.peak = 8512 : i64
// CHECK:       %[[WINDOW:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK:       tensor.extract_slice %arg0[0, 0, 0, 0] [1, 8, 5, 2] [1, 1, 1, 1]
// CHECK:       tensor.pad %{{.*}} low[0, 1, 1, 0] high[0, 1, 0, 0]
// CHECK:       tensor<1x8x5x2xf32> to tensor<1x10x6x2xf32>
// CHECK:       linalg.broadcast ins(%arg2 : tensor<32xf32>) outs(%{{.*}} : tensor<1x8x4x32xf32>)
// CHECK-NEXT:  linalg.conv_2d_nhwc_hwcf {{.*}} ins(%{{.*}}, %arg1 : tensor<1x10x6x2xf32>, tensor<3x3x2x32xf32>)
// CHECK:       linalg.pooling_nhwc_max {{.*}} ins(%{{.*}}, %[[WINDOW]] : tensor<1x8x4x32xf32>, tensor<4x4xf32>) outs(%{{.*}} : tensor<1x2x1x32xf32>)
// CHECK:       tensor.extract_slice %arg0[0, 0, 3, 0] [1, 8, 5, 2] [1, 1, 1, 1]
// CHECK:       tensor.pad %{{.*}} low[0, 1, 0, 0] high[0, 1, 1, 0]
// CHECK:       tensor.insert_slice %{{.*}}[0, 0, 1, 0] [1, 2, 1, 32] [1, 1, 1, 1]
// The bias is broadcast into the destination, which is a part of the convolution; the pool has a window that is an operand.
func.func @images(%x: tensor<1x8x8x2xf32>, %w: tensor<3x3x2x32xf32>, %b: tensor<32xf32>) -> tensor<1x2x2x32xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -1.0e30 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x2xf32> to tensor<1x10x10x2xf32>
  %e0 = tensor.empty() : tensor<1x8x8x32xf32>
  %f0 = linalg.broadcast ins(%b : tensor<32xf32>) outs(%e0 : tensor<1x8x8x32xf32>) dimensions = [0, 1, 2]
  %0 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x10x10x2xf32>, tensor<3x3x2x32xf32>) outs(%f0 : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %e1 = tensor.empty() : tensor<1x8x8x32xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%0 : tensor<1x8x8x32xf32>) outs(%e1 : tensor<1x8x8x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x8x8x32xf32>
  %window = tensor.empty() : tensor<4x4xf32>
  %e2 = tensor.empty() : tensor<1x2x2x32xf32>
  %f2 = linalg.fill ins(%least : f32) outs(%e2 : tensor<1x2x2x32xf32>) -> tensor<1x2x2x32xf32>
  %2 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<4> : tensor<2xi64>}
    ins(%1, %window : tensor<1x8x8x32xf32>, tensor<4x4xf32>) outs(%f2 : tensor<1x2x2x32xf32>) -> tensor<1x2x2x32xf32>
  return %2 : tensor<1x2x2x32xf32>
}

// CHECK-LABEL: func.func @channels_first
// CHECK-SAME:    remat.peak = 3072 : i64
// CHECK:       linalg.conv_2d_nchw_fchw
// CHECK:       linalg.generic
// CHECK:       linalg.conv_2d_nchw_fchw
// CHECK:       linalg.generic
// CHECK:       tensor.insert_slice
// Channels first; an axis that a generic operation permutes.
func.func @channels_first(%x: tensor<1x2x8x8xf32>, %w: tensor<32x2x3x3xf32>) -> tensor<6x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x32x6x6xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x2x8x8xf32>, tensor<32x2x3x3xf32>) outs(%f0 : tensor<1x32x6x6xf32>) -> tensor<1x32x6x6xf32>
  %e1 = tensor.empty() : tensor<6x32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x32xf32>) -> tensor<6x32xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(r, c, n, s) -> (n, c, r, s)>, affine_map<(r, c, n, s) -> (r, c)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%0 : tensor<1x32x6x6xf32>) outs(%f1 : tensor<6x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<6x32xf32>
  return %1 : tensor<6x32xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK-SAME:    remat.peak = {{[0-9]+}} : i64
// CHECK:       %[[SCORES:.*]] = linalg.matmul ins(%{{.*}}, %arg1 : tensor<16x4xf32>, tensor<4x32xf32>)
// CHECK:       %[[SHARES:.*]] = linalg.softmax dimension(1) ins(%[[SCORES]] : tensor<16x32xf32>)
// CHECK:       linalg.matmul ins(%[[SHARES]], %arg2 : tensor<16x32xf32>, tensor<32x4xf32>)
// CHECK:       linalg.softmax dimension(1) ins(%{{.*}} : tensor<16x32xf32>)
// CHECK:       tensor.insert_slice
// A softmax runs row by row, and whole along the axis that it sums over.
func.func @attention(%q: tensor<32x4xf32>, %k: tensor<4x32xf32>, %v: tensor<32x4xf32>) -> tensor<32x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<32x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %0 = linalg.matmul ins(%q, %k : tensor<32x4xf32>, tensor<4x32xf32>) outs(%f0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e1 = tensor.empty() : tensor<32x32xf32>
  %1 = linalg.softmax dimension(1) ins(%0 : tensor<32x32xf32>) outs(%e1 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e2 = tensor.empty() : tensor<32x4xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<32x4xf32>) -> tensor<32x4xf32>
  %2 = linalg.matmul ins(%1, %v : tensor<32x32xf32>, tensor<32x4xf32>) outs(%f2 : tensor<32x4xf32>) -> tensor<32x4xf32>
  return %2 : tensor<32x4xf32>
}

// CHECK-LABEL: func.func @by_columns
// CHECK:       linalg.softmax dimension(0) ins(%{{.*}} : tensor<32x16xf32>)
// CHECK:       linalg.softmax dimension(0) ins(%{{.*}} : tensor<32x16xf32>)
func.func @by_columns(%k: tensor<32x4xf32>, %q: tensor<4x32xf32>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<32x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %0 = linalg.matmul ins(%k, %q : tensor<32x4xf32>, tensor<4x32xf32>) outs(%f0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e1 = tensor.empty() : tensor<32x32xf32>
  %1 = linalg.softmax dimension(0) ins(%0 : tensor<32x32xf32>) outs(%e1 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e2 = tensor.empty() : tensor<32xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<32xf32>) -> tensor<32xf32>
  %2 = linalg.reduce ins(%1 : tensor<32x32xf32>) outs(%f2 : tensor<32xf32>) dimensions = [0]
    (%in: f32, %sum: f32) {
      %s = arith.mulf %in, %in : f32
      %t = arith.addf %s, %sum : f32
      linalg.yield %t : f32
    }
  return %2 : tensor<32xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK-NOT:   tensor.extract_slice
// CHECK:       return
// What looks at the numbers of its loops has other numbers in a tile: it runs whole.
func.func @whole(%x: tensor<8x4xf32>, %up: tensor<4x32xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
    outs(%e0 : tensor<8x32xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.muli %i, %j : index
    %n32 = arith.index_cast %n : index to i32
    %f = arith.sitofp %n32 : i32 to f32
    linalg.yield %f : f32
  } -> tensor<8x32xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.reduce ins(%0 : tensor<8x32xf32>) outs(%f1 : tensor<8xf32>) dimensions = [1]
    (%in: f32, %sum: f32) {
      %s = arith.addf %in, %sum : f32
      linalg.yield %s : f32
    }
  return %1 : tensor<8xf32>
}
