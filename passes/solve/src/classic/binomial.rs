//! Binomial checkpointing of a chain: Griewank and Walther's optimal places of checkpoints, by dynamic programming.
//!
//! `t(l, s)` is the least number of forward steps needed to walk `l` steps of a chain backwards, from the state before the first
//! one, with room for `s` more states; the last step's result is at hand. One step needs nothing. Without room each step starts over:
//! `t(l, 0) = l (l - 1) / 2`. Otherwise a state is stored after `m` steps, what is behind it is walked with one state less, then what
//! is before it: `t(l, s) = min over m of m + t(l - m, s - 1) + t(m, s)`.
//!
//! Source: A. Griewank, A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), where `s + 1` counts the first state too.

/// Best places of the first checkpoint for all lengths and numbers of states up to a limit.
#[derive(Clone, Debug)]
pub(super) struct Binomial {
    /// `split[s - 1][l]`: after how many of `l` steps the next state is stored where `s` can be.
    split: Vec<Vec<u32>>,
    /// `t(l, s)` for the largest `s`.
    #[cfg(test)]
    least: Vec<u64>,
}

/// A state that is stored after `after` steps, while the steps from there to `end` are walked backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    /// Number of steps before the state.
    pub(super) after: usize,
    /// The steps up to here are walked meanwhile.
    pub(super) end: usize,
    /// Whether it is stored on the first way through the chain.
    pub(super) first_way: bool,
}

impl Binomial {
    /// For chains up to `steps` with up to `states`; takes `4 * steps * states` bytes.
    pub(super) fn new(steps: usize, states: usize) -> Self {
        let without: Vec<u64> = (0..=steps as u64).map(|l| l * l.saturating_sub(1) / 2).collect();
        let mut least = without;
        let mut split = Vec::with_capacity(states);
        for _ in 0..states {
            let mut now = vec![0; steps + 1];
            let mut places = vec![1u32; steps + 1];
            for length in 2..=steps {
                let cost = |m: usize, now: &[u64]| m as u64 + least[length - m] + now[m];
                // t is convex in l, so the best place moves by one step at most as the chain grows by one.
                let place = places[length - 1] as usize;
                let next = (place + 1).min(length - 1);
                let best = if cost(next, &now) < cost(place, &now) { next } else { place };
                now[length] = cost(best, &now);
                places[length] = best as u32;
            }
            least = now;
            split.push(places);
        }
        Self {
            split,
            #[cfg(test)]
            least,
        }
    }

    /// The states that are stored while a chain of that many steps is walked backwards, in the order in which they are.
    pub(super) fn stored(&self, steps: usize, states: usize) -> Vec<Stored> {
        let mut stored = Vec::new();
        let mut todo = vec![(0, steps, states.min(self.split.len()), true)];
        while let Some((start, end, states, first_way)) = todo.pop() {
            if states == 0 || end - start < 2 {
                continue;
            }
            let after = start + self.split[states - 1][end - start] as usize;
            stored.push(Stored { after, end, first_way });
            todo.push((start, after, states, false));
            todo.push((after, end, states - 1, first_way));
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minimum over all places, without any assumption.
    fn exhaustive(steps: usize, states: usize) -> Vec<Vec<u64>> {
        let mut table = vec![(0..=steps as u64).map(|l| l * l.saturating_sub(1) / 2).collect::<Vec<_>>()];
        for s in 1..=states {
            let mut now = vec![0; steps + 1];
            for l in 2..=steps {
                now[l] = (1..l).map(|m| m as u64 + table[s - 1][l - m] + now[m]).min().unwrap();
            }
            table.push(now);
        }
        table
    }

    fn binomial(n: u64, k: u64) -> u64 {
        (1..=k).fold(1, |product, i| product * (n - k + i) / i)
    }

    #[test]
    fn the_table_is_optimal() {
        let table = exhaustive(60, 8);
        for (states, row) in table.iter().enumerate() {
            assert_eq!(&Binomial::new(60, states).least, row, "{states} states");
        }
    }

    #[test]
    fn the_table_meets_the_closed_form_of_griewank_and_walther() {
        for states in 0..8u64 {
            let least = Binomial::new(60, states as usize).least;
            for steps in 1..=60u64 {
                // The number of repetitions r with C(s+r-1, s) < l <= C(s+r, s), the first state counted in s.
                let s = states + 1;
                let r = (0..).find(|r| steps <= binomial(s + r, s)).unwrap();
                let below = if r == 0 { 0 } else { binomial(s + r, s + 1) };
                assert_eq!(least[steps as usize], r * steps - below, "t({steps}, {states})");
            }
        }
    }

    #[test]
    fn with_log_n_states_no_more_is_needed_than_by_halving() {
        // tv(1) = 2, tv(n) = n/2 + 2 tv(n/2) is halving; tv(n) - n counts its forward steps, that of each single step included.
        let mut halving = 2u64;
        for log in 1..10usize {
            let n = 1u64 << log;
            halving = n / 2 + 2 * halving;
            assert_eq!(halving, n / 2 * log as u64 + 2 * n);
            let least = Binomial::new(n as usize, log).least[n as usize];
            assert!(least + n <= halving - n, "{n}: {least}");
        }
    }

    #[test]
    fn states_nest_and_never_exceed_their_number() {
        let table = Binomial::new(40, 5);
        for states in 0..=5 {
            let stored = table.stored(40, states);
            for after in 1..40 {
                let held = |s: &&Stored| s.after < after && after <= s.end;
                assert!(stored.iter().filter(held).count() <= states);
            }
            assert!(stored.iter().all(|s| 0 < s.after && s.after < s.end && s.end <= 40));
        }
        assert_eq!(table.stored(40, 0), []);
    }
}
