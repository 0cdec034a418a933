//! How large the program is, known before it is built: full matrices of a thousand nodes take more memory than most machines have.

use remat_plan::NodeId;
use remat_solve::stages::StageGraph;

use super::Freeing;
use remat_ortools::ModelSize;
use remat_ortools::scaled::Scaled;

/// Larger programs are not built: they would take more than 6 GB.
pub(super) const MAX_TERMS: u64 = 10_000_000;

/// Variables, constraints and terms of the program. Linear in the edges of the graph, but for nodes with many users.
///
/// With frontier-advancing stages `R` and `S` have `T^2` variables together and `FREE` `T - k` for each edge to a node `k`: Table 1 of
/// the Moccasin paper states `O(n^2 + n m)`. `U` are the integers.
pub(super) fn estimate(instance: &Scaled, graph: &StageGraph, freeing: Freeing) -> ModelSize {
    let nodes = instance.len();
    // In how many stages a node may run, and into how many it may be held.
    let stages = |node: usize| nodes - node;
    let held = |node: usize| stages(node) - 1;
    let mut size = ModelSize {
        largest_domain: 2,
        ..ModelSize::default()
    };
    let mut rows = |count: usize, terms: usize| {
        size.constraints += count;
        size.terms = size.terms.saturating_add(terms);
    };
    let mut binaries = 0usize;
    for node in 0..nodes {
        binaries += stages(node) + held(node);
        // Of memory: the first node adds what is held, the others what was there and what the node before frees.
        let freed = node.checked_sub(1).map_or(0, |last| graph.parents(last).len());
        rows(stages(node), stages(node) * (if node == 0 { 2 } else { 3 + freed }));
        rows(0, held(node));
        if instance.workspace(NodeId::new(node)) + instance.kept(NodeId::new(node)) > 0 {
            rows(held(node), 2 * held(node));
        }
        // Cover, and how often.
        let last = instance.last_stage(NodeId::new(node)).map_or(nodes, NodeId::index);
        let late = nodes.saturating_sub(last + 1);
        rows(1 + late, 1 + late);
        if held(node) > instance.max_computes(NodeId::new(node)) as usize - 1 {
            rows(1, held(node));
        }
        // Held only where held or made before, which is not held in the first stage there is.
        if freeing == Freeing::Hazards {
            rows(held(node), (3 * held(node)).saturating_sub(1));
        } else {
            rows(stages(node), stages(node) + 2 * held(node));
        }
        let users = graph.children(node);
        // Runs of later users, over all stages.
        let mut later: usize = users.iter().map(|&user| stages(user)).sum();
        for (rank, &user) in users.iter().enumerate() {
            let runs = stages(user);
            binaries += runs;
            // Operands.
            rows(runs, 3 * runs);
            later -= runs;
            match freeing {
                Freeing::Hazards => {
                    let passed_on = runs - 1;
                    rows(2 * runs, 2 * (2 * runs + passed_on + later));
                }
                Freeing::Packed if rank > 0 => rows(runs, runs * (rank + 2)),
                Freeing::Packed => rows(0, runs),
            }
        }
    }
    let memory: usize = (0..nodes).map(stages).sum();
    ModelSize {
        integers: memory,
        booleans: binaries,
        ..size
    }
}
