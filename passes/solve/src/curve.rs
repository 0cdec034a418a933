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
        // A check at every sum would keep the loop from being vectorised, which makes searches take more than twice as long. So sums wrap, and
        // the sign of `overflow` says whether one did. Differences of what exceeds the budget are no larger than `bytes` then.
        let mut overflow = 0i32;
        for chunk in self.memory.chunks_mut(self.chunk) {
            let mut change = 0i32;
            for memory in chunk {
                let old = *memory;
                let new = old.wrapping_add(bytes);
                overflow |= (old ^ new) & (bytes ^ new);
                *memory = new;
                change = change.wrapping_add(new.max(budget).wrapping_sub(old.max(budget)));
            }
            total += i64::from(change);
        }
        assert!(overflow >= 0, "the memory of a sequence does not fit 32 bits");
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_of_what_exceeds_the_budget_is_summed_in_both_loops() {
        for (length, pairs) in [(3, 3i64), (40, 40)] {
            let mut memory = [5, 10].repeat(length);
            assert_eq!(add(Arch::new(), &mut memory, 4, 8, 7), 5 * pairs);
            assert_eq!(add(Arch::new(), &mut memory, -4, 8, 7), -5 * pairs);
            assert_eq!(memory, [5, 10].repeat(length));
        }
    }

    #[test]
    #[should_panic(expected = "does not fit 32 bits")]
    fn a_sum_that_leaves_32_bits_ends_the_run() {
        add(Arch::new(), &mut [0, i32::MAX - 3, 0].repeat(20), 4, 8, 7);
    }

    #[test]
    #[should_panic(expected = "does not fit 32 bits")]
    fn so_does_one_below_zero() {
        add(Arch::new(), &mut [i32::MIN + 3], -4, 8, 7);
    }
}
