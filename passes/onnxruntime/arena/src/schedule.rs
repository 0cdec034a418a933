//! Which weights stay in the memory, and when others are asked for and dropped, so that all together are no more than a budget.
//!
//! Runs read weights in a cycle, so what was read last is what is needed last: to drop what was not read for the longest time would drop each weight just
//! before it is read. So a part stays for ever, and all others go through a window: the weight that a run reads, and those that come next,
//! as far as they fit. The window has room for the two largest weights, so that the next one is always on its way.

use std::collections::{BTreeSet, VecDeque};

use crate::uses::WeightUse;

/// What is kept, and what goes through the window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Schedule {
    kept: Vec<WeightUse>,
    /// The uses of all others, in the order of a run.
    streamed: Vec<WeightUse>,
    /// Room of the window.
    window_bytes: u64,
}

impl Schedule {
    /// For the uses of a run, and a budget.
    pub(crate) fn new(uses: &[WeightUse], budget: u64) -> Self {
        let distinct: BTreeSet<WeightUse> = uses.iter().copied().collect();
        let total = distinct.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
        let mut sizes: Vec<u64> = distinct.iter().map(|one| one.bytes).collect();
        sizes.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
        let window = sizes
            .iter()
            .take(2)
            .fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
        let mut left = match total <= budget {
            true => budget,
            false => budget.saturating_sub(window),
        };
        let (mut seen, mut kept) = (BTreeSet::new(), Vec::new());
        for one in uses {
            if seen.insert(*one) && one.bytes <= left {
                left -= one.bytes;
                kept.push(*one);
            }
        }
        let is_kept: BTreeSet<WeightUse> = kept.iter().copied().collect();
        let streamed = uses.iter().copied().filter(|one| !is_kept.contains(one)).collect();
        let kept_bytes: u64 = kept.iter().map(|one| one.bytes).sum();
        Self {
            kept,
            streamed,
            window_bytes: budget - kept_bytes,
        }
    }

    /// What is never dropped.
    pub(crate) fn kept(&self) -> &[WeightUse] {
        &self.kept
    }

    /// What is asked for and dropped in each run, in the order in which a run reads it.
    pub(crate) fn streamed(&self) -> &[WeightUse] {
        &self.streamed
    }
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Step {
    /// First this goes.
    pub(crate) drop: Vec<WeightUse>,
    /// Then this is asked for, in this order.
    pub(crate) ask: Vec<WeightUse>,
}

/// What of the streamed weights is in the memory, or on its way there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Window {
    /// Places in the cycle that follow each other.
    held: VecDeque<usize>,
}

impl Window {
    /// Before a run: the weights that it reads first are asked for.
    pub(crate) fn start(&mut self, schedule: &Schedule) -> Step {
        self.held.clear();
        let mut step = Step::default();
        self.fill(schedule, 0, &mut step);
        step
    }

    /// A run begins to read the weight at this place of the cycle.
    pub(crate) fn reads(&mut self, schedule: &Schedule, place: usize) -> Step {
        let mut step = Step::default();
        let Some(&now) = schedule.streamed.get(place) else {
            return step;
        };
        let mut gone = Vec::new();
        while let Some(first) = self.held.pop_front() {
            if first == place {
                self.held.push_front(first);
                break;
            }
            gone.extend(schedule.streamed.get(first));
        }
        if self.held.is_empty() {
            self.held.push_back(place);
            if !gone.contains(&now) {
                step.ask.push(now);
            }
        }
        let next = self.held.back().map_or(place, |last| last + 1);
        self.fill(schedule, next, &mut step);
        let held: BTreeSet<WeightUse> = self
            .held
            .iter()
            .filter_map(|&at| schedule.streamed.get(at).copied())
            .collect();
        // What was there already is not asked for again.
        step.ask.retain(|one| !gone.contains(one));
        gone.retain(|one| !held.contains(one));
        step.drop = gone;
        step
    }

