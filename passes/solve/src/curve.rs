//! Changes of a memory curve, with the widest vector instructions the machine has: the innermost loop of every search.

use pulp::Arch;

/// Adds to every memory of a slice and returns by how much the sum of what exceeds the budget changes. `chunk` is a number of changes by
/// `bytes` whose sum fits `i32`.
#[inline]
pub(crate) fn add(arch: Arch, memory: &mut [i32], bytes: i32, budget: i32, chunk: usize) -> i64 {
    // Choosing the instructions costs more than a short loop.
    if memory.len() < 16 {
        return sum(memory, bytes, budget, chunk);
    }
    arch.dispatch(|| sum(memory, bytes, budget, chunk))
}

// Compiled once per instruction set; the compiler vectorises the loop.
#[inline(always)]
fn sum(memory: &mut [i32], bytes: i32, budget: i32, chunk: usize) -> i64 {
    let mut total = 0i64;
    // A check at every sum would keep the loop from being vectorised, which makes searches take more than twice as long. So sums wrap, and
    // the sign of `overflow` says whether one did. Differences of what exceeds the budget are no larger than `bytes` then.
    let mut overflow = 0i32;
    for chunk in memory.chunks_mut(chunk) {
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
