//! Free order: where a run may stand, and moves of runs to other places.

use std::ops::RangeInclusive;

use remat_plan::NodeId;

use crate::Rng;
use crate::sequence::EventId;
use crate::state::{Edit, State};

impl State<'_> {
    /// The positions, counted as if the event were not there, to which it may move: it stays between the runs of its node around it and
    /// before the first runs that its node must not follow, a first run behind the first runs of its predecessors, behind all runs of
    /// nodes that must not follow it, and before the first runs of its successors.
    pub(crate) fn window(&self, event: EventId) -> RangeInclusive<usize> {
        let (dag, node) = (self.dag(), self.node_of(event));
        let runs = self.runs(node);
        let index = self.run_index(event);
        let next_run = runs.get(index + 1).map(|&run| self.place_of(run));
        let end = next_run.unwrap_or(self.sequence().len()).min(self.last_place(node));
        if index > 0 {
            return self.place_of(runs[index - 1]) + 1..=end - 1;
        }
        let first_run = |&other: &NodeId| self.place_of(self.runs(other)[0]);
        let last_run = |&other: &NodeId| self.runs(other).last().map_or(0, |&run| self.place_of(run) + 1);
        let behind = dag.predecessors(node).iter().map(|other| first_run(other) + 1);
        let begin = behind.chain(dag.anti_predecessors(node).iter().map(last_run)).max();
        let end = dag.successors(node).iter().map(first_run).fold(end, usize::min);
        begin.unwrap_or(0)..=end - 1
    }
}

/// Moves a run within its window; the change is appended to `log`. No change where the draw offers none.
///
/// Any run goes anywhere, or one near a position above the budget to the other side of that position. A first run that nobody
/// profits from gives its place up to the second.
pub(crate) fn propose_move(state: &mut State<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    if state.excess() > 0 && rng.chance(0.5) {
        across_excess(state, log, rng);
        return;
    }
    let event = state.event_at(rng.below(state.sequence().len()));
    let position = state.place_of(event);
    let window = state.window(event);
    let (first, last) = (*window.start(), *window.end());
    if give_up(state, event, last, log) {
        return;
    }
    let goal = match rng.below(4) {
        0 => first,
        1 => last,
        2 => first + rng.below(last - first + 1),
        _ => {
            let distance = rng.nearby(40.0);
            let goal = if rng.chance(0.5) {
                position.saturating_sub(distance)
            } else {
                position + distance
            };
            goal.clamp(first, last)
        }
    };
    if goal != position {
        log.push(state.move_to(event, goal));
    }
}

/// A first run whose values are not used before its node runs again moves to the second run, which goes. Returns whether it did.
fn give_up(state: &mut State<'_>, event: EventId, last: usize, log: &mut Vec<Edit>) -> bool {
    let node = state.node_of(event);
    let runs = state.runs(node);
    let (&first, Some(&second)) = (&runs[0], runs.get(1)) else {
        return false;
    };
    let used = |value| state.end_of(event, value) != event;
    if first != event || state.dag().values(node).any(used) || last + 1 != state.place_of(second) {
        return false;
    }
    if state.place_of(event) != last {
        log.push(state.move_to(event, last));
    }
    log.push(state.remove(second));
    true
}

/// Moves a run from one side of a position above the budget to the other.
fn across_excess(state: &mut State<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let length = state.sequence().len();
    let mut position = rng.below(length);
    for _ in 0..24 {
        if state.memory()[position] > state.budget() {
            break;
        }
        position = rng.below(length);
    }
    for attempt in 0..8 {
        let near = attempt % 2 == 0;
        let later = rng.chance(0.5);
        let (goals, event) = if later {
            let back = if near {
                rng.nearby(position as f64)
            } else {
                rng.below(position + 1)
            };
            let event = state.event_at(position.saturating_sub(back));
            let window = state.window(event);
            (position..=*window.end(), event)
        } else {
            let ahead = if near {
                rng.nearby((length - position) as f64)
            } else {
                rng.below(length - position)
            };
            let event = state.event_at((position + ahead).min(length - 1));
            let window = state.window(event);
            (*window.start()..=position, event)
        };
        if goals.is_empty() {
            continue;
        }
        let (first, last) = (*goals.start(), *goals.end());
        let goal = match rng.below(3) {
            0 => first,
            1 => last,
            _ => first + rng.below(last - first + 1),
        };
        if goal != state.place_of(event) {
            log.push(state.move_to(event, goal));
            return;
        }
    }
}
