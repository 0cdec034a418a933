// Written by generate.py. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @mlp{{.*}}remat.peak

// A training step of a perceptron with 8 layers: forward, backward, new weights.
func.func @mlp(%x: tensor<1x4096x64xf32>, %target: tensor<1x4096x64xf32>, %w0: tensor<1x64x64xf32>, %w1: tensor<1x64x64xf32>, %w2: tensor<1x64x64xf32>, %w3: tensor<1x64x64xf32>, %w4: tensor<1x64x64xf32>, %w5: tensor<1x64x64xf32>, %w6: tensor<1x64x64xf32>, %w7: tensor<1x64x64xf32>, %b0: tensor<1x1x64xf32>, %b1: tensor<1x1x64xf32>, %b2: tensor<1x1x64xf32>, %b3: tensor<1x1x64xf32>, %b4: tensor<1x1x64xf32>, %b5: tensor<1x1x64xf32>, %b6: tensor<1x1x64xf32>, %b7: tensor<1x1x64xf32>) -> (tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) {
  %number_0 = "tosa.const" () <{values = dense<0.000000e+00> : tensor<1xf32>}> : () -> tensor<1xf32>
  %number_1 = "tosa.const" () <{values = dense<1.000000e+00> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %shift_0 = "tosa.const" () <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %number_2 = "tosa.const" () <{values = dense<1.000000e-04> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %matmul_0 = tosa.matmul %x, %w0, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_1 = tosa.add %matmul_0, %b0 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_2 = tosa.tanh %add_1 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_3 = tosa.matmul %tanh_2, %w1, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_4 = tosa.add %matmul_3, %b1 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_5 = tosa.tanh %add_4 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_6 = tosa.matmul %tanh_5, %w2, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_7 = tosa.add %matmul_6, %b2 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_8 = tosa.tanh %add_7 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_9 = tosa.matmul %tanh_8, %w3, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_10 = tosa.add %matmul_9, %b3 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_11 = tosa.tanh %add_10 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_12 = tosa.matmul %tanh_11, %w4, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_13 = tosa.add %matmul_12, %b4 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_14 = tosa.tanh %add_13 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_15 = tosa.matmul %tanh_14, %w5, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_16 = tosa.add %matmul_15, %b5 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_17 = tosa.tanh %add_16 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_18 = tosa.matmul %tanh_17, %w6, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_19 = tosa.add %matmul_18, %b6 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_20 = tosa.tanh %add_19 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %matmul_21 = tosa.matmul %tanh_20, %w7, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %add_22 = tosa.add %matmul_21, %b7 : (tensor<1x4096x64xf32>, tensor<1x1x64xf32>) -> tensor<1x4096x64xf32>
  %tanh_23 = tosa.tanh %add_22 : (tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %sub_24 = tosa.sub %tanh_23, %target : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_25 = tosa.mul %tanh_23, %tanh_23, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_26 = tosa.sub %number_1, %mul_25 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_27 = tosa.mul %sub_24, %sub_26, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_28 = tosa.reduce_sum %mul_27 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_29 = tosa.transpose %w7 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_30 = tosa.matmul %mul_27, %transpose_29, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_31 = tosa.transpose %tanh_20 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_32 = tosa.matmul %transpose_31, %mul_27, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_33 = tosa.mul %tanh_20, %tanh_20, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_34 = tosa.sub %number_1, %mul_33 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_35 = tosa.mul %matmul_30, %sub_34, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_36 = tosa.reduce_sum %mul_35 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_37 = tosa.transpose %w6 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_38 = tosa.matmul %mul_35, %transpose_37, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_39 = tosa.transpose %tanh_17 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_40 = tosa.matmul %transpose_39, %mul_35, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_41 = tosa.mul %tanh_17, %tanh_17, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_42 = tosa.sub %number_1, %mul_41 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_43 = tosa.mul %matmul_38, %sub_42, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_44 = tosa.reduce_sum %mul_43 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_45 = tosa.transpose %w5 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_46 = tosa.matmul %mul_43, %transpose_45, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_47 = tosa.transpose %tanh_14 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_48 = tosa.matmul %transpose_47, %mul_43, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_49 = tosa.mul %tanh_14, %tanh_14, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_50 = tosa.sub %number_1, %mul_49 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_51 = tosa.mul %matmul_46, %sub_50, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_52 = tosa.reduce_sum %mul_51 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_53 = tosa.transpose %w4 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_54 = tosa.matmul %mul_51, %transpose_53, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_55 = tosa.transpose %tanh_11 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_56 = tosa.matmul %transpose_55, %mul_51, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_57 = tosa.mul %tanh_11, %tanh_11, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_58 = tosa.sub %number_1, %mul_57 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_59 = tosa.mul %matmul_54, %sub_58, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_60 = tosa.reduce_sum %mul_59 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_61 = tosa.transpose %w3 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_62 = tosa.matmul %mul_59, %transpose_61, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_63 = tosa.transpose %tanh_8 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_64 = tosa.matmul %transpose_63, %mul_59, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_65 = tosa.mul %tanh_8, %tanh_8, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_66 = tosa.sub %number_1, %mul_65 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_67 = tosa.mul %matmul_62, %sub_66, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_68 = tosa.reduce_sum %mul_67 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_69 = tosa.transpose %w2 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_70 = tosa.matmul %mul_67, %transpose_69, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_71 = tosa.transpose %tanh_5 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_72 = tosa.matmul %transpose_71, %mul_67, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_73 = tosa.mul %tanh_5, %tanh_5, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_74 = tosa.sub %number_1, %mul_73 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_75 = tosa.mul %matmul_70, %sub_74, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_76 = tosa.reduce_sum %mul_75 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_77 = tosa.transpose %w1 {perms = array<i32: 0, 2, 1>} : (tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %matmul_78 = tosa.matmul %mul_75, %transpose_77, %number_0, %number_0 : (tensor<1x4096x64xf32>, tensor<1x64x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4096x64xf32>
  %transpose_79 = tosa.transpose %tanh_2 {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_80 = tosa.matmul %transpose_79, %mul_75, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_81 = tosa.mul %tanh_2, %tanh_2, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %sub_82 = tosa.sub %number_1, %mul_81 : (tensor<1x1x1xf32>, tensor<1x4096x64xf32>) -> tensor<1x4096x64xf32>
  %mul_83 = tosa.mul %matmul_78, %sub_82, %shift_0 : (tensor<1x4096x64xf32>, tensor<1x4096x64xf32>, tensor<1xi8>) -> tensor<1x4096x64xf32>
  %reduce_sum_84 = tosa.reduce_sum %mul_83 {axis = 1 : i32} : (tensor<1x4096x64xf32>) -> tensor<1x1x64xf32>
  %transpose_85 = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x4096x64xf32>) -> tensor<1x64x4096xf32>
  %matmul_86 = tosa.matmul %transpose_85, %mul_83, %number_0, %number_0 : (tensor<1x64x4096xf32>, tensor<1x4096x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  %mul_87 = tosa.mul %matmul_86, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_88 = tosa.sub %w0, %mul_87 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_89 = tosa.mul %matmul_80, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_90 = tosa.sub %w1, %mul_89 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_91 = tosa.mul %matmul_72, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_92 = tosa.sub %w2, %mul_91 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_93 = tosa.mul %matmul_64, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_94 = tosa.sub %w3, %mul_93 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_95 = tosa.mul %matmul_56, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_96 = tosa.sub %w4, %mul_95 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_97 = tosa.mul %matmul_48, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_98 = tosa.sub %w5, %mul_97 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_99 = tosa.mul %matmul_40, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_100 = tosa.sub %w6, %mul_99 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_101 = tosa.mul %matmul_32, %number_2, %shift_0 : (tensor<1x64x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64xf32>
  %sub_102 = tosa.sub %w7, %mul_101 : (tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> tensor<1x64x64xf32>
  %mul_103 = tosa.mul %reduce_sum_84, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_104 = tosa.sub %b0, %mul_103 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_105 = tosa.mul %reduce_sum_76, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_106 = tosa.sub %b1, %mul_105 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_107 = tosa.mul %reduce_sum_68, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_108 = tosa.sub %b2, %mul_107 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_109 = tosa.mul %reduce_sum_60, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_110 = tosa.sub %b3, %mul_109 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_111 = tosa.mul %reduce_sum_52, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_112 = tosa.sub %b4, %mul_111 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_113 = tosa.mul %reduce_sum_44, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_114 = tosa.sub %b5, %mul_113 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_115 = tosa.mul %reduce_sum_36, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_116 = tosa.sub %b6, %mul_115 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  %mul_117 = tosa.mul %reduce_sum_28, %number_2, %shift_0 : (tensor<1x1x64xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<1x1x64xf32>
  %sub_118 = tosa.sub %b7, %mul_117 : (tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  return %sub_88, %sub_90, %sub_92, %sub_94, %sub_96, %sub_98, %sub_100, %sub_102, %sub_104, %sub_106, %sub_108, %sub_110, %sub_112, %sub_114, %sub_116, %sub_118 : tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
}
