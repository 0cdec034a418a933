// Written by generate.py. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @chain{{.*}}remat.peak

// A chain of elementwise operations with long skips, as in an encoder and a decoder: 1 MiB a tensor.
func.func @chain(%x: tensor<1x512x512xf32>) -> (tensor<1x512x512xf32>) {
  %shift_0 = "tosa.const" () <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %number_0 = "tosa.const" () <{values = dense<-5.000000e-01> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %number_1 = "tosa.const" () <{values = dense<1.500000e+00> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %number_2 = "tosa.const" () <{values = dense<1.000000e+00> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %mul_0 = tosa.mul %x, %x, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_1 = tosa.mul %mul_0, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_2 = tosa.exp %mul_1 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_3 = tosa.mul %exp_2, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_4 = tosa.tanh %mul_3 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_5 = tosa.mul %tanh_4, %tanh_4, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_6 = tosa.mul %mul_5, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_7 = tosa.exp %mul_6 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_8 = tosa.mul %exp_7, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_9 = tosa.tanh %mul_8 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_10 = tosa.mul %tanh_9, %tanh_9, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_11 = tosa.mul %mul_10, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_12 = tosa.exp %mul_11 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_13 = tosa.mul %exp_12, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_14 = tosa.tanh %mul_13 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_15 = tosa.mul %tanh_14, %tanh_14, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_16 = tosa.mul %mul_15, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_17 = tosa.exp %mul_16 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_18 = tosa.mul %exp_17, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_19 = tosa.tanh %mul_18 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_20 = tosa.mul %tanh_19, %tanh_19, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_21 = tosa.mul %mul_20, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_22 = tosa.exp %mul_21 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_23 = tosa.mul %exp_22, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_24 = tosa.tanh %mul_23 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_25 = tosa.mul %tanh_24, %tanh_24, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_26 = tosa.mul %mul_25, %number_0, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %exp_27 = tosa.exp %mul_26 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %mul_28 = tosa.mul %exp_27, %number_1, %shift_0 : (tensor<1x512x512xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %tanh_29 = tosa.tanh %mul_28 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_30 = tosa.add %tanh_29, %exp_27 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_31 = tosa.tanh %add_30 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_32 = tosa.add %tanh_31, %tanh_24 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_33 = tosa.tanh %add_32 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_34 = tosa.add %tanh_33, %exp_22 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_35 = tosa.tanh %add_34 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_36 = tosa.add %tanh_35, %tanh_19 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_37 = tosa.tanh %add_36 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_38 = tosa.add %tanh_37, %exp_17 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_39 = tosa.tanh %add_38 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_40 = tosa.add %tanh_39, %tanh_14 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_41 = tosa.tanh %add_40 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_42 = tosa.add %tanh_41, %exp_12 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_43 = tosa.tanh %add_42 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_44 = tosa.add %tanh_43, %tanh_9 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_45 = tosa.tanh %add_44 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_46 = tosa.add %tanh_45, %exp_7 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_47 = tosa.tanh %add_46 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_48 = tosa.add %tanh_47, %tanh_4 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_49 = tosa.tanh %add_48 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %add_50 = tosa.add %tanh_49, %exp_2 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %tanh_51 = tosa.tanh %add_50 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  return %tanh_51 : tensor<1x512x512xf32>
}
