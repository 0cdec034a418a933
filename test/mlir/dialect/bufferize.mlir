// Optimization barriers cost nothing, what is released is freed after its last use, and what is paged out is in memory on neither side of its absence.
// RUN: mlir-opt %load --pass-pipeline='builtin.module(%bufferize)' %s | FileCheck %s

// CHECK-LABEL: func.func @recomputed
func.func @recomputed(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NOT: remat
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK-NEXT: linalg.exp ins(%arg0 {{.*}} outs(%[[A]]
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK-NEXT: linalg.tanh ins(%[[A]] {{.*}} outs(%[[B]]
  // CHECK-NEXT: memref.dealloc %[[A]]
  // CHECK: %[[C:.*]] = memref.alloc
  // CHECK-NEXT: linalg.exp ins(%arg0 {{.*}} outs(%[[C]]
  // CHECK: %[[D:.*]] = memref.alloc
  // CHECK-NEXT: linalg.add ins(%[[B]], %[[C]] {{.*}} outs(%[[D]]
  // CHECK-DAG: memref.dealloc %[[B]]
  // CHECK-DAG: memref.dealloc %[[C]]
  // CHECK: return %[[D]]
  // CHECK-NOT: memref.copy
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8xf32>
  %3 = linalg.tanh ins(%1 : tensor<8xf32>) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  remat.dealloc %1 : tensor<8xf32>
  %f = remat.recompute %x id(1) : tensor<8xf32>
  %4 = tensor.empty() : tensor<8xf32>
  %5 = linalg.exp ins(%f : tensor<8xf32>) outs(%4 : tensor<8xf32>) -> tensor<8xf32>
  %6 = tensor.empty() : tensor<8xf32>
  %7 = linalg.add ins(%3, %5 : tensor<8xf32>, tensor<8xf32>) outs(%6 : tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}

// A fence is no licence to write: others still read what is behind it.
// CHECK-LABEL: func.func @fence_of_what_is_overwritten
func.func @fence_of_what_is_overwritten(%v: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: linalg.fill {{.*}} outs(%[[A]]
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK: memref.copy %[[A]], %[[B]]
  // CHECK: linalg.exp {{.*}} outs(%[[B]]
  // CHECK: return %[[A]], %[[B]]
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%v : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %f = remat.recompute %1 id(1) : tensor<8xf32>
  %c0 = arith.constant 0 : index
  %2 = tensor.insert %v into %f[%c0] : tensor<8xf32>
  %3 = linalg.exp ins(%1 : tensor<8xf32>) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @paged
func.func @paged(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NEXT: linalg.exp ins(%arg0 {{.*}} outs(%[[A]]
  // CHECK-NEXT: %[[P:.*]] = memref.alloc() {{.*}} : memref<8xf32, #remat.second>
  // CHECK-NEXT: memref.copy %[[A]], %[[P]] : memref<8xf32> to memref<8xf32, #remat.second>
  // CHECK-NEXT: memref.dealloc %[[A]] : memref<8xf32>
  // CHECK-NEXT: %[[B:.*]] = memref.alloc
  // CHECK-NEXT: linalg.tanh {{.*}} outs(%[[B]]
  // CHECK-NEXT: %[[C:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NEXT: memref.copy %[[P]], %[[C]] : memref<8xf32, #remat.second> to memref<8xf32>
  // CHECK-NEXT: %[[D:.*]] = memref.alloc
  // CHECK-NEXT: linalg.add ins(%[[B]], %[[C]] {{.*}} outs(%[[D]]
  // CHECK-DAG: memref.dealloc %[[B]]
  // CHECK-DAG: memref.dealloc %[[C]]
  // CHECK: %[[E:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NEXT: memref.copy %[[P]], %[[E]]
  // CHECK-NEXT: memref.dealloc %[[P]] : memref<8xf32, #remat.second>
  // CHECK-NEXT: %[[F:.*]] = memref.alloc
  // CHECK-NEXT: linalg.mul ins(%[[D]], %[[E]] {{.*}} outs(%[[F]]
  // CHECK-DAG: memref.dealloc %[[D]]
  // CHECK-DAG: memref.dealloc %[[E]]
  // CHECK: return %[[F]]
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %p = remat.page_out %1 : tensor<8xf32>
  %2 = tensor.empty() : tensor<8xf32>
  %3 = linalg.tanh ins(%x : tensor<8xf32>) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  %a = remat.page_in %p : tensor<8xf32>
  %4 = tensor.empty() : tensor<8xf32>
  %5 = linalg.add ins(%3, %a : tensor<8xf32>, tensor<8xf32>) outs(%4 : tensor<8xf32>) -> tensor<8xf32>
  remat.dealloc %a : tensor<8xf32>
  %b = remat.page_in %p : tensor<8xf32>
  remat.page_drop %p : !remat.page<tensor<8xf32>>
  %6 = tensor.empty() : tensor<8xf32>
  %7 = linalg.mul ins(%5, %b : tensor<8xf32>, tensor<8xf32>) outs(%6 : tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}

// What comes back is a tensor of its own, which may be written in place; the page is what it was.
// CHECK-LABEL: func.func @written_in_place
func.func @written_in_place(%x: tensor<8xf32>, %v: f32, %i: index) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[P:.*]] = memref.alloc() {{.*}} #remat.second>
  // CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NEXT: memref.copy %[[P]], %[[A]]
  // CHECK-NEXT: memref.store %arg1, %[[A]]
  // CHECK-NEXT: %[[B:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NEXT: memref.copy %[[P]], %[[B]]
  %p = remat.page_out %x : tensor<8xf32>
  %a = remat.page_in %p : tensor<8xf32>
  %0 = tensor.insert %v into %a[%i] : tensor<8xf32>
  %b = remat.page_in %p : tensor<8xf32>
  return %0, %b : tensor<8xf32>, tensor<8xf32>
}

// Pages go where values go: through calls,
// CHECK-LABEL: func.func @makes_a_page({{.*}}) -> memref<8xf32, #remat.second>
func.func @makes_a_page(%x: tensor<8xf32>) -> !remat.page<tensor<8xf32>> {
  %p = remat.page_out %x : tensor<8xf32>
  return %p : !remat.page<tensor<8xf32>>
}

// CHECK-LABEL: func.func @reads_a_page
func.func @reads_a_page(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[P:.*]] = call @makes_a_page
  // CHECK: memref.copy %[[P]], %[[A:.*]] : memref<8xf32, #remat.second>
  // CHECK: %[[BASE:[a-z_0-9]+]], {{.*}} = memref.extract_strided_metadata %[[P]]
  // CHECK: memref.dealloc %[[BASE]] : memref<f32, #remat.second>
  // CHECK: return %[[A]]
  %p = call @makes_a_page(%x) : (tensor<8xf32>) -> !remat.page<tensor<8xf32>>
  %0 = remat.page_in %p : tensor<8xf32>
  return %0 : tensor<8xf32>
}
