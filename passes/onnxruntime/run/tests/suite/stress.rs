//! Plans no solver would choose: most ops are run again before each use of their results, some for nothing, in any order
//! that the graph allows. They meet no budget, but the checker accepts them, and the rewritten model computes the same bits.

use std::path::{Path, PathBuf};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use remat::plan::{OpId, OrderMode, Problem, Structure, lower_sequence};
use remat::{Model, Solution};
use remat_onnxruntime_run::{OptimizationLevel, Output, optimize};

use crate::common::{Facts, WrittenFor, assert_same, models, original, runtime};
use crate::measure::{child_program, runner};

/// A sequence is at most so many times as long as the list of ops.
const LONGEST: usize = 4;

/// A number below `count`.
fn below(random: &mut SplitMix64, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}

/// A random sequence of scheduled ops that makes what it needs again and again.
struct Stress<'a> {
    problem: &'a Problem,
    structure: &'a Structure,
    random: SplitMix64,
    sequence: Vec<OpId>,
}

impl Stress<'_> {
    /// First runs in a random topological order, or in that of the graph.
    fn order(&mut self, any: bool) -> Vec<OpId> {
        let ops = &self.problem.ops;
        let mut left: Vec<OpId> = ops.keys().collect();
        let mut ran = vec![false; ops.len()];
        let mut order = Vec::with_capacity(ops.len());
        while !left.is_empty() {
            let ready = |&place: &usize| {
                let producers = ops[left[place]]
                    .reads
                    .iter()
                    .filter_map(|&t| self.problem.tensors[t].producer);
                producers.into_iter().all(|op| ran[op.index()])
            };
            let ready: Vec<usize> = (0..left.len()).filter(ready).collect();
            let place = ready[if any { below(&mut self.random, ready.len()) } else { 0 }];
            let op = left.remove(place);
            ran[op.index()] = true;
            order.push(op);
        }
        order.retain(|&op| !self.structure.is_lazy(op));
        order
    }

    /// Runs `op` after some of what it needs, at most `depth` levels back, was run again.
    fn run(&mut self, op: OpId, depth: usize) {
        let structure = self.structure;
        for &storage in structure.needs(op) {
            let Some(producer) = self.problem.tensors[self.problem.storages[storage].root].producer else {
                continue;
            };
            let may = self.problem.ops[producer].recomputable && depth > 0;
            if may && self.sequence.len() < LONGEST * self.problem.ops.len() && below(&mut self.random, 100) < 70 {
                self.run(producer, depth - 1);
            }
        }
        self.sequence.push(op);
    }

    fn sequence(mut self, any_order: bool) -> Vec<OpId> {
        for op in self.order(any_order) {
            let depth = below(&mut self.random, 4);
            self.run(op, depth);
            // One that nobody asked for: what it makes dies at once or replaces what is there.
            let idle = self.sequence[below(&mut self.random, self.sequence.len())];
            if self.problem.ops[idle].recomputable && below(&mut self.random, 100) < 20 {
                self.sequence.push(idle);
            }
        }
        self.sequence
    }
}

/// The plan of a random sequence, checked.
fn stressed(model: &Model, seed: u64, any_order: bool) -> Solution {
    let problem = model.problem().clone();
    let structure = Structure::of(&problem);
    let stress = Stress {
        problem: &problem,
        structure: &structure,
        random: SplitMix64::seed_from_u64(seed),
        sequence: Vec::new(),
    };
    let plan = lower_sequence(&problem, &structure, stress.sequence(any_order)).expect("the order is topological");
    let replay = remat::verify::replay(&problem, &plan).unwrap_or_else(|rejection| panic!("seed {seed}: {rejection}"));
    Solution::of(model, problem, plan, replay, None)
}

/// What plans are made for, what is written, and the outputs to compare with.
struct Subject {
    path: PathBuf,
    target: WrittenFor,
    before: Vec<Vec<Output>>,
}

/// The model itself, for any runtime; and what the runtime fuses it to, for the runtime.
fn subjects(path: &Path, folder: &Path, facts: &Facts) -> [Subject; 2] {
    let runtime = runtime();
    let own = Subject {
        path: path.to_owned(),
        target: WrittenFor::AnyRuntime,
        before: original(runtime, path, &facts.options),
    };
    let fused = folder.join("fused.onnx");
    let level = OptimizationLevel::Extended;
    optimize(&runner(&child_program(), runtime.library()), path, level, &fused)
        .unwrap_or_else(|error| panic!("{error}"));
    // Under every optimization the bits are those of the model itself.
    let mut before = original(runtime, &fused, &facts.options);
    before[1] = original(runtime, path, &facts.options).swap_remove(1);
    let fused = Subject {
        path: fused,
        target: WrittenFor::OnnxRuntime,
        before,
    };
    [own, fused]
}

/// Checks so many random plans per model; returns how many recomputes all of them have.
fn assert_stress(folder: &str, plans: u64) -> usize {
    let mut recomputes = 0;
    for path in models(folder) {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let out = temporary.path().join("out.onnx");
        let mut facts = Facts::of(&path);
        for subject in subjects(&path, temporary.path(), &facts) {
            for seed in 0..plans {
                let what = format!("{} with seed {seed} for {:?}", path.display(), subject.target);
                let any_order = seed % 2 == 1;
                facts.options.order = Some(if any_order { OrderMode::Free } else { OrderMode::Fixed });
                let model =
                    Model::open(&subject.path, &facts.options).unwrap_or_else(|error| panic!("{what}: {error}"));
                let solution = stressed(&model, seed, any_order);
                recomputes += solution.plan.recomputes();
                let saved = subject.target.save(&model, &solution, &out);
                saved.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_same(runtime(), &subject.before, &out, &facts.options, &what);
            }
        }
    }
    recomputes
}

pub(crate) fn features_survive_random_recomputes_in_random_order() {
    let recomputes = assert_stress("test/models/features", 12);
    assert!(recomputes > 3_000, "only {recomputes} recomputes");
}

pub(crate) fn training_steps_survive_random_recomputes_in_random_order() {
    let recomputes = assert_stress("test/models", 4);
    assert!(recomputes > 700, "only {recomputes} recomputes");
}

pub(crate) fn larger_models_survive_random_recomputes() {
    assert_stress("../shared/models", 1);
}