    /// Asks for what comes next, as far as it fits.
    fn fill(&mut self, schedule: &Schedule, next: usize, step: &mut Step) {
        let count = schedule.streamed.len();
        let bytes = |at: usize| schedule.streamed.get(at).map_or(0, |one| one.bytes);
        let mut sum = self.held.iter().fold(0, |sum: u64, &at| sum.saturating_add(bytes(at)));
        let mut next = next;
        while self.held.len() < count {
            next %= count;
            sum = sum.saturating_add(bytes(next));
            if sum > schedule.window_bytes {
                return;
            }
            step.ask.extend(schedule.streamed.get(next));
            self.held.push_back(next);
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uses(sizes: &[u64]) -> Vec<WeightUse> {
        let mut offset = 0;
        let one = |&bytes: &u64| {
            offset += bytes;
            WeightUse {
                offset: offset - bytes,
                bytes,
            }
        };
        sizes.iter().map(one).collect()
    }

    fn sum<'u>(all: impl IntoIterator<Item = &'u WeightUse>) -> u64 {
        all.into_iter().map(|one| one.bytes).sum()
    }

    #[test]
    fn the_first_stay_and_the_others_go_through_a_window() {
        let uses = uses(&[16; 8]);
        let schedule = Schedule::new(&uses, 60);
        assert_eq!((schedule.kept(), schedule.streamed()), (&uses[..1], &uses[1..]));
        let mut window = Window::default();
        assert_eq!(window.start(&schedule).ask, uses[1..3]);
        assert_eq!(window.reads(&schedule, 0), Step::default());
        let step = Step {
            drop: vec![uses[1]],
            ask: vec![uses[3]],
        };
        assert_eq!(window.reads(&schedule, 1), step);
        // The last of a run is followed by the first of the next one.
        for place in 2..6 {
            window.reads(&schedule, place);
        }
        let step = Step {
            drop: vec![uses[6]],
            ask: vec![uses[1]],
        };
        assert_eq!(window.reads(&schedule, 6), step);
    }

    #[test]
    fn everything_stays_that_fits() {
        let uses = uses(&[16; 3]);
        assert_eq!(Schedule::new(&uses, 48).streamed(), []);
        assert_eq!(Schedule::new(&uses, 47).kept(), []);
    }

    #[test]
    fn a_weight_larger_than_the_budget_is_asked_for_when_it_is_read_and_dropped_after() {
        let uses = uses(&[4, 100, 4]);
        let schedule = Schedule::new(&uses, 10);
        assert_eq!(schedule.kept(), []);
        let mut window = Window::default();
        assert_eq!(window.start(&schedule).ask, uses[..1]);
        assert_eq!(
            window.reads(&schedule, 1),
            Step {
                drop: vec![uses[0]],
                ask: vec![uses[1]]
            }
        );
        assert_eq!(
            window.reads(&schedule, 2),
            Step {
                drop: vec![uses[1]],
                ask: vec![uses[2], uses[0]]
            }
        );
    }

    proptest! {
        #[test]
        fn what_is_in_the_memory_is_within_the_budget_and_each_weight_is_asked_for_before_it_is_read(
            sizes in proptest::collection::vec(1..50u64, 1..12),
            again in proptest::collection::vec(0..12usize, 0..4),
            budget in 0..300u64,
        ) {
            let mut uses = uses(&sizes);
            for place in again {
                uses.push(uses[place % sizes.len()]);
            }
            let schedule = Schedule::new(&uses, budget);
            let mut two = sizes.clone();
            two.sort_unstable();
            let pair: u64 = two.iter().rev().take(2).sum();
            let mut present: BTreeSet<WeightUse> = BTreeSet::new();
            let mut window = Window::default();
            let apply = |step: Step, present: &mut BTreeSet<WeightUse>| {
                for gone in &step.drop {
                    assert!(!schedule.kept().contains(gone) && present.remove(gone), "{gone:?} is dropped");
                }
                for asked in step.ask {
                    // Two uses of one weight may be in the window.
                    present.insert(asked);
                }
            };
            apply(window.start(&schedule), &mut present);
            for _ in 0..3 {
                for (place, now) in schedule.streamed().iter().enumerate() {
                    let was_there = present.contains(now);
                    prop_assert!(was_there || pair > budget, "{now:?} comes too late");
                    apply(window.reads(&schedule, place), &mut present);
                    prop_assert!(present.contains(now));
                    let bytes = sum(schedule.kept()) + sum(&present);
                    prop_assert!(bytes <= budget || present.len() == 1 && schedule.kept().is_empty(), "{bytes} of {budget}");
                }
            }
            // Each distinct use is kept or streamed.
            let all: BTreeSet<_> = schedule.kept().iter().chain(schedule.streamed()).collect();
            prop_assert_eq!(all, uses.iter().collect::<BTreeSet<_>>());
        }

        #[test]
        fn places_in_any_order_never_drop_what_is_read(
            sizes in proptest::collection::vec(1..50u64, 1..9),
            places in proptest::collection::vec(0..12usize, 0..40),
            budget in 0..300u64,
        ) {
            let schedule = Schedule::new(&uses(&sizes), budget);
            let mut window = Window::default();
            window.start(&schedule);
            for place in places {
                let step = window.reads(&schedule, place);
                if let Some(now) = schedule.streamed().get(place) {
                    prop_assert!(!step.drop.contains(now));
                }
            }
        }
    }
}
