// Buffers that a function allocates and frees become views of one block at constant offsets. What is needed at other times shares bytes.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place{remarks=false},remat-verify))' --split-input-file %s | FileCheck %s
// The ids of views keep `cse` from merging those of buffers that follow each other.
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place{remarks=false},cse,canonicalize,remat-verify))' --split-input-file %s | FileCheck %s --check-prefix=MERGED
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place{block=argument remarks=false},remat-verify))' --split-input-file %s | FileCheck %s --check-prefix=ARGUMENT
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place))' --split-input-file %s 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place{remarks=false},remat-place{remarks=false}))' --split-input-file %s | FileCheck %s
// RUN: not mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-place{block=stack}))' --split-input-file %s 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: error: option `block` of the pass: `stack` is neither `alloc` nor `argument`

// CHECK-LABEL: func.func @chain
// CHECK-SAME:  remat.block = 512 : i64
// CHECK:       %[[B:.*]] = memref.alloc() {alignment = 64 : i64, remat.block} : memref<512xi8>
// CHECK:       %[[AT:.*]] = arith.constant [[A:0|256]] : index
// CHECK-NEXT:  memref.view %[[B]][%[[AT]]][] {remat.buffer = 0 : i64} : memref<512xi8> to memref<64xf32>
// CHECK-NEXT:  memref.copy
// CHECK:       memref.view %[[B]]{{.*}}remat.buffer = 1
// CHECK-NOT:   memref.dealloc
// CHECK:       %[[AGAIN:.*]] = arith.constant [[A]] : index
// CHECK-NEXT:  memref.view %[[B]][%[[AGAIN]]][] {remat.buffer = 2 : i64} : memref<512xi8> to memref<64xf32>
// CHECK:       memref.copy
// CHECK:       memref.copy
// CHECK-NEXT:  memref.dealloc %[[B]] : memref<512xi8>
// CHECK-NEXT:  return
// MERGED-LABEL:   func.func @chain
// MERGED-COUNT-3: memref.view
// MERGED-NOT:     memref.view
// MERGED:         return
// ARGUMENT-LABEL: func.func @chain
// ARGUMENT-SAME:  %[[B:arg2]]: memref<512xi8> {remat.block})
// ARGUMENT-NEXT:  %[[ALIGNED:.*]] = memref.assume_alignment %[[B]], 64 : memref<512xi8>
// ARGUMENT-NOT:   memref.alloc
// ARGUMENT:       memref.view %[[ALIGNED]]
// ARGUMENT-NOT:   memref.dealloc
// REMARK: remark: remat-place: 3 buffers in a block of 512 bytes, load 512 bytes; no block is smaller
func.func @chain(%x: memref<64xf32>, %y: memref<64xf32>) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  %b = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
  memref.copy %a, %b : memref<64xf32> to memref<64xf32>
  memref.dealloc %a : memref<64xf32>
  %c = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
  memref.copy %b, %c : memref<64xf32> to memref<64xf32>
  memref.dealloc %b : memref<64xf32>
  memref.copy %c, %y : memref<64xf32> to memref<64xf32>
  memref.dealloc %c : memref<64xf32>
  return
}

// -----

// Element types, ranks and strides are those of the buffer; offsets are multiples of its alignment.
// CHECK-LABEL: func.func @types
// CHECK-SAME:  remat.block = 181 : i64
// CHECK-DAG:   memref.view %{{.*}} : memref<181xi8> to memref<5xi1>
// CHECK-DAG:   memref.view %{{.*}} : memref<181xi8> to memref<f64>
// CHECK-DAG:   %[[ROW:.*]] = memref.view %{{.*}} : memref<181xi8> to memref<30xf32>
// CHECK:       memref.reinterpret_cast %[[ROW]] to offset: [2], sizes: [4, 4], strides: [8, 1] : memref<30xf32> to memref<4x4xf32, strided<[8, 1], offset: 2>>
// CHECK:       memref.view {{.*}} to memref<3xcomplex<f32>>
func.func @types(%i: index) {
  %mask = memref.alloc() : memref<5xi1>
  %scalar = memref.alloc() : memref<f64>
  %strided = memref.alloc() {alignment = 128 : i64} : memref<4x4xf32, strided<[8, 1], offset: 2>>
  %complex = memref.alloc() {alignment = 64 : i64} : memref<3xcomplex<f32>>
  "test.use"(%mask, %scalar, %strided, %complex) : (memref<5xi1>, memref<f64>, memref<4x4xf32, strided<[8, 1], offset: 2>>, memref<3xcomplex<f32>>) -> ()
  memref.dealloc %mask : memref<5xi1>
  memref.dealloc %scalar : memref<f64>
  memref.dealloc %strided : memref<4x4xf32, strided<[8, 1], offset: 2>>
  memref.dealloc %complex : memref<3xcomplex<f32>>
  return
}

// -----

// A loop takes the same bytes in every round, beside what is needed throughout; branches of which one runs share theirs.
// CHECK-LABEL: func.func @regions
// CHECK-SAME:  remat.block = 768 : i64
// CHECK:       %[[B:.*]] = memref.alloc() {{.*}} : memref<768xi8>
// CHECK:       memref.view %[[B]]{{.*}} to memref<128xf32>
// CHECK:       scf.for
// CHECK:         memref.view %[[B]]{{.*}} to memref<64xf32>
// CHECK:         scf.if
// CHECK-NOT:     memref.alloc
// CHECK:       memref.dealloc %[[B]]
// CHECK-NEXT:  return
func.func @regions(%x: memref<128xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %all = memref.alloc() {alignment = 64 : i64} : memref<128xf32>
  memref.copy %x, %all : memref<128xf32> to memref<128xf32>
  scf.for %i = %c0 to %n step %c1 {
    %round = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
    "test.use"(%round, %all) : (memref<64xf32>, memref<128xf32>) -> ()
    memref.dealloc %round : memref<64xf32>
    scf.if %c {
      %left = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
      "test.use"(%left) : (memref<64xf32>) -> ()
      memref.dealloc %left : memref<64xf32>
    } else {
      %right = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
      "test.use"(%right) : (memref<64xf32>) -> ()
      memref.dealloc %right : memref<64xf32>
    }
  }
  memref.copy %all, %x : memref<128xf32> to memref<128xf32>
  memref.dealloc %all : memref<128xf32>
  return
}

// -----

// In a function of several blocks, the block is there from its start to each of its ends.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:  %[[B:.*]] = memref.alloc() {{.*}} : memref<256xi8>
// CHECK:       cf.cond_br
// CHECK:       memref.view %[[B]]
// CHECK:       memref.dealloc %[[B]]
// CHECK-NEXT:  return
// CHECK:       memref.view %[[B]]
// CHECK:       memref.dealloc %[[B]]
// CHECK-NEXT:  return
func.func @branches(%c: i1) {
  cf.cond_br %c, ^left, ^right
^left:
  %l = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
  "test.use"(%l) : (memref<64xf32>) -> ()
  memref.dealloc %l : memref<64xf32>
  return
^right:
  %r = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
  "test.use"(%r) : (memref<64xf32>) -> ()
  memref.dealloc %r : memref<64xf32>
  return
}

// -----

// Nothing to place, nothing changed; functions without a body neither.
// CHECK-LABEL: func.func @none
// CHECK-NOT:   remat.block
// CHECK-NOT:   memref.alloc
// CHECK:       func.func private @declared(memref<4xf32>)
// ARGUMENT:    func.func @none(%arg0: memref<4xf32>) {
func.func @none(%x: memref<4xf32>) {
  return
}
func.func private @declared(memref<4xf32>)
