//! Good sequences that all threads share, and new ones made of two of them.
//!
//! One annealing ends far from another, and what is good in one stretch of a sequence has little to do with what is good in another
//! stretch. So stretches of one sequence are put into another, and the best of both are found.

use remat_plan::NodeId;
use typed_index_collections::{TiVec, ti_vec};

use crate::Rng;
use crate::best::Best;
use crate::dag::Dag;

/// Sequences that are kept.
const SIZE: usize = 6;
/// So many attempts per sequence without a better one end a generation.
const ATTEMPTS: usize = 4;

/// Sequences within one budget, no two of one duration.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    members: Vec<Best>,
    budget: i32,
    failures: usize,
    /// How often the pool was emptied but for its best sequence since two of its members gave nothing better.
    pub(crate) generation: u32,
}

/// What comes next.
pub(crate) enum Draw {
    /// One more sequence is wanted, by annealing.
    Vary,
    /// Two sequences, the shorter one first.
    Relink(Best, Best),
}

impl Pool {
    /// The shortest sequence within a budget.
    pub(crate) fn best(&self, budget: i32) -> Option<&Best> {
        let members = self.members.iter().filter(|best| best.peak <= budget);
        members.min_by_key(|best| best.duration)
    }

    /// Draws what to do.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Draw {
        if self.members.len() < SIZE {
            return Draw::Vary;
        }
        let first = rng.below(SIZE);
        let second = (first + 1 + rng.below(SIZE - 1)) % SIZE;
        let (first, second) = (&self.members[first], &self.members[second]);
        let is_shorter = first.duration < second.duration;
        let (shorter, longer) = if is_shorter { (first, second) } else { (second, first) };
        Draw::Relink(shorter.clone(), longer.clone())
    }

    /// Takes a sequence that was made within a budget, in place of the one of this duration, or of the longest where there is none. A pool
    /// has the lowest budget of all that it was given sequences for.
    pub(crate) fn add(&mut self, new: &Best, budget: i32, replaced: Option<i64>) {
        if self.members.is_empty() || budget < self.budget {
            self.members.retain(|member| member.peak <= budget);
            self.budget = budget;
        }
        let is_there = self.members.iter().any(|member| member.duration == new.duration);
        if is_there || new.peak > self.budget {
            self.fail();
        } else if self.members.len() < SIZE {
            self.members.push(new.clone());
        } else {
            let replaced = self.members.iter().position(|member| Some(member.duration) == replaced);
            let longest = || (0..SIZE).max_by_key(|&index| self.members[index].duration);
            match replaced.or_else(longest) {
                Some(index) if new.duration < self.members[index].duration => {
                    self.members[index] = new.clone();
                    self.failures = 0;
                }
                _ => self.fail(),
            }
        }
    }

    /// Counts an attempt that gave nothing. After many the pool is as good as it gets, and begins anew around its best sequence.
    pub(crate) fn fail(&mut self) {
        self.failures += 1;
        if self.failures >= ATTEMPTS * SIZE {
            self.members.sort_by_key(|member| member.duration);
            self.members.truncate(1);
            self.failures = 0;
            self.generation += 1;
        }
    }
}

/// Puts a stretch of `inner` into `outer`; both ends are drawn at random. What comes out is a valid sequence, of any peak.
pub(crate) fn relink(dag: &Dag, outer: &[NodeId], inner: &[NodeId], rng: &mut Rng) -> Vec<NodeId> {
    let from = rng.below(dag.len());
    let to = from + 1 + rng.below(dag.len() - from);
    switch(dag, &switch(dag, outer, inner, from), outer, to)
}

/// `before` up to its first run number `count`, then `after` behind its own; first runs that are missing come in between.
fn switch(dag: &Dag, before: &[NodeId], after: &[NodeId], count: usize) -> Vec<NodeId> {
    let mut runs: TiVec<NodeId, usize> = ti_vec![0; dag.len()];
    let mut sequence = Vec::with_capacity(before.len().max(after.len()));
    let mut begun = 0;
    for &node in before {
        begun += usize::from(runs[node] == 0);
        if begun > count {
            break;
        }
        runs[node] += 1;
        sequence.push(node);
    }
    let mut ran: TiVec<NodeId, bool> = ti_vec![false; dag.len()];
    let mut passed = 0;
    for &node in after {
        passed += usize::from(!std::mem::replace(&mut ran[node], true));
        let overwritten = || dag.anti_successors(node).iter().any(|&other| runs[other] > 0);
        let may_run = || runs[node] < dag.max_computes(node) && !overwritten();
        if runs[node] == 0 || passed > count && may_run() {
            runs[node] += 1;
            sequence.push(node);
        }
    }
    sequence
}

