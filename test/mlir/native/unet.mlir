// Written by generate.py. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,remat{budget=60%% step-limit=20000 remarks=false},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @unet{{.*}}remat.peak

// A training step of a U-Net with 3 resolutions: the outputs are the gradients of the weights.
func.func @unet(%image: tensor<1x128x128x8xf32>, %target: tensor<1x128x128x8xf32>, %w0: tensor<8x3x3x8xf32>, %w1: tensor<16x3x3x8xf32>, %w2: tensor<32x3x3x16xf32>, %w3: tensor<16x3x3x48xf32>, %w4: tensor<8x3x3x24xf32>) -> (tensor<8x3x3x8xf32>, tensor<16x3x3x8xf32>, tensor<32x3x3x16xf32>, tensor<16x3x3x48xf32>, tensor<8x3x3x24xf32>) {
  %number_0 = "tosa.const" () <{values = dense<0.000000e+00> : tensor<1xf32>}> : () -> tensor<1xf32>
  %number_1 = "tosa.const" () <{values = dense<1.000000e+00> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
  %dims_0 = tosa.const_shape {values = dense<[2, 1, 2, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_1 = tosa.const_shape {values = dense<[0, 0]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %dims_2 = tosa.const_shape {values = dense<[1, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %shift_0 = "tosa.const" () <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %dims_3 = tosa.const_shape {values = dense<[0, 0, 0, 0]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_4 = tosa.const_shape {values = dense<[1, 128, 128, 16]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_5 = tosa.const_shape {values = dense<[0, 0, 0, 16]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_6 = tosa.const_shape {values = dense<[1, 128, 128, 8]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %number_2 = "tosa.const" () <{values = dense<4.000000e+00> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
  %dims_7 = tosa.const_shape {values = dense<[1, 64, 64, 32]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_8 = tosa.const_shape {values = dense<[0, 0, 0, 32]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %dims_9 = tosa.const_shape {values = dense<[1, 64, 64, 16]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %number_3 = "tosa.const" () <{values = dense<2.500000e-01> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
  %conv2d_0 = tosa.conv2d %image, %w0, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x128x128x8xf32>, tensor<8x3x3x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x128x128x8xf32>
  %tanh_1 = tosa.tanh %conv2d_0 : (tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %avg_pool2d_2 = tosa.avg_pool2d %tanh_1, %number_0, %number_0 {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x128x128x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x8xf32>
  %conv2d_3 = tosa.conv2d %avg_pool2d_2, %w1, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x64x8xf32>, tensor<16x3x3x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x16xf32>
  %tanh_4 = tosa.tanh %conv2d_3 : (tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %avg_pool2d_5 = tosa.avg_pool2d %tanh_4, %number_0, %number_0 {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x64x64x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x16xf32>
  %conv2d_6 = tosa.conv2d %avg_pool2d_5, %w2, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x32x32x16xf32>, tensor<32x3x3x16xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x32xf32>
  %tanh_7 = tosa.tanh %conv2d_6 : (tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %resize_8 = tosa.resize %tanh_7, %dims_0, %dims_1, %dims_2 {mode = NEAREST_NEIGHBOR} : (tensor<1x32x32x32xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x64x64x32xf32>
  %concat_9 = tosa.concat %resize_8, %tanh_4 {axis = 3 : i32} : (tensor<1x64x64x32xf32>, tensor<1x64x64x16xf32>) -> tensor<1x64x64x48xf32>
  %conv2d_10 = tosa.conv2d %concat_9, %w3, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x64x48xf32>, tensor<16x3x3x48xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x16xf32>
  %tanh_11 = tosa.tanh %conv2d_10 : (tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %resize_12 = tosa.resize %tanh_11, %dims_0, %dims_1, %dims_2 {mode = NEAREST_NEIGHBOR} : (tensor<1x64x64x16xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x128x128x16xf32>
  %concat_13 = tosa.concat %resize_12, %tanh_1 {axis = 3 : i32} : (tensor<1x128x128x16xf32>, tensor<1x128x128x8xf32>) -> tensor<1x128x128x24xf32>
  %conv2d_14 = tosa.conv2d %concat_13, %w4, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x128x128x24xf32>, tensor<8x3x3x24xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x128x128x8xf32>
  %tanh_15 = tosa.tanh %conv2d_14 : (tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %sub_16 = tosa.sub %tanh_15, %target : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %mul_17 = tosa.mul %tanh_15, %tanh_15, %shift_0 : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>, tensor<1xi8>) -> tensor<1x128x128x8xf32>
  %sub_18 = tosa.sub %number_1, %mul_17 : (tensor<1x1x1x1xf32>, tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %mul_19 = tosa.mul %sub_16, %sub_18, %shift_0 : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>, tensor<1xi8>) -> tensor<1x128x128x8xf32>
  %transpose_20 = tosa.transpose %w4 {perms = array<i32: 3, 1, 2, 0>} : (tensor<8x3x3x24xf32>) -> tensor<24x3x3x8xf32>
  %reverse_21 = tosa.reverse %transpose_20 {axis = 1 : i32} : (tensor<24x3x3x8xf32>) -> tensor<24x3x3x8xf32>
  %reverse_22 = tosa.reverse %reverse_21 {axis = 2 : i32} : (tensor<24x3x3x8xf32>) -> tensor<24x3x3x8xf32>
  %conv2d_23 = tosa.conv2d %mul_19, %reverse_22, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x128x128x8xf32>, tensor<24x3x3x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x128x128x24xf32>
  %transpose_24 = tosa.transpose %concat_13 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x128x128x24xf32>) -> tensor<24x128x128x1xf32>
  %transpose_25 = tosa.transpose %mul_19 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x128x128x8xf32>) -> tensor<8x128x128x1xf32>
  %conv2d_26 = tosa.conv2d %transpose_24, %transpose_25, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<24x128x128x1xf32>, tensor<8x128x128x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<24x3x3x8xf32>
  %transpose_27 = tosa.transpose %conv2d_26 {perms = array<i32: 3, 1, 2, 0>} : (tensor<24x3x3x8xf32>) -> tensor<8x3x3x24xf32>
  %slice_28 = tosa.slice %conv2d_23, %dims_3, %dims_4 : (tensor<1x128x128x24xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x128x128x16xf32>
  %slice_29 = tosa.slice %conv2d_23, %dims_5, %dims_6 : (tensor<1x128x128x24xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x128x128x8xf32>
  %avg_pool2d_30 = tosa.avg_pool2d %slice_28, %number_0, %number_0 {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x128x128x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x16xf32>
  %mul_31 = tosa.mul %avg_pool2d_30, %number_2, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %mul_32 = tosa.mul %tanh_11, %tanh_11, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x64x64x16xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %sub_33 = tosa.sub %number_1, %mul_32 : (tensor<1x1x1x1xf32>, tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %mul_34 = tosa.mul %mul_31, %sub_33, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x64x64x16xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %transpose_35 = tosa.transpose %w3 {perms = array<i32: 3, 1, 2, 0>} : (tensor<16x3x3x48xf32>) -> tensor<48x3x3x16xf32>
  %reverse_36 = tosa.reverse %transpose_35 {axis = 1 : i32} : (tensor<48x3x3x16xf32>) -> tensor<48x3x3x16xf32>
  %reverse_37 = tosa.reverse %reverse_36 {axis = 2 : i32} : (tensor<48x3x3x16xf32>) -> tensor<48x3x3x16xf32>
  %conv2d_38 = tosa.conv2d %mul_34, %reverse_37, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x64x16xf32>, tensor<48x3x3x16xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x48xf32>
  %transpose_39 = tosa.transpose %concat_9 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x64x64x48xf32>) -> tensor<48x64x64x1xf32>
  %transpose_40 = tosa.transpose %mul_34 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x64x64x16xf32>) -> tensor<16x64x64x1xf32>
  %conv2d_41 = tosa.conv2d %transpose_39, %transpose_40, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<48x64x64x1xf32>, tensor<16x64x64x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<48x3x3x16xf32>
  %transpose_42 = tosa.transpose %conv2d_41 {perms = array<i32: 3, 1, 2, 0>} : (tensor<48x3x3x16xf32>) -> tensor<16x3x3x48xf32>
  %slice_43 = tosa.slice %conv2d_38, %dims_3, %dims_7 : (tensor<1x64x64x48xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x64x64x32xf32>
  %slice_44 = tosa.slice %conv2d_38, %dims_8, %dims_9 : (tensor<1x64x64x48xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x64x64x16xf32>
  %avg_pool2d_45 = tosa.avg_pool2d %slice_43, %number_0, %number_0 {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x64x64x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x32xf32>
  %mul_46 = tosa.mul %avg_pool2d_45, %number_2, %shift_0 : (tensor<1x32x32x32xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>) -> tensor<1x32x32x32xf32>
  %mul_47 = tosa.mul %tanh_7, %tanh_7, %shift_0 : (tensor<1x32x32x32xf32>, tensor<1x32x32x32xf32>, tensor<1xi8>) -> tensor<1x32x32x32xf32>
  %sub_48 = tosa.sub %number_1, %mul_47 : (tensor<1x1x1x1xf32>, tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %mul_49 = tosa.mul %mul_46, %sub_48, %shift_0 : (tensor<1x32x32x32xf32>, tensor<1x32x32x32xf32>, tensor<1xi8>) -> tensor<1x32x32x32xf32>
  %transpose_50 = tosa.transpose %w2 {perms = array<i32: 3, 1, 2, 0>} : (tensor<32x3x3x16xf32>) -> tensor<16x3x3x32xf32>
  %reverse_51 = tosa.reverse %transpose_50 {axis = 1 : i32} : (tensor<16x3x3x32xf32>) -> tensor<16x3x3x32xf32>
  %reverse_52 = tosa.reverse %reverse_51 {axis = 2 : i32} : (tensor<16x3x3x32xf32>) -> tensor<16x3x3x32xf32>
  %conv2d_53 = tosa.conv2d %mul_49, %reverse_52, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x32x32x32xf32>, tensor<16x3x3x32xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x32x16xf32>
  %transpose_54 = tosa.transpose %avg_pool2d_5 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x32x32x16xf32>) -> tensor<16x32x32x1xf32>
  %transpose_55 = tosa.transpose %mul_49 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x32x32x32xf32>) -> tensor<32x32x32x1xf32>
  %conv2d_56 = tosa.conv2d %transpose_54, %transpose_55, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<16x32x32x1xf32>, tensor<32x32x32x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<16x3x3x32xf32>
  %transpose_57 = tosa.transpose %conv2d_56 {perms = array<i32: 3, 1, 2, 0>} : (tensor<16x3x3x32xf32>) -> tensor<32x3x3x16xf32>
  %resize_58 = tosa.resize %conv2d_53, %dims_0, %dims_1, %dims_2 {mode = NEAREST_NEIGHBOR} : (tensor<1x32x32x16xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x64x64x16xf32>
  %mul_59 = tosa.mul %resize_58, %number_3, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %add_60 = tosa.add %slice_44, %mul_59 : (tensor<1x64x64x16xf32>, tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %mul_61 = tosa.mul %tanh_4, %tanh_4, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x64x64x16xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %sub_62 = tosa.sub %number_1, %mul_61 : (tensor<1x1x1x1xf32>, tensor<1x64x64x16xf32>) -> tensor<1x64x64x16xf32>
  %mul_63 = tosa.mul %add_60, %sub_62, %shift_0 : (tensor<1x64x64x16xf32>, tensor<1x64x64x16xf32>, tensor<1xi8>) -> tensor<1x64x64x16xf32>
  %transpose_64 = tosa.transpose %w1 {perms = array<i32: 3, 1, 2, 0>} : (tensor<16x3x3x8xf32>) -> tensor<8x3x3x16xf32>
  %reverse_65 = tosa.reverse %transpose_64 {axis = 1 : i32} : (tensor<8x3x3x16xf32>) -> tensor<8x3x3x16xf32>
  %reverse_66 = tosa.reverse %reverse_65 {axis = 2 : i32} : (tensor<8x3x3x16xf32>) -> tensor<8x3x3x16xf32>
  %conv2d_67 = tosa.conv2d %mul_63, %reverse_66, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x64x16xf32>, tensor<8x3x3x16xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64x8xf32>
  %transpose_68 = tosa.transpose %avg_pool2d_2 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x64x64x8xf32>) -> tensor<8x64x64x1xf32>
  %transpose_69 = tosa.transpose %mul_63 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x64x64x16xf32>) -> tensor<16x64x64x1xf32>
  %conv2d_70 = tosa.conv2d %transpose_68, %transpose_69, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<8x64x64x1xf32>, tensor<16x64x64x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x3x3x16xf32>
  %transpose_71 = tosa.transpose %conv2d_70 {perms = array<i32: 3, 1, 2, 0>} : (tensor<8x3x3x16xf32>) -> tensor<16x3x3x8xf32>
  %resize_72 = tosa.resize %conv2d_67, %dims_0, %dims_1, %dims_2 {mode = NEAREST_NEIGHBOR} : (tensor<1x64x64x8xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x128x128x8xf32>
  %mul_73 = tosa.mul %resize_72, %number_3, %shift_0 : (tensor<1x128x128x8xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>) -> tensor<1x128x128x8xf32>
  %add_74 = tosa.add %slice_29, %mul_73 : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %mul_75 = tosa.mul %tanh_1, %tanh_1, %shift_0 : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>, tensor<1xi8>) -> tensor<1x128x128x8xf32>
  %sub_76 = tosa.sub %number_1, %mul_75 : (tensor<1x1x1x1xf32>, tensor<1x128x128x8xf32>) -> tensor<1x128x128x8xf32>
  %mul_77 = tosa.mul %add_74, %sub_76, %shift_0 : (tensor<1x128x128x8xf32>, tensor<1x128x128x8xf32>, tensor<1xi8>) -> tensor<1x128x128x8xf32>
  %transpose_78 = tosa.transpose %image {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x128x128x8xf32>) -> tensor<8x128x128x1xf32>
  %transpose_79 = tosa.transpose %mul_77 {perms = array<i32: 3, 1, 2, 0>} : (tensor<1x128x128x8xf32>) -> tensor<8x128x128x1xf32>
  %conv2d_80 = tosa.conv2d %transpose_78, %transpose_79, %number_0, %number_0, %number_0 {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<8x128x128x1xf32>, tensor<8x128x128x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x3x3x8xf32>
  %transpose_81 = tosa.transpose %conv2d_80 {perms = array<i32: 3, 1, 2, 0>} : (tensor<8x3x3x8xf32>) -> tensor<8x3x3x8xf32>
  return %transpose_81, %transpose_71, %transpose_57, %transpose_42, %transpose_27 : tensor<8x3x3x8xf32>, tensor<16x3x3x8xf32>, tensor<32x3x3x16xf32>, tensor<16x3x3x48xf32>, tensor<8x3x3x24xf32>
}
