//! The problem as the search with paging sees it.

use remat_plan::{NodeId, Objective, OpId, PagingMode, Problem, StorageId, Structure, ValueId};
use typed_index_collections::TiVec;

use remat_solve::Dag;

/// Time and energy of something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cost {
    /// In the unit of the problem.
    pub(super) time: u64,
    /// In picojoules.
    pub(super) energy: u64,
}

impl Cost {
    /// Saturates.
    pub(super) fn add(&mut self, other: Self) {
        self.time = self.time.saturating_add(other.time);
        self.energy = self.energy.saturating_add(other.energy);
    }
}

/// Nodes and values of a [`Dag`], with what they cost.
pub(super) struct Model<'a> {
    pub(super) problem: &'a Problem,
    pub(super) structure: &'a Structure,
    pub(super) dag: Dag,
    /// Largest memory, in units of the graph.
    pub(super) budget: i32,
    /// For each node a run of it, with the views on what it makes.
    run: TiVec<NodeId, Cost>,
    /// For each value its ways out and back; empty without second memory.
    out: TiVec<ValueId, Cost>,
    back: TiVec<ValueId, Cost>,
}

impl<'a> Model<'a> {
    pub(super) fn of(problem: &'a Problem, structure: &'a Structure) -> Self {
        let dag = Dag::of(problem, structure);
        let mut run: TiVec<NodeId, Cost> = dag.nodes().map(|node| cost_of(problem, dag.op(node))).collect();
        for (view, op) in problem.ops.iter_enumerated() {
            if !structure.is_lazy(view) {
                continue;
            }
            // A view runs with what it looks into.
            let cost = cost_of(problem, view);
            let bases = op.defines.iter().map(|&tensor| problem.tensors[tensor].storage);
            for base in bases {
                let root = problem.tensors[problem.storages[base].root].producer;
                if let Some(node) = root.and_then(|root| dag.node_of(root)) {
                    run[node].add(cost);
                }
            }
        }
        let way = |way: remat_plan::Transfer| -> TiVec<ValueId, Cost> {
            let sizes = dag.all_values().map(|value| problem.storages[dag.storage(value)].bytes);
            let cost = |bytes| Cost {
                time: way.duration(bytes),
                energy: way.energy(bytes),
            };
            sizes.map(cost).collect()
        };
        let (out, back) = problem.paging.map_or((TiVec::new(), TiVec::new()), |paging| {
            (way(paging.page_out), way(paging.page_in))
        });
        Self {
            problem,
            structure,
            budget: dag.scaled_budget(problem.budget),
            run,
            out,
            back,
            dag,
        }
    }

    /// A run of a node, and of all views on what it makes: more than the plan takes where not all of them are read again.
    pub(super) fn run(&self, node: NodeId) -> Cost {
        self.run[node]
    }

    pub(super) fn storage(&self, value: ValueId) -> StorageId {
        self.dag.storage(value)
    }

    /// Moving a value out; nothing without second memory.
    pub(super) fn out(&self, value: ValueId) -> Cost {
        self.out.get(value).copied().unwrap_or_default()
    }

    /// Moving a value back.
    pub(super) fn back(&self, value: ValueId) -> Cost {
        self.back.get(value).copied().unwrap_or_default()
    }

    /// Whether values may move at all.
    pub(super) fn has_second_memory(&self) -> bool {
        self.problem.paging.is_some()
    }

    /// Whether transfers and runs overlap.
    pub(super) fn is_dma(&self) -> bool {
        self.problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma)
    }

    /// Bytes that fit the second memory; `None`: any number.
    pub(super) fn capacity(&self) -> Option<u64> {
        self.problem.paging.and_then(|paging| paging.capacity)
    }

    /// The part of a cost that the objective measures. The peak costs nothing on the way: its budget is what is searched.
    pub(super) fn price(&self, cost: Cost) -> u64 {
        match self.problem.objective {
            Objective::Time | Objective::Peak => cost.time,
            Objective::Energy => cost.energy,
        }
    }

    /// Whether it matters when things happen, beyond the sum of all times.
    pub(super) fn needs_clock(&self) -> bool {
        self.is_dma() && (self.problem.deadline.is_some() || self.problem.objective != Objective::Energy)
    }
}

fn cost_of(problem: &Problem, op: OpId) -> Cost {
    Cost {
        time: problem.ops[op].duration,
        energy: problem.ops[op].energy_pj,
    }
}
