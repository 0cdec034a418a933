//! Free order: where a run may stand, and moves of runs to other places.

use std::ops::RangeInclusive;

use crate::rng::Rng;
use crate::state::{Edit, Event, State};

impl State<'_> {
    /// The positions, counted as if the event were not there, to which it may move: it stays between the runs of its node around it,
    /// a first run behind the first runs of its predecessors and before those of its successors.
    pub(crate) fn window(&self, event: Event) -> RangeInclusive<usize> {
        let (dag, node) = (self.dag(), self.node_of(event));
        let runs = self.runs(node);
        let index = self.run_index(event);
        let next_run = runs.get(index + 1).map(|&run| self.position_of(run));
        let end = next_run.unwrap_or(self.sequence().len());
        if index > 0 {
            return self.position_of(runs[index - 1]) + 1..=end - 1;
        }
        let first_run = |&other: &u32| self.position_of(self.runs(other)[0]);
        let begin = dag.predecessors(node).iter().map(|other| first_run(other) + 1).max();
        let end = dag.successors(node).iter().map(first_run).fold(end, usize::min);
        begin.unwrap_or(0)..=end - 1
    }
}

/// Moves a random run within its window; the change is appended to `log`. No change where the draw offers none.
pub(crate) fn propose_move(state: &mut State<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let event = state.event_at(rng.below(state.sequence().len()));
    let position = state.position_of(event);
    let window = state.window(event);
    let (first, last) = (*window.start(), *window.end());
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
