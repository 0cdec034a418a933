//! What the moves of the local search cost, in both layouts of a sequence, and what a search of so many steps costs.
//!
//! `cargo bench -p remat-solve --features bench`. Figures of one run compare with each other; those of two runs only on an idle machine.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use remat_plan::{
    Accounting, Objective, OpId, OrderMode, Problem, ProblemOp, ProblemStorage, ProblemTensor, StorageId, StorageRole,
    Structure, TensorId, baseline,
};
use remat_solve::bench::{Layout, Subject};
use remat_solve::{Rng, Search, SolveControl, Solver, measure};

const SIZES: [usize; 3] = [100, 1_000, 10_000];
/// Steps of a search; on the largest graph ten times as many, less than one per node would tell nothing.
const STEPS: u64 = 20_000;

/// A training step: ops that read one or two of the twenty before them, in the second half also what their mirror in the first made.
fn training_step(ops: usize, order: OrderMode) -> Problem {
    let mut rng = Rng::new(ops as u64, 0);
    let mut below = |count: usize| (rng.unit() * count as f64) as usize;
    let op = |id: usize| {
        let mut reads: Vec<usize> = (0..2)
            .filter(|_| id > 0)
            .map(|_| id - 1 - below(id.min(20)))
            .chain((2 * id > ops).then(|| ops - id))
            .collect();
        reads.sort_unstable();
        reads.dedup();
        ProblemOp {
            name: format!("op{id}"),
            duration: 1 + below(100) as u64,
            energy_pj: 0,
            workspace: 0,
            recomputable: true,
            reads: reads.into_iter().map(TensorId::new).collect(),
            defines: vec![TensorId::new(id)],
        }
    };
    let tensor = |id| ProblemTensor {
        name: format!("t{id}"),
        storage: StorageId::new(id),
        producer: Some(OpId::new(id)),
    };
    let storage = |id| ProblemStorage {
        root: TensorId::new(id),
        bytes: 1 + (id as u64 * 7919) % 100,
        role: StorageRole::Transient,
    };
    let mut problem = Problem {
        name: "training step".to_owned(),
        accounting: Accounting::Paper,
        order,
        max_computes: None,
        budget: None,
        paging: None,
        objective: Objective::Time,
        deadline: None,
        ops: (0..ops).map(op).collect(),
        tensors: (0..ops).map(tensor).collect(),
        storages: (0..ops).map(storage).collect(),
        anti_dependences: Vec::new(),
    };
    let peak = measure(&problem, &Structure::of(&problem), &baseline(&problem)).peak;
    problem.budget = Some(peak * 4 / 5);
    problem
}

fn moves(criterion: &mut Criterion) {
    for (name, layout) in [("dense", Layout::Dense), ("gapped", Layout::Gapped)] {
        let mut group = criterion.benchmark_group(name);
        group.warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1)).sample_size(20);
        for size in SIZES {
            let subject = Subject::of(&training_step(size, OrderMode::Free));
            let mut driver = subject.driver(layout);
            // Nodes all over the graph, none more often than others.
            let mut turn = 0;
            let mut next = || {
                turn = (turn + 7919) % size;
                turn
            };
            group.bench_function(BenchmarkId::new("build", size), |b| b.iter(|| driver.load()));
            group.bench_function(BenchmarkId::new("move and undo", size), |b| {
                b.iter(|| black_box(driver.relocate(next())));
            });
            group.bench_function(BenchmarkId::new("insert and remove", size), |b| {
                b.iter(|| black_box(driver.insert(next())));
            });
            driver.repair();
            group.bench_function(BenchmarkId::new("propose and undo", size), |b| {
                b.iter(|| black_box(driver.propose()));
            });
        }
        group.finish();
    }
}

fn search(criterion: &mut Criterion) {
    for (name, order) in [("fixed order", OrderMode::Fixed), ("free order", OrderMode::Free)] {
        let mut group = criterion.benchmark_group(name);
        group.warm_up_time(Duration::from_millis(1)).sample_size(10);
        for size in SIZES {
            let problem = training_step(size, order);
            let steps = if size > 1_000 { 10 * STEPS } else { STEPS };
            group.bench_function(BenchmarkId::new("search", size), |b| {
                b.iter(|| {
                    Search
                        .solve(&problem, &SolveControl::new().step_limit(steps))
                        .certificate
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, moves, search);
criterion_main!(benches);
