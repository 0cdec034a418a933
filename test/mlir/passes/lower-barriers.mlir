// Fences that read each other become one barrier of StableHLO.
// REQUIRES: scheduler
// RUN: mlir-opt %load -allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(remat-lower{barriers=stablehlo}))' %s | FileCheck %s

// CHECK-LABEL: func.func @in_a_row
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT:  %[[B:.*]]:2 = "stablehlo.optimization_barrier"(%[[X]], %[[Y]])
// CHECK-NEXT:  math.exp %[[B]]#0
// CHECK-NEXT:  math.exp %[[B]]#0
// CHECK-NEXT:  math.exp %[[B]]#1
// CHECK-NOT:   remat.
func.func @in_a_row(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = remat.recompute %x id(1) : tensor<4xf32>
  %1 = remat.recompute %0 id(2) : tensor<4xf32>
  %2 = remat.recompute %y id(3) : tensor<4xf32>
  %a = math.exp %0 : tensor<4xf32>
  %b = math.exp %1 : tensor<4xf32>
  %c = math.exp %2 : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
