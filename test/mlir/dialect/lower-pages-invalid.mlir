// RUN: mlir-opt %load --pass-pipeline='builtin.module(remat-lower-pages)' -verify-diagnostics -split-input-file %s

func.func @load(%p: memref<8xf32, #remat.second>, %i: index) -> f32 {
  // expected-error@+1 {{failed to legalize operation 'memref.load'}}
  %0 = memref.load %p[%i] : memref<8xf32, #remat.second>
  return %0 : f32
}

// -----

func.func @from_page_to_page(%p: memref<8xf32, #remat.second>, %q: memref<8xf32, #remat.second>) {
  // expected-error@+2 {{'memref.copy' op copies a page into another one, which no transfer does}}
  // expected-error@+1 {{failed to legalize operation 'memref.copy'}}
  memref.copy %p, %q : memref<8xf32, #remat.second> to memref<8xf32, #remat.second>
  return
}

// -----

func.func @dynamic(%n: index) {
  // expected-error@+2 {{'memref.alloc' op page of unknown size: `'memref<?xf32, #remat.second>'`}}
  // expected-error@+1 {{failed to legalize operation 'memref.alloc'}}
  %p = memref.alloc(%n) : memref<?xf32, #remat.second>
  return
}

// -----

func.func @too_large() {
  // expected-error@+2 {{page of unknown size}}
  // expected-error@+1 {{failed to legalize operation 'memref.alloc'}}
  %p = memref.alloc() : memref<4611686018427387904xf64, #remat.second>
  return
}

// -----

func.func @layout_of_a_page(%p: memref<8xf32, strided<[?]>, #remat.second>) -> index {
  // expected-error@+2 {{'memref.extract_strided_metadata' op looks into the layout of a page}}
  // expected-error@+1 {{failed to legalize operation 'memref.extract_strided_metadata'}}
  %base, %offset, %size, %stride = memref.extract_strided_metadata %p
    : memref<8xf32, strided<[?]>, #remat.second> -> memref<f32, #remat.second>, index, index, index
  return %stride : index
}
