// What the verifiers reject. They look at types and attributes alone; what is no schedule is for `remat-verify` to say.
// RUN: mlir-opt %load %s -verify-diagnostics -split-input-file

func.func @negative_id(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.recompute' op attribute 'id' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = remat.recompute %x id(-1) : tensor<4xf32>
  return
}

// -----

func.func @missing_id(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.recompute' op requires attribute 'id'}}
  %0 = "remat.recompute"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @fence_changes_the_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.recompute' op requires the same type for all operands and results}}
  %0 = "remat.recompute"(%x) <{id = 1 : i64}> : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

func.func @fence_of_a_scalar(%x: f32) {
  // expected-error@+1 {{'remat.recompute' op operand #0 must be ranked tensor of any type values, but got 'f32'}}
  %0 = "remat.recompute"(%x) <{id = 1 : i64}> : (f32) -> f32
  return
}

// -----

func.func @name_that_is_no_string(%x: tensor<4xf32>) {
  // expected-error@+1 {{invalid properties {id = 1 : i64, of = 7 : i64} for op remat.recompute: Invalid attribute `of`}}
  %0 = "remat.recompute"(%x) <{id = 1 : i64, of = 7 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dealloc_of_a_buffer(%x: memref<4xf32>) {
  // expected-error@+1 {{'remat.dealloc' op operand #0 must be ranked tensor of any type values, but got 'memref<4xf32>'}}
  "remat.dealloc"(%x) : (memref<4xf32>) -> ()
  return
}

// -----

func.func @dealloc_of_an_unranked_tensor(%x: tensor<*xf32>) {
  // expected-error@+1 {{'remat.dealloc' op operand #0 must be ranked tensor of any type values, but got 'tensor<*xf32>'}}
  "remat.dealloc"(%x) : (tensor<*xf32>) -> ()
  return
}

// -----

func.func @page_out_of_dynamic_shape(%x: tensor<?xf32>) {
  // expected-error@+1 {{'tensor' must be tensor of static shape, without encoding, of elements with a size, but got 'tensor<?xf32>'}}
  %0 = remat.page_out %x : tensor<?xf32>
  return
}

// -----

func.func @page_out_of_what_has_no_size(%x: tensor<4x!llvm.ptr>) {
  // expected-error@+1 {{'tensor' must be tensor of static shape, without encoding, of elements with a size, but got 'tensor<4x!llvm.ptr>'}}
  %0 = remat.page_out %x : tensor<4x!llvm.ptr>
  return
}

// -----

// expected-error@+1 {{a page needs a static shape, got `'tensor<?xf32>'`}}
func.func private @dynamic(!remat.page<tensor<?xf32>>)

// -----

// expected-error@+1 {{a page needs a tensor without encoding, got `'tensor<4xf32, "sparse">'`}}
func.func private @encoding(!remat.page<tensor<4xf32, "sparse">>)

// -----

// expected-error@+1 {{a page needs elements with a size, got `'tensor<4xvector<4xf32>>'`}}
func.func private @elements(!remat.page<tensor<4xvector<4xf32>>>)

// -----

// expected-error@+1 {{a page needs a size below 2^63 bytes, got `'tensor<4611686018427387904xf64>'`}}
func.func private @size(!remat.page<tensor<4611686018427387904xf64>>)

// -----

// expected-error@+2 {{invalid kind of type specified: expected builtin.tensor, but found 'memref<4xf32>'}}
// expected-error@+1 {{failed to parse Remat_PageType parameter 'tensor'}}
func.func private @page_of_a_buffer(!remat.page<memref<4xf32>>)

// -----

func.func @page_of_another_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.page_out' op failed to verify that page holds the type of the tensor}}
  %0 = "remat.page_out"(%x) : (tensor<4xf32>) -> !remat.page<tensor<2x2xf32>>
  return
}

// -----

func.func @page_in_of_another_type(%p: !remat.page<tensor<4xf32>>) {
  // expected-error@+1 {{'remat.page_in' op failed to verify that page holds the type of the tensor}}
  %0 = "remat.page_in"(%p) : (!remat.page<tensor<4xf32>>) -> tensor<4xi32>
  return
}

// -----

func.func @page_in_of_a_tensor(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.page_in' op operand #0 must be a tensor in the second memory, but got 'tensor<4xf32>'}}
  %0 = "remat.page_in"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @page_drop_of_a_tensor(%x: tensor<4xf32>) {
  // expected-error@+1 {{'remat.page_drop' op operand #0 must be a tensor in the second memory, but got 'tensor<4xf32>'}}
  "remat.page_drop"(%x) : (tensor<4xf32>) -> ()
  return
}
