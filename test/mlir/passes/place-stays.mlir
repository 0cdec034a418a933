// What cannot be placed stays allocated, and a remark at its allocation says why.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place,remat-verify))' --verify-diagnostics --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @returned
// CHECK:       %[[R:.*]] = memref.alloc() : memref<64xf32>
// CHECK:       return %[[R]]
func.func @returned(%x: memref<64xf32>) -> memref<64xf32> {
  // expected-remark @below {{the buffer stays allocated: no operation of its block frees it, so it may outlive the function}}
  %r = memref.alloc() : memref<64xf32>
  memref.copy %x, %r : memref<64xf32> to memref<64xf32>
  return %r : memref<64xf32>
}

// -----

// CHECK-LABEL: func.func @dynamic
// CHECK:       %[[D:.*]] = memref.alloc(%arg0) : memref<?xf32>
// CHECK:       memref.view {{.*}} to memref<16xf32>
// CHECK:       memref.dealloc %[[D]] : memref<?xf32>
// expected-remark @below {{1 buffer in a block of 64 bytes, load 64 bytes, 1 stays allocated; no block is smaller}}
func.func @dynamic(%n: index) {
  // expected-remark @below {{its size is not static}}
  %d = memref.alloc(%n) : memref<?xf32>
  %s = memref.alloc() : memref<16xf32>
  "test.use"(%d, %s) : (memref<?xf32>, memref<16xf32>) -> ()
  memref.dealloc %s : memref<16xf32>
  memref.dealloc %d : memref<?xf32>
  return
}

// -----

// CHECK-LABEL: func.func @at_once
// CHECK:       scf.parallel
// CHECK-NEXT:  memref.alloc() : memref<16xf32>
func.func @at_once(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-remark @below {{it is allocated inside of `scf.parallel`, whose regions may run several times at once}}
    %t = memref.alloc() : memref<16xf32>
    "test.use"(%t) : (memref<16xf32>) -> ()
    memref.dealloc %t : memref<16xf32>
  }
  return
}

// -----

// A buffer that goes from one round of a loop to the next is not freed in the round that allocates it.
// CHECK-LABEL: func.func @carried
// CHECK-COUNT-2: memref.alloc() : memref<16xf32>
func.func @carried(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{no operation of its block frees it}}
  %first = memref.alloc() : memref<16xf32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%before = %first) -> memref<16xf32> {
    // expected-remark @below {{no operation of its block frees it}}
    %next = memref.alloc() : memref<16xf32>
    memref.copy %before, %next : memref<16xf32> to memref<16xf32>
    memref.dealloc %before : memref<16xf32>
    scf.yield %next : memref<16xf32>
  }
  memref.dealloc %last : memref<16xf32>
  return
}

// -----

// CHECK-LABEL: func.func @other_reasons
// CHECK-COUNT-4: memref.alloc()
// CHECK-NOT:     memref.alloc()
func.func @other_reasons(%c: i1) {
  // expected-remark @below {{it is in another memory space}}
  %space = memref.alloc() : memref<16xf32, 3>
  memref.dealloc %space : memref<16xf32, 3>
  // expected-remark @below {{its layout has no static strides}}
  %tiled = memref.alloc() : memref<8x8xf32, affine_map<(i, j) -> (i floordiv 4, j floordiv 4, i mod 4, j mod 4)>>
  memref.dealloc %tiled : memref<8x8xf32, affine_map<(i, j) -> (i floordiv 4, j floordiv 4, i mod 4, j mod 4)>>
  // expected-remark @below {{the size of its elements is unknown}}
  %pointers = memref.alloc() : memref<4xvector<8xf32>>
  memref.dealloc %pointers : memref<4xvector<8xf32>>
  // expected-remark @below {{2 operations free it}}
  %either = memref.alloc() : memref<16xf32>
  scf.if %c {
    memref.dealloc %either : memref<16xf32>
  } else {
    memref.dealloc %either : memref<16xf32>
  }
  return
}
