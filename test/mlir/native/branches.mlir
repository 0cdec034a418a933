// Written by hand. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=80%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=80%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @branches{{.*}}remat.peak

// Blocks with branches between them: what is made before a branch is needed after it, and each block holds more than it has to.
module {
  func.func @branches(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %at = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %a = tosa.tanh %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %b = tosa.exp %a : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %c = tosa.sigmoid %b : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %d = tosa.sub %c, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %e = tosa.add %d, %a : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %one = tensor.extract %e[%at, %at] : tensor<512x512xf32>
    %positive = arith.cmpf ogt, %one, %zero : f32
    cf.cond_br %positive, ^up, ^down(%e : tensor<512x512xf32>)
  ^up:
    %u0 = tosa.exp %e : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %u1 = tosa.tanh %u0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %u2 = tosa.sigmoid %u1 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %u3 = tosa.abs %u2 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %u4 = tosa.exp %u3 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %u5 = tosa.add %u4, %u2 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %u6 = tosa.sub %u5, %u1 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %u7 = tosa.add %u6, %u0 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    cf.br ^join(%u7 : tensor<512x512xf32>)
  ^down(%t: tensor<512x512xf32>):
    %v0 = tosa.tanh %t : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %v1 = tosa.exp %v0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %v2 = tosa.sigmoid %v1 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %v3 = tosa.abs %v2 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %v4 = tosa.exp %v3 : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %v5 = tosa.add %v4, %v2 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %v6 = tosa.sub %v5, %v1 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %v7 = tosa.add %v6, %v0 : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    cf.br ^join(%v7 : tensor<512x512xf32>)
  ^join(%r: tensor<512x512xf32>):
    %k = tosa.add %r, %a : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    return %k : tensor<512x512xf32>
  }
}
