//! What a sequence takes: memory, time, energy, and space in the second memory.

use remat_plan::{NodeId, Objective, ValueId};
use typed_index_collections::{TiVec, ti_vec};

use super::bus::Bus;
use super::model::{Cost, Model};
use super::sequence::Item;

const NONE: u32 = u32::MAX;

/// The figures of a sequence.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Figures {
    /// What exceeds the budget, summed over all positions, in units of the graph.
    pub(super) excess: i64,
    /// Most memory at a position, in units of the graph.
    pub(super) peak: i32,
    /// The first position that has it.
    pub(super) peak_at: usize,
    /// What exceeds the capacity of the second memory at most, in bytes.
    pub(super) spilled: u64,
    /// Duration, in the unit of the problem.
    pub(super) time: u64,
    /// In picojoules.
    pub(super) energy: u64,
}

impl Figures {
    fn pay(&mut self, cost: Cost) {
        self.time = self.time.saturating_add(cost.time);
        self.energy = self.energy.saturating_add(cost.energy);
    }

    /// Whether all limits hold.
    pub(super) fn keeps_limits(&self, model: &Model<'_>) -> bool {
        self.excess == 0 && self.spilled == 0 && self.late(model) == 0
    }

    /// By how much the deadline is missed.
    pub(super) fn late(&self, model: &Model<'_>) -> u64 {
        let deadline = model.problem.deadline;
        deadline.map_or(0, |deadline| self.time.saturating_sub(deadline))
    }

    /// What the objective measures.
    pub(super) fn objective(&self, model: &Model<'_>) -> u64 {
        match model.problem.objective {
            Objective::Time => self.time,
            Objective::Energy => self.energy,
            Objective::Peak => model.dag.unscaled(self.peak),
        }
    }
}

/// Where a value is while a sequence is walked along.
#[derive(Clone, Copy)]
struct Place {
    begin: u32,
    last: u32,
    last_fetch: u32,
    copied: bool,
    fetched: bool,
    /// When its page-in has ended.
    arrived: u64,
}

const NOWHERE: Place = Place {
    begin: NONE,
    last: NONE,
    last_fetch: NONE,
    copied: false,
    fetched: false,
    arrived: 0,
};