#[cfg(test)]
mod tests {
    use remat_plan::{AntiDependence, OpId, Structure};
    use remat_testing::net::{in_free_order, paper};

    use super::*;
    use crate::sequence::Sequence;

    fn best(duration: i64, peak: i32) -> Best {
        Best {
            duration,
            peak,
            sequence: Vec::new(),
        }
    }

    fn durations(pool: &Pool) -> Vec<i64> {
        let mut durations: Vec<i64> = pool.members.iter().map(|member| member.duration).collect();
        durations.sort_unstable();
        durations
    }

    #[test]
    fn a_full_pool_takes_shorter_sequences_only_and_begins_anew_when_none_comes() {
        let mut pool = Pool::default();
        for duration in [10, 20, 30, 30, 40, 50, 60] {
            pool.add(&best(duration, 5), 5, None);
        }
        assert_eq!(durations(&pool), [10, 20, 30, 40, 50, 60], "no two of one duration");
        pool.add(&best(35, 5), 5, Some(40));
        pool.add(&best(45, 5), 5, Some(41));
        pool.add(&best(47, 5), 5, Some(20));
        assert_eq!(durations(&pool), [10, 20, 30, 35, 45, 50]);
        for _ in 1..ATTEMPTS * SIZE {
            pool.fail();
        }
        assert_eq!(durations(&pool), [10]);
        assert_eq!(pool.generation, 1);
    }

    #[test]
    fn a_lower_budget_drops_what_exceeds_it() {
        let mut pool = Pool::default();
        pool.add(&best(10, 5), 5, None);
        pool.add(&best(20, 4), 5, None);
        pool.add(&best(30, 4), 4, None);
        pool.add(&best(15, 5), 5, None);
        assert_eq!(durations(&pool), [20, 30]);
        assert_eq!(pool.best(4).map(|best| best.duration), Some(20));
        assert!(pool.best(3).is_none());
    }

    /// What changes of a state make of random networks, with limits on runs and with nodes that overwrite what others read.
    #[test]
    fn what_is_made_of_two_sequences_is_a_sequence() {
        let mut rng = Rng::new(0, 0);
        for round in 0..200 {
            let count = 8 + rng.below(16);
            let op = |id: usize, rng: &mut Rng| {
                let reads: Vec<usize> = (0..2).filter(|_| id > 0).map(|_| rng.below(id)).collect();
                (1 + rng.below(9) as u64, rng.below(50) as u64, reads)
            };
            let ops: Vec<_> = (0..count).map(|id| op(id, &mut rng)).collect();
            let mut problem = paper(&ops);
            if round % 2 == 0 {
                problem = in_free_order(problem);
            }
            problem.max_computes = (round % 3 == 0).then_some(2);
            let (before, after) = (OpId::new(rng.below(count / 2)), OpId::new(count - 1));
            problem.anti_dependences.push(AntiDependence { before, after });
            let dag = Dag::of(&problem, &Structure::of(&problem));
            let walk = |rng: &mut Rng| {
                let mut state = Sequence::new(&dag, 60);
                for _ in 0..100 {
                    crate::anneal::propose(&mut state, &mut Vec::new(), rng);
                    if dag.is_free() {
                        crate::anneal::reorder(&mut state, &mut Vec::new(), rng);
                    }
                }
                state.nodes()
            };
            let (outer, inner) = (walk(&mut rng), walk(&mut rng));
            let made = relink(&dag, &outer, &inner, &mut rng);
            let mut runs: TiVec<NodeId, usize> = ti_vec![0; dag.len()];
            let mut order = Vec::new();
            for &node in &made {
                assert!(dag.predecessors(node).iter().all(|&other| runs[other] > 0));
                assert!(dag.anti_successors(node).iter().all(|&other| runs[other] == 0));
                if runs[node] == 0 {
                    order.push(node);
                }
                runs[node] += 1;
            }
            assert!(
                dag.nodes()
                    .all(|node| (1..=dag.max_computes(node)).contains(&runs[node]))
            );
            assert!(dag.is_free() || order.is_sorted(), "the order is kept");
        }
    }
}
