// Functions without tensors of their own, and functions of buffers.
// REQUIRES: scheduler
// RUN: mlir-opt %load --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(remat{budget=min fission=exact time-limit=1s}))' %s

// expected-remark @below {{remat: peak 0 -> 0 bytes}}
func.func @helper(%x: memref<4xf32>) {
  return
}

// -----

// What is returned is copied.
// expected-remark @below {{remat: peak 16 -> 16 bytes}}
func.func @argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{the function is bufferized already: run `remat` before `one-shot-bufferize`, `remat-place` after it}}
func.func @bufferized(%x: memref<4xf32>) -> memref<4xf32> {
  %0 = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%0 : memref<4xf32>)
  return %0 : memref<4xf32>
}
