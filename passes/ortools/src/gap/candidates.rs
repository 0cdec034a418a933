//! Where nodes may be recomputed.

use std::fmt;

use remat_plan::NodeId;
use typed_index_collections::TiVec;

use crate::scaled::Scaled;

/// For each node the stages in which it may be recomputed, ascending. A stage has the name of the node whose first compute ends it.
pub(super) type Stages = TiVec<NodeId, Vec<NodeId>>;

/// Which recomputes a gap model may use. Stage `s` is the time between the first computes of nodes `s - 1` and `s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Candidates {
    /// `Excess(d)`: those of `Uses(d)` before which the result would otherwise be held, since the use before, while the order
    /// without recomputes exceeds the budget. Few, and often enough for the best plan of `Uses(d)`.
    Excess(u32),
    /// `Uses(1)`: a node in the stages of its users. `Uses(d + 1)`: also where `Uses(d)` recomputes one of its users, so that
    /// chains of up to `d + 1` recomputes in a row are possible.
    Uses(u32),
    /// A node in all stages in which its result can be of use: all plans in stage form.
    AllStages,
}

/// The stage in which a node runs for the sake of another one: that one's, or the last one that it may run in.
fn in_time(instance: &Scaled, node: NodeId, stage: NodeId) -> NodeId {
    instance.last_stage(node).map_or(stage, |last| last.min(stage))
}

impl fmt::Display for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Excess(depth) => write!(f, "excess{depth}"),
            Self::Uses(depth) => write!(f, "use{depth}"),
            Self::AllStages => f.write_str("all stages"),
        }
    }
}

impl Candidates {
    /// For each node the stages in which it may be recomputed, ascending.
    pub(super) fn stages(self, instance: &Scaled, budget: i64) -> Stages {
        match self {
            Self::Excess(depth) => {
                let once: Vec<NodeId> = instance.nodes().collect();
                let memory = instance.memory(&once).unwrap_or_default();
                let excess: Vec<NodeId> = once
                    .into_iter()
                    .filter(|stage| memory[stage.index()] > budget)
                    .collect();
                uses(instance, depth, |from, to| {
                    let next = excess.partition_point(|&stage| stage <= from);
                    excess.get(next).is_some_and(|&stage| stage < to)
                })
            }
            Self::Uses(depth) => uses(instance, depth, |_, _| true),
            Self::AllStages => all_stages(instance),
        }
    }
}

/// The nodes that read a result of a node, ascending.
pub(crate) fn readers(instance: &Scaled, node: NodeId) -> Vec<NodeId> {
    let mut readers: Vec<NodeId> = instance
        .values(node)
        .flat_map(|value| instance.users(value))
        .copied()
        .collect();
    readers.sort_unstable();
    readers.dedup();
    readers
}

/// `gains(from, to)` says whether something is gained by not holding a result between two stages.
fn uses(instance: &Scaled, depth: u32, gains: impl Fn(NodeId, NodeId) -> bool) -> Stages {
    let may_repeat = |node: NodeId| instance.max_computes(node) > 1;
    let readers: TiVec<NodeId, Vec<NodeId>> = instance.nodes().map(|node| readers(instance, node)).collect();
    let is_worth_it = |node: NodeId, stage: NodeId| {
        let used = readers[node].partition_point(|&reader| reader < stage);
        let from = used.checked_sub(1).map_or(node, |last| readers[node][last]);
        gains(from, stage)
    };
    let mut stages: Stages = instance
        .nodes()
        .map(|node| {
            if may_repeat(node) {
                let stages = readers[node].iter().map(|&stage| in_time(instance, node, stage));
                let mut stages: Vec<NodeId> = stages.filter(|&stage| is_worth_it(node, stage)).collect();
                stages.dedup();
                stages
            } else {
                Vec::new()
            }
        })
        .collect();
    for _ in 1..depth {
        let next: Stages = instance
            .nodes()
            .map(|node| {
                let mut here = stages[node].clone();
                if may_repeat(node) {
                    let more = readers[node].iter().flat_map(|&reader| &stages[reader]);
                    let more = more.map(|&stage| in_time(instance, node, stage));
                    here.extend(more.filter(|&stage| is_worth_it(node, stage)));
                    here.sort_unstable();
                    here.dedup();
                }
                here
            })
            .collect();
        if next == stages {
            break;
        }
        stages = next;
    }
    stages
}

/// For each node the last stage in which a run of it can be of use: the last one in which a result of it can be read, or that it may run
/// in; the node itself where nobody reads a result.
pub(crate) fn last_stages(instance: &Scaled) -> TiVec<NodeId, NodeId> {
    let mut last: TiVec<NodeId, NodeId> = instance.nodes().collect();
    for node in instance.nodes().rev() {
        for reader in readers(instance, node) {
            let until = if instance.max_computes(reader) > 1 {
                last[reader]
            } else {
                reader
            };
            last[node] = last[node].max(until);
        }
        last[node] = in_time(instance, node, last[node]);
    }
    last
}

fn all_stages(instance: &Scaled) -> Stages {
    let last = last_stages(instance);
    let stages = |node: NodeId| {
        if instance.max_computes(node) > 1 {
            (node.index() + 1..=last[node].index()).map(NodeId::new).collect()
        } else {
            Vec::new()
        }
    };
    instance.nodes().map(stages).collect()
}

/// Drops recomputes that take that long or longer.
pub(super) fn keep_shorter(stages: &mut Stages, instance: &Scaled, duration: i64) {
    for (node, stages) in stages.iter_mut_enumerated() {
        if instance.duration(node) >= duration {
            stages.clear();
        }
    }
}

/// Adds what a sequence recomputes to the candidates, so that it can be expressed.
pub(super) fn include(stages: &mut Stages, sequence: &[NodeId]) {
    for (stage, node) in recomputes(sequence) {
        if let Err(place) = stages[node].binary_search(&stage) {
            stages[node].insert(place, stage);
        }
    }
}

/// Stage and node of every recompute of a sequence. A second one of a node in one stage is listed like the first.
pub(super) fn recomputes(sequence: &[NodeId]) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    let mut stage = NodeId::new(0);
    sequence.iter().filter_map(move |&node| {
        if node == stage {
            stage = NodeId::new(stage.index() + 1);
            return None;
        }
        Some((stage, node))
    })
}
