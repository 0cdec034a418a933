// Operations of dialects that are not loaded are judged by their names, in generic form.
// REQUIRES: scheduler
// RUN: mlir-opt %load -allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false},remat-verify))' %s | FileCheck %s

// Constants are resident; a convolution may run again, what draws random numbers may not, nor what is not known.
// CHECK-LABEL: func.func @main_graph
// CHECK:       %[[W:.*]] = "onnx.Constant"
// CHECK:       "onnx.RandomNormalLike"
// CHECK-NOT:   "onnx.RandomNormalLike"
// CHECK:       %[[F:.*]] = remat.recompute %arg0 id({{[0-9]+}}) of("Conv")
// CHECK-NEXT:  "onnx.Conv"(%[[F]], %[[W]],
// CHECK-NOT:   "onnx.RandomNormalLike"
// CHECK:       return
func.func @main_graph(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = "onnx.Constant"() {value = dense<1.0> : tensor<4x4x3x3xf32>} : () -> tensor<4x4x3x3xf32>
  %n = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Conv"(%x, %w, %n) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 1 : si64} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>, none) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.RandomNormalLike"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Mul"(%1, %2) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.Sigmoid"(%3) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Add"(%4, %3) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = "onnx.Tanh"(%5) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %7 = "onnx.Add"(%6, %1) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %8 = "onnx.Add"(%7, %0) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %8 : tensor<1x4x8x8xf32>
}

// Tensors that no fence takes: a number sets the copy apart.
// CHECK-LABEL: func.func @torch
// CHECK:       torch.operator"
// CHECK:       "torch.operator"(%{{.*}}) <{name = "onnx.Exp"}> {remat.recompute = 1 : i64}
// CHECK:       "torch.operator"{{.*}}onnx.Add
func.func @torch(%x: !torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32> {
  %0 = "torch.operator"(%x) <{name = "onnx.Exp"}> : (!torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32>
  %1 = "torch.operator"(%0) <{name = "onnx.Sigmoid"}> : (!torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32>
  %2 = "torch.operator"(%1) <{name = "onnx.Tanh"}> : (!torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32>
  %3 = "torch.operator"(%2, %1) <{name = "onnx.Sub"}> : (!torch.vtensor<[8,8],f32>, !torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32>
  %4 = "torch.operator"(%3, %0) <{name = "onnx.Add"}> : (!torch.vtensor<[8,8],f32>, !torch.vtensor<[8,8],f32>) -> !torch.vtensor<[8,8],f32>
  return %4 : !torch.vtensor<[8,8],f32>
}

// CHECK-LABEL: func.func @stablehlo
// CHECK:       stablehlo.custom_call
// CHECK:       %[[F:.*]] = remat.recompute %arg0
// CHECK:       stablehlo.exponential"(%[[F]])
// CHECK-NOT:   stablehlo.custom_call
// CHECK:       return
func.func @stablehlo(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.exponential"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.custom_call"(%0) {call_target_name = "f"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "stablehlo.reverse"(%1) {dimensions = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "stablehlo.concatenate"(%2, %1) {dimension = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %4 = "stablehlo.pad"(%3) {high = array<i64: -8, 0>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %5 = "stablehlo.add"(%4, %0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// A terminator of a dialect that is not loaded is the last operation.
// CHECK-LABEL: func.func @terminated
// CHECK-SAME:    remat.peak = 512 : i64
// CHECK:       "onnx.Return"
func.func @terminated(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "onnx.Exp"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "onnx.Tanh"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  "onnx.Return"(%1) : (tensor<8x8xf32>) -> ()
}
