//! Changes of a memory curve, with the widest vector instructions the machine has: the innermost loop of every search.

use pulp::{Arch, Simd, WithSimd};

/// Adds to every memory of a slice and returns by how much the sum of what exceeds the budget changes. `chunk` is a number of changes by
/// `bytes` whose sum fits `i32`.
#[inline]
pub(crate) fn add(arch: Arch, memory: &mut [i32], bytes: i32, budget: i32, chunk: usize) -> i64 {
    let addition = Addition {
        memory,
        bytes,
        budget,
        chunk,
    };
    // Choosing the instructions costs more than a short loop.
    if addition.memory.len() < 16 {
        return addition.run();
    }
    arch.dispatch(addition)
}

struct Addition<'a> {
    memory: &'a mut [i32],
    bytes: i32,
    budget: i32,
    chunk: usize,
}

impl WithSimd for Addition<'_> {
    type Output = i64;

    // Compiled once per instruction set; the compiler vectorises the loop.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> i64 {
        self.run()
    }
}

impl Addition<'_> {
    #[inline(always)]
    fn run(self) -> i64 {
        let (bytes, budget) = (self.bytes, self.budget);
        let mut total = 0i64;
        for chunk in self.memory.chunks_mut(self.chunk) {
            let mut change = 0i32;
            for memory in chunk {
                let old = *memory;
                *memory = old + bytes;
                change += (old + bytes).max(budget) - old.max(budget);
            }
            total += i64::from(change);
        }
        total
    }
}
