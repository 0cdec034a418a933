// What is printed parses back, in the form of the dialect and in the generic one.
// RUN: mlir-opt %load %s | FileCheck %s
// RUN: mlir-opt %load %s | mlir-opt %load | FileCheck %s
// RUN: mlir-opt %load -mlir-print-op-generic %s | FileCheck %s --check-prefix=GENERIC
// RUN: mlir-opt %load -mlir-print-op-generic %s | mlir-opt %load | FileCheck %s
// RUN: mlir-opt %load -emit-bytecode %s | mlir-opt %load | FileCheck %s

// CHECK-LABEL: func.func @schedule
// GENERIC-LABEL: sym_name = "schedule"
func.func @schedule(%x: tensor<8x8xf32>, %d: tensor<?x8xf16>) -> tensor<8x8xf32> {
  // CHECK: %[[F:.*]] = remat.recompute %{{.*}} id(3) of("block1/\22relu\22") : tensor<8x8xf32>
  // GENERIC: "remat.recompute"(%{{.*}}) <{id = 3 : i64, of = "block1/\22relu\22"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = remat.recompute %x id(3) of("block1/\"relu\"") : tensor<8x8xf32>
  // CHECK: remat.recompute %{{.*}} id(0) {note = "kept"} : tensor<?x8xf16>
  // GENERIC: "remat.recompute"(%{{.*}}) <{id = 0 : i64}> {note = "kept"}
  %g = remat.recompute %d id(0) {note = "kept"} : tensor<?x8xf16>
  // CHECK: %[[P:.*]] = remat.page_out %[[F]] : tensor<8x8xf32>
  // GENERIC: "remat.page_out"(%{{.*}}) : (tensor<8x8xf32>) -> !remat.page<tensor<8x8xf32>>
  %p = remat.page_out %f : tensor<8x8xf32>
  // CHECK: remat.dealloc %{{.*}} : tensor<?x8xf16>
  // GENERIC: "remat.dealloc"(%{{.*}}) : (tensor<?x8xf16>) -> ()
  remat.dealloc %g : tensor<?x8xf16>
  // CHECK: %[[B:.*]] = remat.page_in %[[P]] : tensor<8x8xf32>
  // GENERIC: "remat.page_in"(%{{.*}}) : (!remat.page<tensor<8x8xf32>>) -> tensor<8x8xf32>
  %b = remat.page_in %p : tensor<8x8xf32>
  // CHECK: remat.page_drop %[[P]] : !remat.page<tensor<8x8xf32>>
  // GENERIC: "remat.page_drop"(%{{.*}}) : (!remat.page<tensor<8x8xf32>>) -> ()
  remat.page_drop %p : !remat.page<tensor<8x8xf32>>
  return %b : tensor<8x8xf32>
}

// CHECK-LABEL: func.func private @types(!remat.page<tensor<f64>>, !remat.page<tensor<2x3xcomplex<f32>>>, memref<4xi8, #remat.second>)
func.func private @types(!remat.page<tensor<f64>>, !remat.page<tensor<2x3xcomplex<f32>>>, memref<4xi8, #remat.second>)
