//! What the paper's figures say of the memory of a plan in stage form.

use super::{Node, StageGraph, Stages};

impl Stages {
    /// The peak in bytes of the schedule that the paper's artifact builds from `R` and `S`: what the figures of the paper count.
    ///
    /// At the start of a stage what is held is freed if the stage neither uses it nor passes it on. After each run its operands
    /// and its result are freed if nothing later in the stage uses them and the next stage does not retain them. A result that is
    /// passed on unused takes memory for the whole stage; a plan that was lowered gives such a result up after its last use.
    #[must_use]
    pub fn schedule_peak(&self, graph: &StageGraph) -> u64 {
        let count = graph.len();
        let mut live = vec![false; count];
        let mut held: Vec<Node> = Vec::new();
        let mut last_use: Vec<Option<Node>> = vec![None; count];
        let (mut memory, mut peak) = (0u64, 0u64);
        for stage in 0..count {
            let runs: Vec<Node> = self.computed().row(stage).collect();
            for &node in &runs {
                last_use[node].get_or_insert(node);
                for &parent in graph.parents(node) {
                    last_use[parent] = Some(node);
                }
            }
            let passed_on = |node: Node| self.retained().get(stage + 1, node);
            held.retain(|&node| {
                let stays = passed_on(node) || last_use[node].is_some();
                if !stays {
                    live[node] = false;
                    memory -= graph.bytes(node);
                }
                stays
            });
            for &node in &runs {
                if !std::mem::replace(&mut live[node], true) {
                    memory = memory.saturating_add(graph.bytes(node));
                    held.push(node);
                }
                let first = node == stage;
                let duplicate = if first { 0 } else { graph.kept(node) };
                memory = memory.saturating_add(if first { graph.kept(node) } else { 0 });
                peak = peak.max(memory.saturating_add(graph.workspace(node)).saturating_add(duplicate));
                for &used in graph.parents(node).iter().chain([&node]) {
                    let over = last_use[used].is_none_or(|last| last <= node) && !passed_on(used);
                    if over && std::mem::replace(&mut live[used], false) {
                        memory -= graph.bytes(used);
                    }
                }
            }
            held.retain(|&node| live[node]);
            for &node in &runs {
                last_use[node] = None;
                for &parent in graph.parents(node) {
                    last_use[parent] = None;
                }
            }
        }
        peak
    }
}
