// Written by generate.py. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @attention{{.*}}remat.peak

// A training step of attention with 4 heads: the outputs are the gradients of input and weights.
func.func @attention(%x: tensor<1x512x64xf32>, %target: tensor<1x512x64xf32>, %q0: tensor<1x64x32xf32>, %k0: tensor<1x64x32xf32>, %v0: tensor<1x64x32xf32>, %o0: tensor<1x32x64xf32>, %q1: tensor<1x64x32xf32>, %k1: tensor<1x64x32xf32>, %v1: tensor<1x64x32xf32>, %o1: tensor<1x32x64xf32>, %q2: tensor<1x64x32xf32>, %k2: tensor<1x64x32xf32>, %v2: tensor<1x64x32xf32>, %o2: tensor<1x32x64xf32>, %q3: tensor<1x64x32xf32>, %k3: tensor<1x64x32xf32>, %v3: tensor<1x64x32xf32>, %o3: tensor<1x32x64xf32>) -> (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>) {
  %number_0 = "tosa.const" () <{values = dense<0.000000e+00> : tensor<1xf32>}> : () -> tensor<1xf32>
  %number_1 = "tosa.const" () <{values = dense<1.767767e-01> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %shift_0 = "tosa.const" () <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %number_2 = "tosa.const" () <{values = dense<-1.000000e+00> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %matmul_0 = tosa.matmul %x, %q0, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %mul_1 = tosa.mul %matmul_0, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %matmul_2 = tosa.matmul %x, %k0, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_3 = tosa.transpose %matmul_2 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_4 = tosa.matmul %mul_1, %transpose_3, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %reduce_max_5 = tosa.reduce_max %matmul_4 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %sub_6 = tosa.sub %matmul_4, %reduce_max_5 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %exp_7 = tosa.exp %sub_6 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %reduce_sum_8 = tosa.reduce_sum %exp_7 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %reciprocal_9 = tosa.reciprocal %reduce_sum_8 : (tensor<1x512x1xf32>) -> tensor<1x512x1xf32>
  %mul_10 = tosa.mul %exp_7, %reciprocal_9, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %matmul_11 = tosa.matmul %x, %v0, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_12 = tosa.matmul %mul_10, %matmul_11, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_13 = tosa.matmul %matmul_12, %o0, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_14 = tosa.add %x, %matmul_13 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %matmul_15 = tosa.matmul %x, %q1, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %mul_16 = tosa.mul %matmul_15, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %matmul_17 = tosa.matmul %x, %k1, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_18 = tosa.transpose %matmul_17 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_19 = tosa.matmul %mul_16, %transpose_18, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %reduce_max_20 = tosa.reduce_max %matmul_19 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %sub_21 = tosa.sub %matmul_19, %reduce_max_20 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %exp_22 = tosa.exp %sub_21 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %reduce_sum_23 = tosa.reduce_sum %exp_22 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %reciprocal_24 = tosa.reciprocal %reduce_sum_23 : (tensor<1x512x1xf32>) -> tensor<1x512x1xf32>
  %mul_25 = tosa.mul %exp_22, %reciprocal_24, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %matmul_26 = tosa.matmul %x, %v1, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_27 = tosa.matmul %mul_25, %matmul_26, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_28 = tosa.matmul %matmul_27, %o1, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_29 = tosa.add %add_14, %matmul_28 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %matmul_30 = tosa.matmul %x, %q2, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %mul_31 = tosa.mul %matmul_30, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %matmul_32 = tosa.matmul %x, %k2, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_33 = tosa.transpose %matmul_32 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_34 = tosa.matmul %mul_31, %transpose_33, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %reduce_max_35 = tosa.reduce_max %matmul_34 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %sub_36 = tosa.sub %matmul_34, %reduce_max_35 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %exp_37 = tosa.exp %sub_36 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %reduce_sum_38 = tosa.reduce_sum %exp_37 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %reciprocal_39 = tosa.reciprocal %reduce_sum_38 : (tensor<1x512x1xf32>) -> tensor<1x512x1xf32>
  %mul_40 = tosa.mul %exp_37, %reciprocal_39, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %matmul_41 = tosa.matmul %x, %v2, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_42 = tosa.matmul %mul_40, %matmul_41, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_43 = tosa.matmul %matmul_42, %o2, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_44 = tosa.add %add_29, %matmul_43 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %matmul_45 = tosa.matmul %x, %q3, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %mul_46 = tosa.mul %matmul_45, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %matmul_47 = tosa.matmul %x, %k3, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_48 = tosa.transpose %matmul_47 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_49 = tosa.matmul %mul_46, %transpose_48, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %reduce_max_50 = tosa.reduce_max %matmul_49 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %sub_51 = tosa.sub %matmul_49, %reduce_max_50 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %exp_52 = tosa.exp %sub_51 : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %reduce_sum_53 = tosa.reduce_sum %exp_52 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %reciprocal_54 = tosa.reciprocal %reduce_sum_53 : (tensor<1x512x1xf32>) -> tensor<1x512x1xf32>
  %mul_55 = tosa.mul %exp_52, %reciprocal_54, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %matmul_56 = tosa.matmul %x, %v3, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_57 = tosa.matmul %mul_55, %matmul_56, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %matmul_58 = tosa.matmul %matmul_57, %o3, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_59 = tosa.add %add_44, %matmul_58 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %sub_60 = tosa.sub %add_59, %target : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_61 = tosa.transpose %o3 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x64xf32>) -> tensor<1x64x32xf32>
  %matmul_62 = tosa.matmul %sub_60, %transpose_61, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_63 = tosa.transpose %matmul_57 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_64 = tosa.matmul %transpose_63, %sub_60, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x64xf32>
  %transpose_65 = tosa.transpose %matmul_56 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_66 = tosa.matmul %matmul_62, %transpose_65, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %transpose_67 = tosa.transpose %mul_55 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %matmul_68 = tosa.matmul %transpose_67, %matmul_62, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_69 = tosa.transpose %v3 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_70 = tosa.matmul %matmul_68, %transpose_69, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %transpose_71 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_72 = tosa.matmul %transpose_71, %matmul_68, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_73 = tosa.mul %matmul_66, %reciprocal_54, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_74 = tosa.mul %matmul_66, %exp_52, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %reduce_sum_75 = tosa.reduce_sum %mul_74 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %mul_76 = tosa.mul %reciprocal_54, %reciprocal_54, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_77 = tosa.mul %reduce_sum_75, %mul_76, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_78 = tosa.mul %mul_77, %number_2, %shift_0 : (tensor<1x512x1xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %add_79 = tosa.add %mul_73, %mul_78 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %mul_80 = tosa.mul %add_79, %exp_52, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %transpose_81 = tosa.transpose %transpose_48 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %matmul_82 = tosa.matmul %mul_80, %transpose_81, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_83 = tosa.transpose %mul_46 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_84 = tosa.matmul %transpose_83, %mul_80, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x512xf32>
  %transpose_85 = tosa.transpose %matmul_84 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %transpose_86 = tosa.transpose %k3 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_87 = tosa.matmul %transpose_85, %transpose_86, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_88 = tosa.add %matmul_70, %matmul_87 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_89 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_90 = tosa.matmul %transpose_89, %transpose_85, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_91 = tosa.mul %matmul_82, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %transpose_92 = tosa.transpose %q3 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_93 = tosa.matmul %mul_91, %transpose_92, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_94 = tosa.add %add_88, %matmul_93 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_95 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_96 = tosa.matmul %transpose_95, %mul_91, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %transpose_97 = tosa.transpose %o2 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x64xf32>) -> tensor<1x64x32xf32>
  %matmul_98 = tosa.matmul %sub_60, %transpose_97, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_99 = tosa.transpose %matmul_42 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_100 = tosa.matmul %transpose_99, %sub_60, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x64xf32>
  %transpose_101 = tosa.transpose %matmul_41 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_102 = tosa.matmul %matmul_98, %transpose_101, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %transpose_103 = tosa.transpose %mul_40 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %matmul_104 = tosa.matmul %transpose_103, %matmul_98, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_105 = tosa.transpose %v2 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_106 = tosa.matmul %matmul_104, %transpose_105, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_107 = tosa.add %add_94, %matmul_106 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_108 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_109 = tosa.matmul %transpose_108, %matmul_104, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_110 = tosa.mul %matmul_102, %reciprocal_39, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_111 = tosa.mul %matmul_102, %exp_37, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %reduce_sum_112 = tosa.reduce_sum %mul_111 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %mul_113 = tosa.mul %reciprocal_39, %reciprocal_39, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_114 = tosa.mul %reduce_sum_112, %mul_113, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_115 = tosa.mul %mul_114, %number_2, %shift_0 : (tensor<1x512x1xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %add_116 = tosa.add %mul_110, %mul_115 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %mul_117 = tosa.mul %add_116, %exp_37, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %transpose_118 = tosa.transpose %transpose_33 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %matmul_119 = tosa.matmul %mul_117, %transpose_118, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_120 = tosa.transpose %mul_31 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_121 = tosa.matmul %transpose_120, %mul_117, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x512xf32>
  %transpose_122 = tosa.transpose %matmul_121 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %transpose_123 = tosa.transpose %k2 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_124 = tosa.matmul %transpose_122, %transpose_123, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_125 = tosa.add %add_107, %matmul_124 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_126 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_127 = tosa.matmul %transpose_126, %transpose_122, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_128 = tosa.mul %matmul_119, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %transpose_129 = tosa.transpose %q2 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_130 = tosa.matmul %mul_128, %transpose_129, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_131 = tosa.add %add_125, %matmul_130 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_132 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_133 = tosa.matmul %transpose_132, %mul_128, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %transpose_134 = tosa.transpose %o1 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x64xf32>) -> tensor<1x64x32xf32>
  %matmul_135 = tosa.matmul %sub_60, %transpose_134, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_136 = tosa.transpose %matmul_27 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_137 = tosa.matmul %transpose_136, %sub_60, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x64xf32>
  %transpose_138 = tosa.transpose %matmul_26 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_139 = tosa.matmul %matmul_135, %transpose_138, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %transpose_140 = tosa.transpose %mul_25 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %matmul_141 = tosa.matmul %transpose_140, %matmul_135, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_142 = tosa.transpose %v1 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_143 = tosa.matmul %matmul_141, %transpose_142, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_144 = tosa.add %add_131, %matmul_143 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_145 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_146 = tosa.matmul %transpose_145, %matmul_141, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_147 = tosa.mul %matmul_139, %reciprocal_24, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_148 = tosa.mul %matmul_139, %exp_22, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %reduce_sum_149 = tosa.reduce_sum %mul_148 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %mul_150 = tosa.mul %reciprocal_24, %reciprocal_24, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_151 = tosa.mul %reduce_sum_149, %mul_150, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_152 = tosa.mul %mul_151, %number_2, %shift_0 : (tensor<1x512x1xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %add_153 = tosa.add %mul_147, %mul_152 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %mul_154 = tosa.mul %add_153, %exp_22, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %transpose_155 = tosa.transpose %transpose_18 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %matmul_156 = tosa.matmul %mul_154, %transpose_155, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_157 = tosa.transpose %mul_16 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_158 = tosa.matmul %transpose_157, %mul_154, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x512xf32>
  %transpose_159 = tosa.transpose %matmul_158 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %transpose_160 = tosa.transpose %k1 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_161 = tosa.matmul %transpose_159, %transpose_160, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_162 = tosa.add %add_144, %matmul_161 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_163 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_164 = tosa.matmul %transpose_163, %transpose_159, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_165 = tosa.mul %matmul_156, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %transpose_166 = tosa.transpose %q1 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_167 = tosa.matmul %mul_165, %transpose_166, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_168 = tosa.add %add_162, %matmul_167 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_169 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_170 = tosa.matmul %transpose_169, %mul_165, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %add_171 = tosa.add %add_168, %sub_60 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_172 = tosa.transpose %o0 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x64xf32>) -> tensor<1x64x32xf32>
  %matmul_173 = tosa.matmul %sub_60, %transpose_172, %number_0, %number_0 : (tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_174 = tosa.transpose %matmul_12 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_175 = tosa.matmul %transpose_174, %sub_60, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x64xf32>
  %transpose_176 = tosa.transpose %matmul_11 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_177 = tosa.matmul %matmul_173, %transpose_176, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x512xf32>
  %transpose_178 = tosa.transpose %mul_10 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x512xf32>) -> tensor<1x512x512xf32>
  %matmul_179 = tosa.matmul %transpose_178, %matmul_173, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_180 = tosa.transpose %v0 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_181 = tosa.matmul %matmul_179, %transpose_180, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_182 = tosa.add %add_171, %matmul_181 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_183 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_184 = tosa.matmul %transpose_183, %matmul_179, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_185 = tosa.mul %matmul_177, %reciprocal_9, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %mul_186 = tosa.mul %matmul_177, %exp_7, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %reduce_sum_187 = tosa.reduce_sum %mul_186 {axis = 2 : i32} : (tensor<1x512x512xf32>) -> tensor<1x512x1xf32>
  %mul_188 = tosa.mul %reciprocal_9, %reciprocal_9, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_189 = tosa.mul %reduce_sum_187, %mul_188, %shift_0 : (tensor<1x512x1xf32>, tensor<1x512x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %mul_190 = tosa.mul %mul_189, %number_2, %shift_0 : (tensor<1x512x1xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x1xf32>
  %add_191 = tosa.add %mul_185, %mul_190 : (tensor<1x512x512xf32>, tensor<1x512x1xf32>) -> tensor<1x512x512xf32>
  %mul_192 = tosa.mul %add_191, %exp_7, %shift_0 : (tensor<1x512x512xf32>, tensor<1x512x512xf32>, tensor<1xi8>) -> tensor<1x512x512xf32>
  %transpose_193 = tosa.transpose %transpose_3 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %matmul_194 = tosa.matmul %mul_192, %transpose_193, %number_0, %number_0 : (tensor<1x512x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x32xf32>
  %transpose_195 = tosa.transpose %mul_1 {perms = array<i32: 0, 2, 1>} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
  %matmul_196 = tosa.matmul %transpose_195, %mul_192, %number_0, %number_0 : (tensor<1x32x512xf32>, tensor<1x512x512xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x512xf32>
  %transpose_197 = tosa.transpose %matmul_196 {perms = array<i32: 0, 2, 1>} : (tensor<1x32x512xf32>) -> tensor<1x512x32xf32>
  %transpose_198 = tosa.transpose %k0 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_199 = tosa.matmul %transpose_197, %transpose_198, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_200 = tosa.add %add_182, %matmul_199 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_201 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_202 = tosa.matmul %transpose_201, %transpose_197, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  %mul_203 = tosa.mul %matmul_194, %number_1, %shift_0 : (tensor<1x512x32xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x512x32xf32>
  %transpose_204 = tosa.transpose %q0 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x32xf32>) -> tensor<1x32x64xf32>
  %matmul_205 = tosa.matmul %mul_203, %transpose_204, %number_0, %number_0 : (tensor<1x512x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x512x64xf32>
  %add_206 = tosa.add %add_200, %matmul_205 : (tensor<1x512x64xf32>, tensor<1x512x64xf32>) -> tensor<1x512x64xf32>
  %transpose_207 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x512x64xf32>) -> tensor<1x64x512xf32>
  %matmul_208 = tosa.matmul %transpose_207, %mul_203, %number_0, %number_0 : (tensor<1x64x512xf32>, tensor<1x512x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x32xf32>
  return %add_206, %matmul_208, %matmul_202, %matmul_184, %matmul_175, %matmul_170, %matmul_164, %matmul_146, %matmul_137, %matmul_133, %matmul_127, %matmul_109, %matmul_100, %matmul_96, %matmul_90, %matmul_72, %matmul_64 : tensor<1x512x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x32x64xf32>
}
