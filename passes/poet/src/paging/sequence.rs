//! Sequences of items, and the instances of values that they make.

use remat_plan::{Event, LowerError, NodeId, Plan, Step, StorageId, ValueId, lower_events};
use typed_index_collections::{TiVec, ti_vec};

use super::model::Model;

/// What brings values into memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Item {
    /// A node runs.
    Run(NodeId),
    /// A value comes back.
    Fetch(ValueId),
}

/// Every node once.
pub(super) fn every_node_once(model: &Model<'_>) -> Vec<Item> {
    model.dag.nodes().map(Item::Run).collect()
}

/// The plan of a sequence.
pub(super) fn lower(model: &Model<'_>, items: &[Item]) -> Result<Plan, LowerError> {
    let event = |item: &Item| match *item {
        Item::Run(node) => Event::Run(model.dag.op(node)),
        Item::Fetch(value) => Event::Fetch(model.storage(value)),
    };
    lower_events(model.problem, model.structure, items.iter().map(event))
}

/// The items of a plan, if its first runs keep the reference order.
pub(super) fn raise(model: &Model<'_>, plan: &Plan) -> Option<Vec<Item>> {
    let mut values: TiVec<StorageId, Option<ValueId>> = ti_vec![None; model.problem.storages.len()];
    for value in model.dag.all_values() {
        values[model.storage(value)] = Some(value);
    }
    let mut first = 0;
    let mut items = Vec::new();
    for step in &plan.steps {
        match *step {
            Step::Compute(op) | Step::Recompute(op) => {
                let Some(node) = model.dag.node_of(op) else { continue };
                if node.index() > first {
                    return None;
                }
                first += usize::from(node.index() == first);
                items.push(Item::Run(node));
            }
            Step::PageIn(storage) => items.push(Item::Fetch((*values.get(storage)?)?)),
            Step::Free(_) | Step::PageOut(_) => {}
        }
    }
    (first == model.dag.len()).then_some(items)
}

/// Which positions of a sequence are first runs.
pub(super) fn first_runs(model: &Model<'_>, items: &[Item]) -> Vec<bool> {
    let mut ran: TiVec<NodeId, bool> = ti_vec![false; model.dag.len()];
    let is_first = |item: &Item| match *item {
        Item::Run(node) => !std::mem::replace(&mut ran[node], true),
        Item::Fetch(_) => false,
    };
    items.iter().map(is_first).collect()
}

/// From the item that brings a value into memory to its last use before the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Residence {
    pub(super) value: ValueId,
    pub(super) begin: usize,
    /// Position of the last use; `begin` where there is none.
    pub(super) last: usize,
}

/// All instances of a sequence, and the positions that use values.
pub(super) struct Instances {
    /// Of each value, ascending.
    pub(super) of: TiVec<ValueId, Vec<Residence>>,
    /// For each value the positions of the runs that need it, ascending.
    pub(super) uses: TiVec<ValueId, Vec<usize>>,
}

impl Instances {
    pub(super) fn of(model: &Model<'_>, items: &[Item]) -> Self {
        let values = model.dag.value_count();
        let mut found = Self {
            of: ti_vec![Vec::new(); values],
            uses: ti_vec![Vec::new(); values],
        };
        for (position, &item) in items.iter().enumerate() {
            match item {
                Item::Run(node) => {
                    for &value in model.dag.needs(node) {
                        found.uses[value].push(position);
                        if let Some(instance) = found.of[value].last_mut() {
                            instance.last = position;
                        }
                    }
                    for value in model.dag.values(node) {
                        found.begin(value, position);
                    }
                }
                Item::Fetch(value) => found.begin(value, position),
            }
        }
        found
    }

    fn begin(&mut self, value: ValueId, position: usize) {
        self.of[value].push(Residence {
            value,
            begin: position,
            last: position,
        });
    }

    /// The first use of a value at this position or behind it.
    pub(super) fn next_use(&self, value: ValueId, position: usize) -> Option<usize> {
        let uses = &self.uses[value];
        uses.get(uses.partition_point(|&at| at < position)).copied()
    }

    /// The instance that begins last before a position.
    pub(super) fn before(&self, value: ValueId, position: usize) -> Option<Residence> {
        let instances = &self.of[value];
        let next = instances.partition_point(|instance| instance.begin < position);
        next.checked_sub(1).map(|index| instances[index])
    }

    /// Whether a value is in memory at a position because something there or behind it needs that instance.
    pub(super) fn is_live(&self, value: ValueId, position: usize) -> bool {
        self.before(value, position)
            .is_some_and(|instance| instance.last >= position)
    }
}
