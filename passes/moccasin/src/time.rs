//! When runs may start: staged events in fixed order, plain positions in free order.

use remat_plan::NodeId;

/// The events of a formulation, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Time {
    /// Section 2.3 of the paper: in stage `s` of `n`, nodes `0..=s` have one event each, in order; node `s` runs first at its own.
    Staged {
        /// Number of nodes.
        nodes: usize,
    },
    /// One event for every run there may be.
    Free {
        /// Number of runs there may be.
        runs: usize,
    },
}
impl Time {
    /// Number of events.
    pub(super) fn events(self) -> i64 {
        let events = match self {
            Self::Staged { nodes } => nodes * (nodes + 1) / 2,
            Self::Free { runs } => runs,
        };
        i64::try_from(events).unwrap_or(i64::MAX)
    }

    /// The event of a node in a stage, in the staged form.
    pub(super) fn event(stage: usize, node: NodeId) -> i64 {
        i64::try_from(stage * (stage + 1) / 2 + node.index()).unwrap_or(i64::MAX)
    }

    /// The events at which the run number `repetition` of a node may start, as closed ranges. In the staged form none is in a stage behind
    /// `last`.
    pub(super) fn starts(self, node: NodeId, repetition: u32, last: Option<NodeId>) -> Vec<(i64, i64)> {
        match self {
            Self::Staged { .. } if repetition == 0 => {
                let event = Self::event(node.index(), node);
                vec![(event, event)]
            }
            Self::Staged { nodes } => {
                // For the last node no stage is left; a domain must not be empty, and order keeps the interval from this one.
                let end = last.map_or(nodes, |last| last.index() + 1);
                let stages = (node.index() + 1).min(nodes - 1)..end;
                stages
                    .map(|stage| Self::event(stage, node))
                    .map(|event| (event, event))
                    .collect()
            }
            Self::Free { .. } => vec![(0, self.events() - 1)],
        }
    }
}
