// Modules of StableHLO as JAX writes them, in generic form, without the dialect.
// REQUIRES: scheduler
// RUN: mlir-opt %load -allow-unregistered-dialect --pass-pipeline='builtin.module(remat-inline,func.func(remat{budget=min step-limit=20000 remarks=false},remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load -allow-unregistered-dialect --pass-pipeline='builtin.module(remat-inline,func.func(remat{budget=min step-limit=20000 remarks=false},remat-lower{barriers=stablehlo}))' %s | FileCheck %s --check-prefix=BARRIER
// RUN: not mlir-opt %load -allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(remat-lower{barriers=tosa}))' %s 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: `barriers` is `none` or `stablehlo`, not `tosa`

// A private function runs where it is called. A product runs again; the fence becomes a barrier, through which the value goes that was made last.
// CHECK-LABEL: func.func @step
// CHECK-NOT:   call
// CHECK:       %[[D:.*]] = "stablehlo.dot_general"
// CHECK:       %[[F:.*]] = remat.recompute %arg0 id({{[0-9]+}}) of("dot_general")
// CHECK-NEXT:  "stablehlo.dot_general"(%[[F]], %arg1)
// CHECK:       return
// CHECK-NOT:   func.func private
// BARRIER-LABEL: func.func @step
// BARRIER-NOT: remat.recompute
// BARRIER-NOT: remat.dealloc
// BARRIER:     %[[L:.*]] = "stablehlo.reverse"
// BARRIER:     %[[B:.*]]:2 = "stablehlo.optimization_barrier"(%arg0, %[[L]]) : (tensor<8x8xf32>, tensor<8x8xf32>)
// BARRIER-NEXT: %[[A:.*]] = "stablehlo.dot_general"(%[[B]]#0, %arg1)
// BARRIER:     "stablehlo.add"({{.*}}%[[B]]#1
// BARRIER:     return
func.func @step(%x: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = func.call @relu(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "stablehlo.dot_general"(%2, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = "stablehlo.reverse"(%3) <{dimensions = array<i64: 0>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = "stablehlo.add"(%4, %0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

func.func private @relu(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %zeros = "stablehlo.broadcast_in_dim"(%zero) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x8xf32>
  %0 = "stablehlo.maximum"(%x, %zeros) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A region without effects is part of its operation: a sort may run again.
// CHECK-LABEL: func.func @regions
// CHECK:       "stablehlo.sort"
// CHECK:       "stablehlo.sort"
// CHECK:       return
func.func @regions(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%less) : (tensor<i1>) -> ()
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.reverse"(%0) <{dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64xf32>
  %2 = "stablehlo.concatenate"(%1, %1, %1) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<192xf32>
  %3 = "stablehlo.slice"(%2) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<192xf32>) -> tensor<64xf32>
  %4 = "stablehlo.concatenate"(%3, %0) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  %5 = "stablehlo.slice"(%4) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<128xf32>) -> tensor<64xf32>
  return %5 : tensor<64xf32>
}

// What is elementwise and read once is part of its reader. A copy of both reads every operand through a fence, so that neither is merged.
// CHECK-LABEL: func.func @fused
// CHECK:       %[[X:.*]] = remat.recompute %arg0
// CHECK-NEXT:  %[[Y:.*]] = remat.recompute %arg1
// CHECK-NEXT:  %[[E:.*]] = "stablehlo.exponential"(%[[Y]])
// CHECK-NEXT:  "stablehlo.add"(%[[X]], %[[E]])
// CHECK:       return
func.func @fused(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0 = "stablehlo.exponential"(%y) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.add"(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64xf32>
  %3 = "stablehlo.concatenate"(%2, %2, %2) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<192xf32>
  %4 = "stablehlo.slice"(%3) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<192xf32>) -> tensor<64xf32>
  %5 = "stablehlo.concatenate"(%4, %1) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  %6 = "stablehlo.slice"(%5) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<128xf32>) -> tensor<64xf32>
  return %6 : tensor<64xf32>
}

// What has a side effect, or has one inside, or talks to other devices, or draws random numbers, runs once.
// CHECK-LABEL: func.func @effects
// CHECK-COUNT-1: stablehlo.custom_call
// CHECK-NOT:   stablehlo.custom_call
// CHECK-COUNT-1: stablehlo.all_reduce
// CHECK-NOT:   stablehlo.all_reduce
// CHECK-COUNT-1: stablehlo.case
// CHECK-NOT:   stablehlo.case
// CHECK-COUNT-1: stablehlo.rng_bit_generator
// CHECK-NOT:   stablehlo.rng_bit_generator
// CHECK:       return
func.func @effects(%x: tensor<64xf32>, %which: tensor<i32>, %state: tensor<2xui64>) -> tensor<64xf32> {
  %0 = "stablehlo.custom_call"(%x) <{call_target_name = "f", has_side_effect = true}> : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.all_reduce"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%sum) : (tensor<f32>) -> ()
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %2 = "stablehlo.case"(%which) ({
    %in = "stablehlo.custom_call"(%1) <{call_target_name = "f", has_side_effect = true}> : (tensor<64xf32>) -> tensor<64xf32>
    "stablehlo.return"(%in) : (tensor<64xf32>) -> ()
  }) : (tensor<i32>) -> tensor<64xf32>
  %3:2 = "stablehlo.rng_bit_generator"(%state) : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xf32>)
  %4 = "stablehlo.reverse"(%3#1) <{dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64xf32>
  %5 = "stablehlo.concatenate"(%4, %4, %0) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<192xf32>
  %6 = "stablehlo.slice"(%5) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<192xf32>) -> tensor<64xf32>
  %7 = "stablehlo.concatenate"(%6, %2, %1, %3#1) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<256xf32>
  %8 = "stablehlo.slice"(%7) <{start_indices = array<i64: 0>, limit_indices = array<i64: 64>, strides = array<i64: 1>}> : (tensor<256xf32>) -> tensor<64xf32>
  return %8 : tensor<64xf32>
}

// A barrier of the function's own makes nothing: its results are its operands. 256 bytes for %0, 512 for %3.
// CHECK-LABEL: func.func @own_barrier
// CHECK-SAME:    remat.peak = 768 : i64
func.func @own_barrier(%x: tensor<64xf32>) -> tensor<128xf32> {
  %0 = "stablehlo.reverse"(%x) <{dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64xf32>
  %1:2 = "stablehlo.optimization_barrier"(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %3 = "stablehlo.concatenate"(%1#0, %1#1) <{dimension = 0 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  return %3 : tensor<128xf32>
}
