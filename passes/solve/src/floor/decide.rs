//! Whether a set can be reached within a budget.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::graph::{Graph, Set};
use super::nogoods::Nogoods;
use super::reasons::{NEVER, Reason, part_to_blame};

/// Items of the largest sets that are remembered because they fail: larger ones are hardly met again.
const LARGEST_NOGOOD: usize = 16;
/// Sets that are remembered because they can be reached.
const MOST_REACHED: usize = 500_000;

/// What came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It can.
    Holds,
    /// It needs at least so many bytes, more than the budget.
    Needs(u64),
    /// The limit was reached first.
    Open,
}

/// Depth-first search backwards from sets, one goal and budget after the other; what is learned stays.
pub(super) struct Decider<'a> {
    graph: &'a Graph,
    nogoods: Nogoods,
    /// Sets that can be reached, with a budget that is enough and the node that runs last on the way.
    reached: FxHashMap<Set, (u64, usize)>,
    /// What may still be spent.
    effort: u64,
}

/// A set on the way.
struct Frame {
    set: Set,
    /// Nodes whose run may have made the youngest, with what was resident before; the last one is tried.
    options: Vec<(usize, Set)>,
    /// Why the run was none of the other nodes.
    reasons: Vec<Reason>,
    /// Whether the only option leads to a part of the set.
    shrinks: bool,
}

/// What is known of a set at first sight.
enum Sight {
    Reached,
    Fails(Set, u64),
    Leads(Frame),
}

/// What looking at a set costs, in the time of one result of a small one: each result has its own way back.
fn cost(results: u64) -> u64 {
    1 + results + results * results / 8
}

impl<'a> Decider<'a> {
    pub(super) fn new(graph: &'a Graph, effort: u64) -> Self {
        Self {
            graph,
            nogoods: Nogoods::default(),
            reached: FxHashMap::default(),
            effort,
        }
    }

    /// Whether all effort is spent.
    pub(super) fn is_exhausted(&self) -> bool {
        self.effort == 0
    }

    /// Whether a goal can be reached within a budget, as far as so many sets tell.
    pub(super) fn decide(&mut self, goal: &Set, budget: u64, most: u64, go_on: &mut impl FnMut() -> bool) -> Verdict {
        let mut stack: Vec<Frame> = Vec::new();
        let mut set = goal.clone();
        for _ in 0..most {
            if self.is_exhausted() || !go_on() {
                return Verdict::Open;
            }
            self.effort = self.effort.saturating_sub(cost(set.len() as u64));
            let (nogood, bytes) = match self.look_at(set, budget) {
                Sight::Reached => {
                    if self.reached.len() < MOST_REACHED {
                        let last = |frame: &Frame| frame.options.last().map_or(0, |&(node, _)| node);
                        self.reached.extend(stack.into_iter().map(|frame| {
                            let last = last(&frame);
                            (frame.set, (budget, last))
                        }));
                    }
                    return Verdict::Holds;
                }
                Sight::Fails(nogood, bytes) => (nogood, bytes),
                Sight::Leads(frame) => {
                    let Some((_, before)) = frame.options.last() else {
                        return Verdict::Open;
                    };
                    set = before.clone();
                    stack.push(frame);
                    continue;
                }
            };
            match self.go_back(&mut stack, nogood, bytes) {
                Ok(next) => set = next,
                Err(bytes) => return Verdict::Needs(bytes),
            }
        }
        Verdict::Open
    }

    /// Nodes that lead to a set which can be reached, in the order in which they run; `None` where there are more than `most`, or the way is
    /// no longer known.
    pub(super) fn way(&self, goal: &Set, most: usize) -> Option<Vec<usize>> {
        let (mut way, mut set) = (Vec::new(), goal.clone());
        while !set.is_empty() {
            let &(_, node) = self.reached.get(&set)?;
            set = self.graph.before(&set, node).ok()?;
            way.push(node);
            if way.len() > most {
                return None;
            }
        }
        way.reverse();
        Some(way)
    }

    /// From a set that fails because of a part of it, back to one that may be reached in another way, and on to the next set there; or
    /// what the goal needs.
    fn go_back(&mut self, stack: &mut Vec<Frame>, mut nogood: Set, mut bytes: u64) -> Result<Set, u64> {
        while let Some(mut frame) = stack.pop() {
            // The same part may be to blame for the set before.
            if frame.shrinks || nogood.iter().all(|item| frame.set.binary_search(item).is_ok()) {
                continue;
            }
            if let Some((node, _)) = frame.options.pop() {
                frame.reasons.push(Reason::before(self.graph, node, &nogood, bytes));
            }
            if let Some((_, before)) = frame.options.last() {
                let next = before.clone();
                stack.push(frame);
                return Ok(next);
            }
            (nogood, bytes) = self.learn(&frame.set, &frame.reasons);
        }
        Err(bytes)
    }

    fn look_at(&mut self, set: Set, budget: u64) -> Sight {
        if set.is_empty() || self.reached.get(&set).is_some_and(|&(enough, _)| enough <= budget) {
            return Sight::Reached;
        }
        if let Some((nogood, bytes)) = self.nogoods.within(&set, budget) {
            return Sight::Fails(nogood, bytes);
        }
        let graph = self.graph;
        let mut options: Vec<(usize, Set)> = Vec::new();
        let mut reasons = Vec::new();
        for node in graph.makers(&set) {
            let before = match graph.before(&set, node) {
                Ok(before) => before,
                Err(items) => {
                    let bytes = NEVER;
                    reasons.push(Reason { node, items, bytes });
                    continue;
                }
            };
            if graph.at(&before, node) > budget {
                reasons.push(Reason::during(graph, &set, node, budget));
                continue;
            }
            if graph.needs(node).iter().all(|item| set.binary_search(item).is_ok()) {
                // Nothing is needed for it that is not there already: no other way back is better.
                return Sight::Leads(Frame {
                    set,
                    options: vec![(node, before)],
                    reasons: Vec::new(),
                    shrinks: true,
                });
            }
            match self.nogoods.within(&before, budget) {
                Some((nogood, bytes)) => reasons.push(Reason::before(graph, node, &nogood, bytes)),
                None => options.push((node, before)),
            }
        }
        if options.is_empty() {
            let (nogood, bytes) = self.learn(&set, &reasons);
            return Sight::Fails(nogood, bytes);
        }
        // The lightest is tried first.
        options.sort_by_cached_key(|(_, before)| Reverse(graph.weight(before)));
        Sight::Leads(Frame {
            set,
            options,
            reasons,
            shrinks: false,
        })
    }

    fn learn(&mut self, set: &Set, reasons: &[Reason]) -> (Set, u64) {
        let (nogood, bytes) = part_to_blame(self.graph, set, reasons);
        if nogood.len() <= LARGEST_NOGOOD {
            self.nogoods.add(&nogood, bytes);
        }
        (nogood, bytes)
    }
}
