// Written by hand. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=80%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=80%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @choice{{.*}}remat.peak

// One of two branches, each of which holds more than it has to, between values that are held around them.
module {
  func.func @choice(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %at = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %w = tosa.tanh %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %one = tensor.extract %w[%at, %at] : tensor<512x512xf32>
    %positive = arith.cmpf ogt, %one, %zero : f32
    %y = scf.if %positive -> (tensor<512x512xf32>) {
      %u0 = tosa.exp %w : (tensor<512x512xf32>) -> tensor<512x512xf32>
      scf.yield %u0 : tensor<512x512xf32>
    } else {
      %u0 = tosa.exp %w : (tensor<512x512xf32>) -> tensor<512x512xf32>
      %u1 = tosa.tanh %u0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
      %u2 = tosa.sigmoid %u1 : (tensor<512x512xf32>) -> tensor<512x512xf32>
      %u3 = tosa.abs %u2 : (tensor<512x512xf32>) -> tensor<512x512xf32>
      %u4 = tosa.exp %u3 : (tensor<512x512xf32>) -> tensor<512x512xf32>
      %u5 = tosa.add %u4, %u2 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      %u6 = tosa.sub %u5, %u1 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      %u7 = tosa.sub %u6, %u0 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      scf.yield %u7 : tensor<512x512xf32>
    }
    %k = tosa.sub %y, %w : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    return %k : tensor<512x512xf32>
  }
}
