//! Energies and times as whole numbers that solvers in floating point can add.

use remat_checkmate::pages::{Numbers, Pages};
use remat_ortools::scaled::Scaled;
use remat_plan::{NodeId, Objective, PagingMode, Problem, StorageRole, Structure, Transfer};

/// Prices of one run, one transfer out and one transfer back of every node add up to about this.
const RESOLUTION: u64 = 100_000_000;

/// How prices of the program and the objective of plans belong together.
pub(super) struct Prices {
    /// What a price of 1 stands for; 0 where the bound of the program says nothing about the objective.
    unit: u64,
    /// The objective of running every op once, which every plan takes.
    pub(super) base: u64,
    /// Whether first runs alone miss the deadline.
    pub(super) is_late: bool,
}

/// Exact numbers of each node.
struct Exact {
    run: Vec<u64>,
    out: Vec<u64>,
    back: Vec<u64>,
}

impl Prices {
    /// The prices and times of the program, and how to read its bound.
    pub(super) fn of(problem: &Problem, structure: &Structure, instance: &Scaled) -> (Pages, Self) {
        let by_energy = problem.objective == Objective::Energy;
        let measured = exact(problem, structure, instance, by_energy);
        let sum = measured.all().fold(0u64, u64::saturating_add);
        let unit = sum.div_ceil(RESOLUTION).max(1);
        let price = measured.scaled(|value| value / unit);
        let overlaps = problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma);
        let (base, bounds) = match problem.objective {
            Objective::Time => (problem.total_duration(), !overlaps),
            Objective::Energy => (problem.total_energy(), true),
            Objective::Peak => (problem.bottleneck(structure).map_or(0, |most| most.bytes), false),
        };
        let left = problem
            .deadline
            .map(|deadline| deadline.checked_sub(problem.total_duration()));
        let deadline = left.flatten().map(|left| {
            let times = exact(problem, structure, instance, false);
            let unit = times.all().fold(left, u64::max).div_ceil(RESOLUTION).max(1);
            // Times are rounded up: what fits then fits.
            let left = i64::try_from(left / unit).unwrap_or(i64::MAX);
            (times.scaled(|time| time.div_ceil(unit)), left)
        });
        let is_late = left.is_some_and(|left| left.is_none());
        let pages = Pages {
            moves: problem.paging.is_some(),
            price,
            deadline,
        };
        let unit = if bounds { unit } else { 0 };
        (pages, Self { unit, base, is_late })
    }

    /// The bound on the objective that a bound of the program stands for.
    pub(super) fn bound(&self, bound: i64) -> u64 {
        let beyond = u64::try_from(bound).unwrap_or(0).saturating_mul(self.unit);
        self.base.saturating_add(beyond)
    }
}

impl Exact {
    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        self.run.iter().chain(&self.out).chain(&self.back).copied()
    }

    fn scaled(&self, scale: impl Fn(u64) -> u64) -> Numbers {
        let scaled = |values: &[u64]| -> Vec<i64> {
            let number = |&value: &u64| i64::try_from(scale(value)).unwrap_or(i64::MAX);
            values.iter().map(number).collect()
        };
        Numbers {
            run: scaled(&self.run),
            out: scaled(&self.out),
            back: scaled(&self.back),
        }
    }
}

fn exact(problem: &Problem, structure: &Structure, instance: &Scaled, by_energy: bool) -> Exact {
    let nodes = || instance.nodes();
    let run = nodes().map(|node| {
        let op = &problem.ops[instance.op(node)];
        if by_energy { op.energy_pj } else { op.duration }
    });
    let moving = |way: Option<Transfer>| -> Vec<u64> {
        let of = |node: NodeId| {
            let sizes = structure
                .owns(instance.op(node))
                .iter()
                .map(|&storage| &problem.storages[storage]);
            let sizes = sizes.filter(|storage| storage.role == StorageRole::Transient && storage.bytes > 0);
            let Some(way) = way else { return 0 };
            let cost = |bytes| {
                if by_energy {
                    way.energy(bytes)
                } else {
                    way.duration(bytes)
                }
            };
            sizes.map(|storage| cost(storage.bytes)).fold(0, u64::saturating_add)
        };
        nodes().map(of).collect()
    };
    Exact {
        run: run.collect(),
        out: moving(problem.paging.map(|paging| paging.page_out)),
        back: moving(problem.paging.map(|paging| paging.page_in)),
    }
}
