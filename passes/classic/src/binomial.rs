//! Binomial checkpointing of a chain: Griewank and Walther's optimal places of checkpoints, by dynamic programming.
//!
//! A chain of states 0, 1, .. is needed in reverse. Each state is made from the one before it by one step; state 0 is there.
//! `t(l, s)` is the least number of steps that bring `l` states, the last one first, with room for `s` of them beside state 0
//! and the one that is needed. Without room each state is made from the start: `t(l, 0) = l (l - 1) / 2`. Otherwise state `m` is
//! stored on the way to the last one; the states from there on are walked with room for one less, then those before it:
//! `t(l, s) = min over m of m + t(l - m, s - 1) + t(m, s)`.
//!
//! Source: A. Griewank, A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), where `s + 1` counts the first state too.

/// The best first state to store, for all lengths and all numbers of stored states up to a limit.
#[derive(Clone, Debug)]
pub(super) struct Binomial {
    /// `split[s - 1][l]`: which of `l` states is stored first where `s` can be.
    split: Vec<Vec<u32>>,
    /// `t(l, s)` for the largest `s`.
    #[cfg(test)]
    least: Vec<u64>,
}

/// A state that is stored while the states from it to `end` are walked backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    /// The state.
    pub(super) state: usize,
    /// The state behind the last one that is walked meanwhile.
    pub(super) end: usize,
    /// Whether it is stored on the first way through the chain.
    pub(super) first_way: bool,
}

impl Binomial {
    /// For chains of up to `length` states of which up to `room` are stored; takes `4 * length * room` bytes.
    pub(super) fn new(length: usize, room: usize) -> Self {
        let without: Vec<u64> = (0..=length as u64).map(|l| l * l.saturating_sub(1) / 2).collect();
        let mut least = without;
        let mut split = Vec::with_capacity(room);
        for _ in 0..room {
            let mut now = vec![0; length + 1];
            let mut places = vec![1u32; length + 1];
            for l in 2..=length {
                let cost = |m: usize, now: &[u64]| m as u64 + least[l - m] + now[m];
                // t is convex in l, so the best place moves by one step at most as the chain grows by one.
                let place = places[l - 1] as usize;
                let next = (place + 1).min(l - 1);
                let best = if cost(next, &now) < cost(place, &now) {
                    next
                } else {
                    place
                };
                now[l] = cost(best, &now);
                places[l] = best as u32;
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

    /// The states that are stored while a chain of that many states is walked backwards, in the order in which they are.
    pub(super) fn stored(&self, length: usize, room: usize) -> Vec<Stored> {
        let mut stored = Vec::new();
        let mut todo = vec![(0, length, room.min(self.split.len()), true)];
        while let Some((start, end, room, first_way)) = todo.pop() {
            if room == 0 || end - start < 2 {
                continue;
            }
            let state = start + self.split[room - 1][end - start] as usize;
            stored.push(Stored { state, end, first_way });
            todo.push((start, state, room, false));
            todo.push((state, end, room - 1, first_way));
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minimum over all places, without any assumption.
    fn exhaustive(steps: usize, states: usize) -> Vec<Vec<u64>> {
        let mut table = vec![
            (0..=steps as u64)
                .map(|l| l * l.saturating_sub(1) / 2)
                .collect::<Vec<_>>(),
        ];
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
    fn halving_takes_as_many_steps_as_its_formula_says_and_the_table_no_more() {
        // tv(1) = 2, tv(n) = n/2 + 2 tv(n/2), where each of the n states counts with two steps of its own.
        let mut halving = 2u64;
        for log in 1..10usize {
            let n = 1u64 << log;
            halving = n / 2 + 2 * halving;
            assert_eq!(halving - 2 * n, n / 2 * log as u64);
            assert!(
                Binomial::new(n as usize, log).least[n as usize] <= halving - 2 * n,
                "{n}"
            );
        }
    }

    #[test]
    fn states_nest_and_never_exceed_the_room() {
        let table = Binomial::new(40, 5);
        for room in 0..=5 {
            let stored = table.stored(40, room);
            for needed in 0..40 {
                let held = |s: &&Stored| s.state <= needed && needed < s.end;
                assert!(stored.iter().filter(held).count() <= room);
            }
            assert!(stored.iter().all(|s| 0 < s.state && s.state < s.end && s.end <= 40));
        }
        assert_eq!(table.stored(40, 0), []);
    }
}
