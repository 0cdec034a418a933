//! Random tiny problems in which a sum is off as soon as somebody counts in too few bits.

use remat_plan::{
    Accounting, AntiDependence, Objective, OrderMode, Paging, PagingMode, Problem, ProblemOp, StorageId, StorageRole,
    Structure, TensorId, Transfer,
};
use remat_solve::Rng;
use remat_testing::net::{Net, Place, baseline_peak, least_budget, step};

/// The magnitudes of sizes and durations: no number is larger than the last.
pub const MAGNITUDES: [u64; 5] = [1, 1_000, 1_000_000_000, 1_000_000_000_000, 1 << 57];

/// The [`plain`] problem with this number, of which every other one has more: storages without bytes, a deadline, both, or a second memory.
#[must_use]
pub fn problem(number: u64) -> Problem {
    let mut problem = plain(number);
    let mut draw = Draw(Rng::new(number, 0x6d6f_7265));
    let kind = draw.below(8);
    if matches!(kind, 0 | 1) {
        for storage in &mut problem.storages {
            if storage.role != StorageRole::External && draw.chance(0.3) {
                storage.bytes = 0;
            }
        }
        problem.budget = Some(budget(&problem, &mut draw));
    }
    if matches!(kind, 1 | 2) {
        let more = problem.total_duration() as f64 * draw.0.unit() * 0.6;
        problem.deadline = Some(problem.total_duration() + more as u64);
    }
    if kind == 3 && problem.accounting == Accounting::Paper {
        add_pages(&mut problem, &mut draw);
    }
    problem
}

/// A second memory that takes what energy it takes: what [`least_energy`](crate::paging::least_energy) knows the truth of.
fn add_pages(problem: &mut Problem, draw: &mut Draw) {
    let mut way = || Transfer {
        latency_ns: 0,
        bytes_per_s: 1_000_000_000,
        energy_pj: draw.below(4) as u64,
        energy_pj_per_byte: draw.below(4) as u64,
    };
    let (page_out, page_in) = (way(), way());
    problem.paging = Some(Paging {
        mode: PagingMode::Sync,
        capacity: None,
        page_out,
        page_in,
    });
    (problem.order, problem.max_computes) = (OrderMode::Fixed, None);
    problem.objective = Objective::Energy;
    let numbers: Vec<(u64, u64, u64)> = (0..problem.storages.len().max(problem.ops.len()))
        .map(|_| {
            (
                1 + draw.below(8) as u64,
                1 + draw.below(8) as u64,
                draw.below(30) as u64,
            )
        })
        .collect();
    for (storage, &(bytes, ..)) in problem.storages.iter_mut().zip(&numbers) {
        storage.bytes = bytes;
    }
    for (op, &(_, duration, energy)) in problem.ops.iter_mut().zip(&numbers) {
        (op.duration, op.energy_pj) = (duration, energy);
    }
    problem.budget = Some(budget(problem, draw));
}

/// The plain problem with this number: up to 8 ops, in fixed or free order, in the setting of the papers or with everything that models have;
/// sizes of one magnitude or of several, durations likewise; a budget from just below what one op needs to the peak of running
/// every op once. In a third of them some ops never run after others.
#[must_use]
pub fn plain(number: u64) -> Problem {
    let mut draw = Draw(Rng::new(number, 0x7275_7468));
    let accounting = if draw.chance(0.5) {
        Accounting::Paper
    } else {
        Accounting::Runtime
    };
    let order = if draw.chance(0.5) {
        OrderMode::Fixed
    } else {
        OrderMode::Free
    };
    let ops = 3 + draw.below(if order == OrderMode::Fixed { 6 } else { 5 });
    let max_computes = match draw.below(5) {
        0 | 1 => None,
        2 if ops <= 6 => Some(3),
        _ => Some(2),
    };
    let mut net = Net::new().with(|problem| {
        problem.name = format!("tiny {number}");
        problem.accounting = accounting;
        problem.order = order;
        problem.max_computes = max_computes;
    });
    let (sizes, durations) = (draw.scale(), draw.scale());
    let models = accounting == Accounting::Runtime;
    if models {
        let outside = |problem: &mut Problem| problem.storages[StorageId::new(0)].bytes = 1 << 57;
        net = net.input("input").with(outside);
    }
    for _ in 0..ops {
        add_op(&mut net, &mut draw, models, (sizes, durations));
    }
    // Sums stay below 2^63.
    let mut problem = net.done();
    problem.anti_dependences = anti_dependences(&problem, number);
    problem.budget = Some(budget(&problem, &mut draw));
    problem
}

