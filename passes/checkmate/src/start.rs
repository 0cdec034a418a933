//! A sequence of runs as matrices, and as a solution to start from.

use remat_plan::NodeId;
use remat_solve::stages::{Node, StageGraph, StageMatrix, Stages};

use super::Setting;
use super::layout::Layout;
use remat_ortools::program::{Program, Variable};

/// The matrices of a sequence whose first runs follow the reference order: each result is held from its run to its last use. Runs of
/// one stage that do not follow that order are taken as if they did.
pub(super) fn stages_of(graph: &StageGraph, sequence: &[NodeId]) -> Stages {
    let nodes = graph.len();
    let mut retained = StageMatrix::new(nodes);
    let mut made: Vec<Option<usize>> = vec![None; nodes];
    let (mut stage, mut next) = (0, 0);
    while next < sequence.len() {
        let end = sequence[next..]
            .iter()
            .position(|node| node.index() == stage)
            .map_or(sequence.len(), |at| next + at + 1);
        let mut runs: Vec<Node> = sequence[next..end].iter().map(|node| node.index()).collect();
        runs.sort_unstable();
        for node in runs {
            for &parent in graph.parents(node) {
                let held = (0..=stage)
                    .rev()
                    .take_while(|&into| made[parent].is_some_and(|from| from < into));
                for into in held {
                    retained.set(into, parent);
                }
            }
            made[node] = Some(stage);
        }
        (stage, next) = (stage + 1, end);
    }
    Stages::complete(graph, retained)
}

/// The values of all variables for these matrices; `None` where they exceed the budget.
#[must_use]
pub fn values(
    setting: &Setting,
    program: &Program,
    layout: &Layout,
    computed: &StageMatrix,
    retained: &StageMatrix,
) -> Option<Vec<i64>> {
    let graph = &setting.graph;
    let mut values = vec![0; program.cost.len()];
    for stage in 0..graph.len() {
        for node in 0..=stage {
            set(
                &mut values,
                layout.computed(stage, node),
                i64::from(computed.get(stage, node)),
            );
            set(
                &mut values,
                layout.held(stage, node),
                i64::from(retained.get(stage, node)),
            );
        }
        let mut memory: i64 = retained.row(stage).map(|node| setting.bytes(node)).sum();
        for node in 0..=stage {
            let runs = computed.get(stage, node);
            memory += if runs { setting.bytes(node) } else { 0 };
            let variable = layout.memory(stage, node);
            set(&mut values, Some(variable), memory);
            if memory > program.upper[variable as usize] {
                return None;
            }
            for (rank, &parent) in graph.parents(node).iter().enumerate().filter(|_| runs) {
                let later = graph.children(parent).iter().rev().take_while(|&&user| user > node);
                let needed = later.into_iter().any(|&user| computed.get(stage, user));
                if !needed && !retained.get(stage + 1, parent) {
                    set(&mut values, Some(layout.freed(stage, node, rank)), 1);
                    memory -= setting.bytes(parent);
                }
            }
        }
    }
    Some(values)
}

fn set(values: &mut [i64], variable: Option<Variable>, value: i64) {
    if let Some(slot) = variable.and_then(|variable| values.get_mut(variable as usize)) {
        *slot = value;
    }
}
