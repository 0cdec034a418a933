//! Sequences of items, and the instances of values that they make.

use remat_plan::{Event, LowerError, Plan, Step, lower_events};

use super::model::Model;

/// What brings values into memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Item {
    /// A node runs.
    Run(u32),
    /// A value comes back.
    Fetch(u32),
}

/// Every node once.
pub(super) fn every_node_once(model: &Model<'_>) -> Vec<Item> {
    (0..model.dag.len() as u32).map(Item::Run).collect()
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
    let mut values = vec![None; model.problem.storages.len()];
    for value in 0..model.dag.value_count() as u32 {
        values[model.storage(value).index()] = Some(value);
    }
    let mut first = 0;
    let mut items = Vec::new();
    for step in &plan.steps {
        match *step {
            Step::Compute(op) | Step::Recompute(op) => {
                let Some(node) = model.dag.node_of(op) else { continue };
                if node > first {
                    return None;
                }
                first += u32::from(node == first);
                items.push(Item::Run(node));
            }
            Step::PageIn(storage) => items.push(Item::Fetch((*values.get(storage.index())?)?)),
            Step::Free(_) | Step::PageOut(_) => {}
        }
    }
    (first as usize == model.dag.len()).then_some(items)
}

/// Which positions of a sequence are first runs.
pub(super) fn first_runs(model: &Model<'_>, items: &[Item]) -> Vec<bool> {
    let mut ran = vec![false; model.dag.len()];
    let is_first = |item: &Item| match *item {
        Item::Run(node) => !std::mem::replace(&mut ran[node as usize], true),
        Item::Fetch(_) => false,
    };
    items.iter().map(is_first).collect()
}

/// From the item that brings a value into memory to its last use before the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instance {
    pub(super) value: u32,
    pub(super) begin: usize,
    /// Position of the last use; `begin` where there is none.
    pub(super) last: usize,
}

/// All instances of a sequence, and the positions that use values.
pub(super) struct Instances {
    /// Of each value, ascending.
    pub(super) of: Vec<Vec<Instance>>,
    /// For each value the positions of the runs that need it, ascending.
    pub(super) uses: Vec<Vec<usize>>,
}

impl Instances {
    pub(super) fn of(model: &Model<'_>, items: &[Item]) -> Self {
        let values = model.dag.value_count();
        let mut found = Self {
            of: vec![Vec::new(); values],
            uses: vec![Vec::new(); values],
        };
        for (position, &item) in items.iter().enumerate() {
            match item {
                Item::Run(node) => {
                    for &value in model.dag.needs(node) {
                        found.uses[value as usize].push(position);
                        if let Some(instance) = found.of[value as usize].last_mut() {
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

    fn begin(&mut self, value: u32, position: usize) {
        self.of[value as usize].push(Instance {
            value,
            begin: position,
            last: position,
        });
    }

    /// The first use of a value at this position or behind it.
    pub(super) fn next_use(&self, value: u32, position: usize) -> Option<usize> {
        let uses = &self.uses[value as usize];
        uses.get(uses.partition_point(|&at| at < position)).copied()
    }

    /// The instance that begins last before a position.
    pub(super) fn before(&self, value: u32, position: usize) -> Option<Instance> {
        let instances = &self.of[value as usize];
        let next = instances.partition_point(|instance| instance.begin < position);
        next.checked_sub(1).map(|index| instances[index])
    }

    /// Whether a value is in memory at a position because something there or behind it needs that instance.
    pub(super) fn is_live(&self, value: u32, position: usize) -> bool {
        self.before(value, position)
            .is_some_and(|instance| instance.last >= position)
    }
}