/// Of one magnitude, or of all of them.
#[derive(Clone, Copy)]
enum Scale {
    One(u64),
    Mixed,
}

struct Draw(Rng);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        (self.0.unit() * count as f64) as usize
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    fn scale(&mut self) -> Scale {
        if self.chance(0.3) {
            Scale::Mixed
        } else {
            Scale::One(MAGNITUDES[self.below(MAGNITUDES.len())])
        }
    }

    /// A number of the scale, at least 1, of which few have a common divisor.
    fn number(&mut self, scale: Scale) -> u64 {
        let magnitude = match scale {
            Scale::One(magnitude) => magnitude,
            Scale::Mixed => MAGNITUDES[self.below(MAGNITUDES.len())],
        };
        let eighths = 1 + self.below(8) as u64;
        if magnitude == 1 {
            return eighths;
        }
        let jitter = if self.chance(0.5) {
            self.below(1_000) as u64 % (magnitude / 8)
        } else {
            0
        };
        magnitude / 8 * eighths - jitter
    }
}

fn add_op(net: &mut Net, draw: &mut Draw, models: bool, (sizes, durations): (Scale, Scale)) {
    let name = format!("op{}", net.0.ops.len());
    let count = net.0.tensors.len();
    let mut reads: Vec<TensorId> = (0..1 + draw.below(2))
        .filter(|_| count > 0)
        .map(|_| TensorId::new(count - 1 - draw.below(count.min(5))))
        .collect();
    let base = reads.first().copied();
    reads.sort_unstable();
    reads.dedup();
    let duration = if draw.chance(0.05) { 0 } else { draw.number(durations) };
    let mut op = ProblemOp {
        workspace: if models && draw.chance(0.2) {
            draw.number(sizes)
        } else {
            0
        },
        recomputable: !(models && draw.chance(0.15)),
        ..step(&name, duration, reads)
    };
    if let Some(base) = base.filter(|_| models && draw.chance(0.15)) {
        if draw.chance(0.7) {
            (op.duration, op.workspace) = (0, 0);
        }
        net.add(op, [Place::View(base)]);
        return;
    }
    let results = 0..1 + usize::from(models && draw.chance(0.2));
    let results: Vec<_> = results
        .map(|_| {
            let role = if models && draw.chance(0.15) {
                StorageRole::LiveOut
            } else {
                StorageRole::Transient
            };
            Place::New(role, draw.number(sizes))
        })
        .collect();
    net.add(op, results);
}

/// Pairs of ops that create memory: views that have a part in one are another matter. Drawn by themselves.
fn anti_dependences(problem: &Problem, number: u64) -> Vec<AntiDependence> {
    let mut draw = Draw(Rng::new(number, 0x7761_7221));
    let mut pairs = Vec::new();
    if !draw.chance(0.35) {
        return pairs;
    }
    let structure = Structure::of(problem);
    let creating: Vec<_> = structure
        .scheduled()
        .filter(|&op| !structure.owns(op).is_empty())
        .collect();
    for (place, &after) in creating.iter().enumerate().skip(1) {
        if draw.chance(0.3) {
            let before = creating[draw.below(place)];
            pairs.push(AntiDependence { before, after });
        }
    }
    pairs
}

fn budget(problem: &Problem, draw: &mut Draw) -> u64 {
    let least = least_budget(problem);
    let peak = baseline_peak(problem);
    let room = peak.saturating_sub(least);
    match draw.below(10) {
        0 => least,
        1 => peak.saturating_sub(1),
        2 if draw.chance(0.3) => least.saturating_sub(1),
        _ => least + (draw.0.unit() * room as f64) as u64,
    }
}
