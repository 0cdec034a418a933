//! Exact time and energy of a plan, for what a solver claims about it.

use remat_plan::{PagingMode, Plan, Problem, Step, StorageId, StorageRole, Structure};
use typed_index_collections::TiVec;

use super::bus::Bus;

/// The figures of a plan with paging steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagedFigures {
    /// When the last run and the last transfer have ended, in the unit of the problem.
    pub time: u64,
    /// Energy of all runs and transfers, in picojoules.
    pub energy: u64,
    /// Bytes in memory at most, without what is on its way out by DMA, for which runs wait where it does not fit the budget.
    pub peak: u64,
    /// Bytes in the second memory at most.
    pub second_peak: u64,
}

/// Adds up a valid plan. What is said here is a claim; the checker derives it by itself.
#[must_use]
pub fn simulate(problem: &Problem, structure: &Structure, plan: &Plan) -> PagedFigures {
    let mut exits: TiVec<StorageId, Vec<(usize, bool)>> = TiVec::from(vec![Vec::new(); problem.storages.len()]);
    for (position, step) in plan.steps.iter().enumerate().rev() {
        if let Step::Free(storage) | Step::PageOut(storage) = *step {
            exits[storage].push((position, matches!(step, Step::PageOut(_))));
        }
    }
    let mut simulator = Simulator {
        problem,
        structure,
        exits,
        copied: TiVec::from(vec![false; problem.storages.len()]),
        present: TiVec::from(vec![false; problem.storages.len()]),
        arrived: TiVec::from(vec![0; problem.storages.len()]),
        resident: 0,
        bus: Bus::default(),
        energy: 0,
        peak: 0,
        second: 0,
        second_peak: 0,
    };
    for (position, &step) in plan.steps.iter().enumerate() {
        simulator.step(position, step);
    }
    PagedFigures {
        time: simulator.bus.end(),
        energy: simulator.energy,
        peak: u64::try_from(simulator.peak).unwrap_or(0),
        second_peak: u64::try_from(simulator.second_peak).unwrap_or(0),
    }
}

struct Simulator<'a> {
    problem: &'a Problem,
    structure: &'a Structure,
    /// For each storage the steps that take it out of memory, the last one first, and whether they page it out.
    exits: TiVec<StorageId, Vec<(usize, bool)>>,
    copied: TiVec<StorageId, bool>,
    present: TiVec<StorageId, bool>,
    arrived: TiVec<StorageId, u64>,
    /// Bytes of what is in memory or has been let in.
    resident: i64,
    bus: Bus,
    energy: u64,
    peak: i64,
    second: i64,
    second_peak: i64,
}

impl Simulator<'_> {
    fn step(&mut self, position: usize, step: Step) {
        match step {
            Step::Compute(op) | Step::Recompute(op) => {
                let entry = &self.problem.ops[op];
                let operands = entry.reads.iter().map(|&tensor| self.problem.tensors[tensor].storage);
                let arrived = operands.map(|storage| self.arrived[storage]).max().unwrap_or(0);
                let counted = |storage: &&StorageId| self.problem.storages[**storage].role != StorageRole::External;
                let created = self.structure.owns(op).iter().filter(counted);
                let takes: i64 = created.map(|&storage| self.bytes(storage)).sum();
                let workspace = i64::try_from(entry.workspace).unwrap_or(i64::MAX);
                let memory = self.resident.saturating_add(takes).saturating_add(workspace);
                let budget = self
                    .problem
                    .budget
                    .map_or(i64::MAX, |budget| i64::try_from(budget).unwrap_or(i64::MAX));
                self.peak = self.peak.max(memory);
                self.bus.run(arrived, memory, budget, entry.duration);
                self.energy = self.energy.saturating_add(entry.energy_pj);
                for &storage in self.structure.owns(op) {
                    let counts = self.problem.storages[storage].role != StorageRole::External;
                    if counts && !std::mem::replace(&mut self.present[storage], true) {
                        self.resident += self.bytes(storage);
                        self.come_back(position, storage);
                    }
                }
            }
            Step::Free(storage) => self.leave(storage),
            Step::PageOut(storage) => {
                self.leave(storage);
                let moves = !std::mem::replace(&mut self.copied[storage], true);
                if let Some(paging) = self.problem.paging.filter(|_| moves) {
                    let bytes = self.problem.storages[storage].bytes;
                    self.bus.out(self.bytes(storage), paging.page_out.duration(bytes));
                    self.energy = self.energy.saturating_add(paging.page_out.energy(bytes));
                    self.second = self.second.saturating_add(self.bytes(storage));
                    self.second_peak = self.second_peak.max(self.second);
                    self.wait_without_dma(paging.mode);
                }
            }
            Step::PageIn(storage) => {
                self.present[storage] = true;
                self.resident += self.bytes(storage);
                self.peak = self.peak.max(self.resident);
                self.come_back(position, storage);
                if let Some(paging) = self.problem.paging {
                    let bytes = self.problem.storages[storage].bytes;
                    self.arrived[storage] = self.bus.back(self.bytes(storage), paging.page_in.duration(bytes));
                    self.energy = self.energy.saturating_add(paging.page_in.energy(bytes));
                    self.wait_without_dma(paging.mode);
                }
            }
        }
    }

    fn bytes(&self, storage: StorageId) -> i64 {
        i64::try_from(self.problem.storages[storage].bytes).unwrap_or(i64::MAX)
    }

    fn leave(&mut self, storage: StorageId) {
        self.bus.advance(self.arrived[storage]);
        if std::mem::replace(&mut self.present[storage], false) {
            self.resident -= self.bytes(storage);
        }
    }

    fn wait_without_dma(&mut self, mode: PagingMode) {
        if mode == PagingMode::Sync {
            self.bus.advance(self.bus.end());
        }
    }

    fn come_back(&mut self, position: usize, storage: StorageId) {
        let exits = &mut self.exits[storage];
        while exits.last().is_some_and(|&(exit, _)| exit <= position) {
            exits.pop();
        }
        let stays = exits.last().is_some_and(|&(_, is_page_out)| is_page_out);
        if self.copied[storage] && !stays {
            self.copied[storage] = false;
            self.second -= self.bytes(storage);
        }
    }
}
