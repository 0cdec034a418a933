// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify-lifetimes))' -verify-diagnostics -split-input-file %s

func.func @recomputed_and_paged(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<2x4xf32>
  %1 = math.tanh %0 : tensor<2x4xf32>
  remat.dealloc %0 : tensor<2x4xf32>
  %p = remat.page_out %1 : tensor<2x4xf32>
  %f = remat.recompute %x id(1) : tensor<2x4xf32>
  %2 = math.exp %f : tensor<2x4xf32>
  %f2 = remat.recompute %x id(2) : tensor<2x4xf32>
  %3 = math.exp %f2 : tensor<2x4xf32>
  %a = remat.page_in %p : tensor<2x4xf32>
  remat.dealloc %a : tensor<2x4xf32>
  %b = remat.page_in %p : tensor<2x4xf32>
  remat.page_drop %p : !remat.page<tensor<2x4xf32>>
  %4 = arith.addf %b, %2 : tensor<2x4xf32>
  %v = tensor.collapse_shape %4 [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %v : tensor<8xf32>
}

// Ids are unique in one function, not in all.
func.func @another(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = remat.recompute %x id(1) : tensor<4xf32>
  return %f : tensor<4xf32>
}

// What is made in a loop is released in it.
func.func @in_a_loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<4xf32> {
    %0 = math.exp %acc : tensor<4xf32>
    %1 = math.tanh %0 : tensor<4xf32>
    remat.dealloc %0 : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Each branch may release on its own what another block made; no path does twice.
func.func @in_branches(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  cf.cond_br %c, ^left, ^right
^left:
  %1 = math.tanh %0 : tensor<4xf32>
  remat.dealloc %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
^right:
  %2 = math.sin %0 : tensor<4xf32>
  remat.dealloc %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @id_taken(%x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-note@+1 {{taken here}}
  %0 = remat.recompute %x id(7) : tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    // expected-error@+1 {{'remat.recompute' op has an id that is taken in this function}}
    %2 = remat.recompute %x id(7) : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @read(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  // expected-error@+1 {{'math.tanh' op uses what was released}}
  %1 = math.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @read_after_page_out(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  // expected-note@+1 {{released here}}
  %p = remat.page_out %0 : tensor<4xf32>
  // expected-error@+1 {{'func.return' op uses what was released}}
  return %0 : tensor<4xf32>
}

// -----

func.func @twice(%x: tensor<4xf32>) {
  %0 = math.exp %x : tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  // expected-error@+1 {{'remat.dealloc' op uses what was released}}
  remat.dealloc %0 : tensor<4xf32>
  return
}

// -----

func.func @page_after_drop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %p = remat.page_out %0 : tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.page_drop %p : !remat.page<tensor<4xf32>>
  // expected-error@+1 {{'remat.page_in' op uses what was released}}
  %1 = remat.page_in %p : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Memory has many names: a view outlives nothing,
func.func @view(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<2x4xf32>
  %v = tensor.collapse_shape %0 [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<2x4xf32>
  // expected-error@+1 {{'math.tanh' op uses what was released}}
  %1 = math.tanh %v : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// and releasing a view releases the tensor, with all other views.
func.func @by_a_view(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0 = math.exp %x : tensor<8xf32>
  %f = remat.recompute %0 id(1) : tensor<8xf32>
  %s = tensor.extract_slice %0[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %f : tensor<8xf32>
  // expected-error@+1 {{'math.tanh' op uses what was released}}
  %1 = math.tanh %0 : tensor<8xf32>
  // expected-error@+1 {{'math.sin' op uses what was released}}
  %2 = math.sin %s : tensor<4xf32>
  return %1, %2 : tensor<8xf32>, tensor<4xf32>
}

// -----

// One of two is enough.
func.func @perhaps(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.sin %x : tensor<4xf32>
  %2 = arith.select %c, %0, %1 : tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  // expected-error@+1 {{'func.return' op uses what was released}}
  return %2 : tensor<4xf32>
}

// -----

func.func @in_a_region_behind(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    // expected-error@+1 {{'math.tanh' op uses what was released}}
    %2 = math.tanh %0 : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

func.func @argument(%x: tensor<4xf32>, %p: !remat.page<tensor<4xf32>>) {
  // expected-error@+1 {{'remat.dealloc' op releases an argument of a block, whose memory belongs to others}}
  remat.dealloc %x : tensor<4xf32>
  // expected-error@+1 {{'remat.page_drop' op releases an argument of a block, whose memory belongs to others}}
  remat.page_drop %p : !remat.page<tensor<4xf32>>
  return
}

// -----

// A fence around an argument is the argument.
func.func @fence_of_an_argument(%x: tensor<4xf32>) {
  %f = remat.recompute %x id(1) : tensor<4xf32>
  // expected-error@+1 {{'remat.dealloc' op releases an argument of a block, whose memory belongs to others}}
  remat.dealloc %f : tensor<4xf32>
  return
}

// -----

func.func @again_and_again(%x: tensor<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note@+1 {{made here}}
  %0 = math.exp %x : tensor<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{'remat.dealloc' op releases in one region what another one made, so perhaps never, or twice}}
    remat.dealloc %0 : tensor<4xf32>
  }
  return
}

// -----

// Another way through the blocks is no excuse: this one may be taken.
func.func @in_a_block_behind(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  cf.cond_br %c, ^a, ^b
^a:
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  cf.br ^b
^b:
  // expected-error@+1 {{'math.tanh' op uses what was released}}
  %1 = math.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @in_the_next_round(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  cf.br ^a
^a:
  // expected-error@+1 {{'math.tanh' op uses what was released}}
  %1 = math.tanh %0 : tensor<4xf32>
  // expected-error@+2 {{'remat.dealloc' op uses what was released}}
  // expected-note@+1 {{released here}}
  remat.dealloc %0 : tensor<4xf32>
  cf.cond_br %c, ^a, ^b
^b:
  return %1 : tensor<4xf32>
}

// -----

// What is made again in each round is released in each.
func.func @made_in_each_round(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.br ^a
^a:
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  remat.dealloc %0 : tensor<4xf32>
  cf.cond_br %c, ^a, ^b
^b:
  return %1 : tensor<4xf32>
}

// -----

// In one of two branches, and read in the other.
func.func @in_the_other_branch(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  cf.cond_br %c, ^a, ^b
^a:
  remat.dealloc %0 : tensor<4xf32>
  return %x : tensor<4xf32>
^b:
  %1 = math.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
