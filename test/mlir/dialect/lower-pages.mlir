// RUN: mlir-opt %load --pass-pipeline='builtin.module(remat-lower-pages)' -split-input-file %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(remat-lower-pages,%llvm)' -split-input-file %s | FileCheck %s --check-prefix=LLVM

// CHECK-DAG: func.func private @remat_page_create(index) -> index
// CHECK-DAG: func.func private @remat_page_write(index, index, index)
// CHECK-DAG: func.func private @remat_page_read(index, index, index)
// CHECK-DAG: func.func private @remat_page_destroy(index)
// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME:  (%[[A:.*]]: memref<8x8xf32>, %[[B:.*]]: memref<8x8xf32>)
// LLVM-LABEL: llvm.func @there_and_back
func.func @there_and_back(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  // CHECK: %[[P:.*]] = call @remat_page_create(%c256
  // LLVM: llvm.call @remat_page_create(%{{.*}}) : (i64) -> i64
  %p = memref.alloc() : memref<8x8xf32, #remat.second>
  // CHECK: %[[FROM:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
  // CHECK: call @remat_page_write(%[[P]], %[[FROM]], %c256
  // LLVM: llvm.call @remat_page_write(%{{.*}}) : (i64, i64, i64) -> ()
  memref.copy %a, %p : memref<8x8xf32> to memref<8x8xf32, #remat.second>
  // CHECK: %[[TO:.*]] = memref.extract_aligned_pointer_as_index %[[B]]
  // CHECK: call @remat_page_read(%[[P]], %[[TO]], %c256
  memref.copy %p, %b : memref<8x8xf32, #remat.second> to memref<8x8xf32>
  // CHECK: call @remat_page_destroy(%[[P]])
  memref.dealloc %p : memref<8x8xf32, #remat.second>
  return
}

// Elements take as many bytes as in a buffer.
// CHECK-LABEL: func.func @sizes
func.func @sizes() {
  // CHECK: call @remat_page_create(%c3
  %0 = memref.alloc() : memref<3xi1, #remat.second>
  // CHECK: call @remat_page_create(%c3
  %1 = memref.alloc() : memref<3xi4, #remat.second>
  // CHECK: call @remat_page_create(%c12
  %2 = memref.alloc() : memref<3xi24, #remat.second>
  // CHECK: call @remat_page_create(%c24
  %3 = memref.alloc() : memref<3xindex, #remat.second>
  // CHECK: call @remat_page_create(%c48
  %4 = memref.alloc() : memref<3xcomplex<f64>, #remat.second>
  // CHECK: call @remat_page_create(%c2
  %5 = memref.alloc() : memref<bf16, #remat.second>
  // CHECK: call @remat_page_create(%c0
  %6 = memref.alloc() : memref<0x4xf32, #remat.second>
  return
}

// -----

// Tensors that are not contiguous bring their layout along, the origin in bytes.
// CHECK-LABEL: func.func @strided
// CHECK-SAME:  (%[[A:.*]]: memref<4x2xf64, strided<[?, ?], offset: ?>>,
func.func @strided(%a: memref<4x2xf64, strided<[?, ?], offset: ?>>, %p: memref<4x2xf64, #remat.second>, %n: index) {
  // CHECK-COUNT-2: memref.alloca() : memref<4xindex>
  // CHECK: scf.for
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
    // CHECK: %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[A]]
    // CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %c8
    // CHECK: %[[ORIGIN:.*]] = arith.addi %[[BASE]], %[[BYTES]]
    // CHECK: memref.store %[[SIZES]]#0, %[[LAYOUT:.*]][%c0
    // CHECK: memref.store %[[SIZES]]#1, %[[LAYOUT]][%c1
    // CHECK: memref.store %[[STRIDES]]#0, %[[LAYOUT]][%c2
    // CHECK: memref.store %[[STRIDES]]#1, %[[LAYOUT]][%c3
    // CHECK: %[[POINTER:.*]] = memref.extract_aligned_pointer_as_index %[[LAYOUT]]
    // CHECK: call @remat_page_write_strided(%{{.*}}, %[[ORIGIN]], %c8{{.*}}, %c2{{.*}}, %[[POINTER]])
    memref.copy %a, %p : memref<4x2xf64, strided<[?, ?], offset: ?>> to memref<4x2xf64, #remat.second>
  }
  // CHECK: call @remat_page_read_strided
  memref.copy %p, %a : memref<4x2xf64, #remat.second> to memref<4x2xf64, strided<[?, ?], offset: ?>>
  return
}

// -----

// Handles go where pages went.
// CHECK-LABEL: func.func @makes(%{{.*}}: i1, %{{.*}}: index) -> index
func.func @makes(%c: i1, %p: memref<8xf32, #remat.second>) -> memref<8xf32, #remat.second> {
  // CHECK: %[[R:.*]] = scf.if %{{.*}} -> (index) {
  // CHECK:   %[[N:.*]] = func.call @remat_page_create
  // CHECK:   scf.yield %[[N]] : index
  // CHECK: return %[[R]] : index
  %r = scf.if %c -> memref<8xf32, #remat.second> {
    %n = memref.alloc() : memref<8xf32, #remat.second>
    scf.yield %n : memref<8xf32, #remat.second>
  } else {
    scf.yield %p : memref<8xf32, #remat.second>
  }
  return %r : memref<8xf32, #remat.second>
}

// CHECK-LABEL: func.func @takes
func.func @takes(%c: i1, %p: memref<8xf32, #remat.second>, %a: memref<8xf32>) {
  // CHECK: %[[P:.*]] = call @makes
  // CHECK: %[[A:.*]] = memref.extract_aligned_pointer_as_index
  // CHECK: arith.cmpi ne, %[[P]], %[[A]]
  // CHECK: cf.cond_br %{{.*}}, ^[[FREE:.*]](%[[P]] : index), ^
  // CHECK: ^[[FREE]](%[[F:.*]]: index):
  // CHECK: call @remat_page_destroy(%[[F]])
  %0 = call @makes(%c, %p) : (i1, memref<8xf32, #remat.second>) -> memref<8xf32, #remat.second>
  %base, %offset, %size, %stride = memref.extract_strided_metadata %0
    : memref<8xf32, #remat.second> -> memref<f32, #remat.second>, index, index, index
  %1 = memref.extract_aligned_pointer_as_index %base : memref<f32, #remat.second> -> index
  %2 = memref.extract_aligned_pointer_as_index %a : memref<8xf32> -> index
  %3 = arith.cmpi ne, %1, %2 : index
  cf.cond_br %3, ^free(%base : memref<f32, #remat.second>), ^done
^free(%f: memref<f32, #remat.second>):
  memref.dealloc %f : memref<f32, #remat.second>
  cf.br ^done
^done:
  return
}

// -----

// Nothing is declared where nothing is called.
// CHECK: module {
// CHECK-NEXT: func.func @no_pages
func.func @no_pages(%a: memref<4xf32>, %b: memref<4xf32, 1>) {
  // CHECK-NEXT: memref.copy
  memref.copy %a, %b : memref<4xf32> to memref<4xf32, 1>
  return
}