/// Evaluates sequences; keeps its tables from one to the next.
pub(super) struct Evaluator<'a> {
    model: &'a Model<'a>,
    /// Whether time with DMA is told, instead of the sum of all times.
    clocked: bool,
    places: TiVec<ValueId, Place>,
    runs: TiVec<NodeId, u32>,
    /// Changes of memory at each position, and memory itself after [`Self::evaluate`].
    pub(super) memory: Vec<i32>,
    /// Values that leave behind each position, and whether a transfer takes them.
    exits: Vec<(u32, ValueId, bool)>,
    /// Changes of the second memory: at twice the position what comes back, behind it what leaves.
    second: Vec<i64>,
    bus: Bus,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(model: &'a Model<'a>) -> Self {
        Self {
            model,
            clocked: model.needs_clock(),
            places: ti_vec![NOWHERE; model.dag.value_count()],
            runs: ti_vec![0; model.dag.len()],
            memory: Vec::new(),
            exits: Vec::new(),
            second: Vec::new(),
            bus: Bus::default(),
        }
    }

    /// One that tells time with DMA even where nothing depends on it.
    pub(super) fn with_clock(model: &'a Model<'a>) -> Self {
        Self {
            clocked: model.is_dma(),
            ..Self::new(model)
        }
    }

    /// The figures of a sequence; `None` if it is no schedule: something is needed or fetched before it was made, first runs do not
    /// keep the reference order, or a node runs too often or too late.
    pub(super) fn evaluate(&mut self, items: &[Item]) -> Option<Figures> {
        let model = self.model;
        self.reset(items);
        let mut figures = Figures::default();
        // The next first run in reference order.
        let mut next = NodeId::new(0);
        for (position, &item) in items.iter().enumerate() {
            let at = position as u32;
            match item {
                Item::Run(node) => {
                    if !model.dag.may_run_after(node, |other| self.runs[other] > 0) {
                        return None;
                    }
                    for &value in model.dag.needs(node) {
                        let place = &mut self.places[value];
                        if place.begin == NONE {
                            return None;
                        }
                        place.last = at;
                    }
                    let runs = &mut self.runs[node];
                    if *runs == 0 {
                        if node != next {
                            return None;
                        }
                        next = NodeId::new(next.index() + 1);
                        self.memory[position + 1] += model.dag.kept(node);
                    }
                    *runs += 1;
                    if *runs as usize > model.dag.max_computes(node) {
                        return None;
                    }
                    figures.pay(model.run(node));
                    self.memory[position] += model.dag.local(node);
                    self.memory[position + 1] -= model.dag.local(node);
                    for value in model.dag.values(node) {
                        self.begin(value, at, false, &mut figures);
                    }
                }
                Item::Fetch(value) => {
                    if self.places[value].begin == NONE {
                        return None;
                    }
                    self.begin(value, at, true, &mut figures);
                    figures.pay(model.back(value));
                }
            }
        }
        for value in model.dag.all_values() {
            self.close(value, false, &mut figures);
        }
        self.sum_memory(&mut figures);
        self.sum_second(&mut figures);
        if self.clocked {
            figures.time = self.clock(items);
        }
        Some(figures)
    }

    fn reset(&mut self, items: &[Item]) {
        self.places.fill(NOWHERE);
        self.runs.fill(0);
        self.memory.clear();
        self.memory.resize(items.len() + 1, 0);
        self.exits.clear();
        self.second.clear();
        if self.model.capacity().is_some() {
            self.second.resize(2 * items.len() + 2, 0);
        }
        for (position, &item) in items.iter().enumerate() {
            if let Item::Fetch(value) = item {
                self.places[value].last_fetch = position as u32;
            }
        }
    }

    /// An instance of a value begins: the one before it ends.
    fn begin(&mut self, value: ValueId, position: u32, fetched: bool, figures: &mut Figures) {
        self.close(value, fetched, figures);
        let place = &mut self.places[value];
        place.begin = position;
        place.last = position;
        place.fetched = fetched;
    }

    fn close(&mut self, value: ValueId, for_fetch: bool, figures: &mut Figures) {
        let model = self.model;
        let place = &mut self.places[value];
        if place.begin == NONE {
            return;
        }
        // A run counts its results at its own position.
        let from = place.begin as usize + usize::from(!place.fetched);
        let to = place.last as usize + 1;
        let bytes = model.dag.bytes(value);
        self.memory[from] += bytes;
        self.memory[to.max(from)] -= bytes;
        let fetched_later = place.last_fetch != NONE && place.last_fetch > place.last;
        let stays = for_fetch || place.copied && fetched_later;
        let moves = stays && !place.copied;
        if moves {
            figures.pay(model.out(value));
        }
        if !self.second.is_empty() {
            let bytes = i64::try_from(model.problem.storages[model.storage(value)].bytes).unwrap_or(i64::MAX);
            if moves {
                self.second[2 * place.last as usize + 1] += bytes;
            } else if place.copied && !stays {
                self.second[2 * place.begin as usize] -= bytes;
            }
        }
        place.copied = stays;
        if self.clocked {
            self.exits.push((place.last, value, moves));
        }
    }

    fn sum_memory(&mut self, figures: &mut Figures) {
        let budget = self.model.budget;
        let mut resident = 0;
        self.memory.pop();
        for (position, memory) in self.memory.iter_mut().enumerate() {
            resident += *memory;
            *memory = resident;
            if resident > figures.peak {
                figures.peak = resident;
                figures.peak_at = position;
            }
            figures.excess += i64::from(resident.saturating_sub(budget).max(0));
        }
    }

    fn sum_second(&self, figures: &mut Figures) {
        let Some(capacity) = self.model.capacity() else { return };
        let held = self.second.iter().scan(0i64, |held, change| {
            *held += change;
            Some(*held)
        });
        let most = held.max().unwrap_or(0);
        figures.spilled = u64::try_from(most).unwrap_or(0).saturating_sub(capacity);
    }

    /// The duration with DMA.
    fn clock(&mut self, items: &[Item]) -> u64 {
        let model = self.model;
        let storage = |value: ValueId| model.storage(value).index();
        self.exits
            .sort_unstable_by_key(|&(position, value, moves)| (position, moves, storage(value)));
        self.bus.reset();
        let budget = i64::from(model.budget);
        let mut exits = self.exits.iter().copied().peekable();
        for (position, &item) in items.iter().enumerate() {
            match item {
                Item::Run(node) => {
                    let operands = model.dag.needs(node).iter();
                    let arrived = operands.map(|&value| self.places[value].arrived).max();
                    let memory = i64::from(self.memory[position]);
                    self.bus.run(arrived.unwrap_or(0), memory, budget, model.run(node).time);
                }
                Item::Fetch(value) => {
                    let bytes = i64::from(model.dag.bytes(value));
                    self.places[value].arrived = self.bus.back(bytes, model.back(value).time);
                }
            }
            while let Some((_, value, moves)) = exits.next_if(|&(at, ..)| at as usize == position) {
                self.bus.advance(self.places[value].arrived);
                if moves {
                    self.bus.out(i64::from(model.dag.bytes(value)), model.out(value).time);
                }
            }
        }
        self.bus.end()
    }
}
