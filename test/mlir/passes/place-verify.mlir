// `remat-verify` judges the views of a block, however they came about.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(remat-verify))' --verify-diagnostics --split-input-file %s

// One after the other in the same bytes, and beside each other in others.
func.func @apart(%x: memref<64xf32>, %block: memref<512xi8> {remat.block}) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %a = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  %b = memref.view %block[%c256][] : memref<512xi8> to memref<64xf32>
  %c = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  memref.copy %a, %b : memref<64xf32> to memref<64xf32>
  memref.copy %b, %c : memref<64xf32> to memref<64xf32>
  return
}

// -----

func.func @together(%x: memref<64xf32>, %block: memref<512xi8> {remat.block}) {
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  %a = memref.view %block[%c0][] {remat.buffer = 4 : i64} : memref<512xi8> to memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  // expected-error @below {{bytes 192 to 448 of buffer 5 are those of buffer 4 (bytes 0 to 256), which is needed at the same time}}
  %b = memref.view %block[%c192][] {remat.buffer = 5 : i64} : memref<512xi8> to memref<64xf32>
  memref.copy %a, %b : memref<64xf32> to memref<64xf32>
  return
}

// -----

// A part of a buffer, and what a loop hands on, are other names for it.
func.func @by_another_name(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %block = memref.alloc() {remat.block} : memref<512xi8>
  %a = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  %part = memref.subview %a[0] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1]>>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%now = %part) -> memref<8xf32, strided<[1]>> {
    scf.yield %now : memref<8xf32, strided<[1]>>
  }
  // expected-error @below {{bytes 0 to 256 are those of another view (bytes 0 to 256), which is needed at the same time}}
  %b = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  memref.copy %x, %b : memref<64xf32> to memref<64xf32>
  "test.use"(%last) : (memref<8xf32, strided<[1]>>) -> ()
  memref.dealloc %block : memref<512xi8>
  return
}

// -----

// What is made outside of a loop and used inside is needed in every round.
func.func @in_every_round(%x: memref<64xf32>, %n: index, %block: memref<512xi8> {remat.block}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  scf.for %i = %c0 to %n step %c1 {
    "test.use"(%a) : (memref<64xf32>) -> ()
    // expected-error @below {{which is needed at the same time}}
    %b = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
    "test.use"(%b) : (memref<64xf32>) -> ()
  }
  return
}

// -----

func.func @outside(%block: memref<512xi8> {remat.block}) {
  %c320 = arith.constant 320 : index
  // expected-error @below {{bytes 320 to 576 end behind the block, which has 512 bytes}}
  %a = memref.view %block[%c320][] : memref<512xi8> to memref<64xf32>
  return
}

// -----

func.func @misaligned(%block: memref<512xi8> {remat.block}) {
  %c6 = arith.constant 6 : index
  // expected-error @below {{offset 6 is not a multiple of 4, to which the elements have to be aligned}}
  %a = memref.view %block[%c6][] : memref<512xi8> to memref<64xf32>
  return
}

// -----

func.func @anywhere(%at: index, %block: memref<512xi8> {remat.block}) {
  // expected-error @below {{a view of a block of buffers needs a constant offset and a static size}}
  %a = memref.view %block[%at][] : memref<512xi8> to memref<64xf32>
  return
}

// -----

func.func @otherwise(%block: memref<512xi8> {remat.block}) {
  // expected-error @below {{`test.use` uses a block of buffers, which only views may}}
  "test.use"(%block) : (memref<512xi8>) -> ()
  return
}

// -----

func.func @returned() -> memref<64xf32> {
  %c0 = arith.constant 0 : index
  %block = memref.alloc() {remat.block} : memref<512xi8>
  // expected-error @below {{a view of the block leaves the function, which frees the block}}
  %a = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  memref.dealloc %block : memref<512xi8>
  return %a : memref<64xf32>
}

// -----

func.func @freed_early() {
  %c0 = arith.constant 0 : index
  %block = memref.alloc() {remat.block} : memref<512xi8>
  %a = memref.view %block[%c0][] : memref<512xi8> to memref<64xf32>
  // expected-error @below {{the block is freed before the last use of a view of it}}
  memref.dealloc %block : memref<512xi8>
  "test.use"(%a) : (memref<64xf32>) -> ()
  return
}

// -----

// expected-error @below {{the block has 512 bytes, the budget is 500 bytes}}
func.func @over(%block: memref<512xi8> {remat.block}) attributes {remat.budget = 500 : i64} {
  return
}
