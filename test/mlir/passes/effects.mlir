// What has effects keeps its order and runs once, although its result is what would be cheapest to make again.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat{budget=min step-limit=20000 remarks=false}))' %s | FileCheck %s

func.func private @log(tensor<64xf32>)
func.func private @draw() -> tensor<64xf32>

// CHECK-LABEL: func.func @ordered
// CHECK:       %[[FIRST:.*]] = call @draw
// CHECK:       call @log(%[[FIRST]])
// CHECK:       %[[SECOND:.*]] = call @draw
// CHECK:       call @log(%[[SECOND]])
// CHECK-NOT:   call
// CHECK:       return
func.func @ordered() -> tensor<64xf32> {
  %a = call @draw() : () -> tensor<64xf32>
  call @log(%a) : (tensor<64xf32>) -> ()
  %b = call @draw() : () -> tensor<64xf32>
  call @log(%b) : (tensor<64xf32>) -> ()
  %c = arith.addf %b, %b : tensor<64xf32>
  %d = math.exp %c : tensor<64xf32>
  %e = arith.addf %d, %a : tensor<64xf32>
  return %e : tensor<64xf32>
}

// Nothing to say of declarations, and of functions without tensors.
// CHECK-LABEL: func.func @scalars
// CHECK:       arith.addi
func.func @scalars(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  return %y : i32
}
