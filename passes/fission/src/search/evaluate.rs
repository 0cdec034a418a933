//! What a tiling takes: costs of the tiled graph, and the memory of its reference order.

use std::borrow::Borrow;

use remat_ir::{Graph, OpId, StorageId, TensorId};
use typed_index_collections::TiVec;

use super::costs::{Cost, Costs};
use super::options::more_loaded;
use super::sketch::{Sketch, SketchOp};
use crate::forms::Placed;

/// What a tiled graph takes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Score {
    /// Bytes.
    pub(super) peak: u64,
    /// The most bytes that an op needs by itself: its operands, its results and its workspace. No plan goes below that.
    pub(super) need: u64,
    /// Nanoseconds.
    pub(super) time: u64,
    /// By op of the graph before tiling: the most bytes while it or a part of it runs.
    pub(super) levels: Vec<u64>,
    /// A norm of the levels that is close to the largest one but falls with every level that falls, so that plateaus do not stop the search.
    pub(super) norm: f64,
}

/// The larger, the closer to the largest level.
const NORM: i32 = 20;

impl Score {
    /// What the search makes small: memory, and `weight` times the share of time beyond that of the original graph.
    pub(super) fn objective(&self, base: u64, weight: f64) -> f64 {
        let overhead = self.time as f64 / base.max(1) as f64 - 1.0;
        self.norm * (1.0 + weight * overhead.max(0.0))
    }
}

/// Estimates a graph whose ops come from those of another one, in its order; `None` where a size is not known.
pub(super) fn score(graph: &Graph, origin: &TiVec<OpId, OpId>, ops: usize, costs: &mut Costs<'_>) -> Option<Score> {
    let (sketch, numbers) = Sketch::of(graph, origin, 0, costs, None)?;
    let mut whole = Whole::default();
    whole.add(&sketch, std::iter::empty());
    let outputs = graph.outputs.iter();
    whole.outputs.extend(outputs.filter_map(|&output| numbers[output]));
    whole.score(ops, costs.op_bytes)
}

/// A written graph, sketch by sketch. `S` holds a sketch.
pub(super) struct Whole<S> {
    sketches: Vec<Placement<S>>,
    /// What of earlier sketches is there before one, one sketch behind the other.
    given: Vec<TensorId>,
    /// By tensor: its storage, where a run makes that.
    storages: TiVec<TensorId, Option<StorageId>>,
    /// By storage: its bytes, and the op that makes it.
    made: TiVec<StorageId, (u64, usize)>,
    ops: usize,
    /// The outputs of the graph that ops make.
    pub(super) outputs: Vec<TensorId>,
}

/// A sketch, and where the numbers of what is there before and of its results begin.
struct Placement<S> {
    sketch: S,
    given: usize,
    tensors: usize,
}

impl<S> Default for Whole<S> {
    fn default() -> Self {
        Self {
            sketches: Vec::new(),
            given: Vec::new(),
            storages: TiVec::new(),
            made: TiVec::new(),
            ops: 0,
            outputs: Vec::new(),
        }
    }
}

/// What is read of a written graph.
struct Uses {
    /// By tensor: how often it is read.
    reads: TiVec<TensorId, u32>,
    is_output: TiVec<TensorId, bool>,
    /// By storage: one more than the last op that reads it, 0 if none does; and whether it has an output.
    last: TiVec<StorageId, usize>,
    stays: TiVec<StorageId, bool>,
}

impl<S: Borrow<Sketch>> Whole<S> {
    /// Adds ops behind all others; `given` are the tensors that are there before, by their numbers in the whole.
    pub(super) fn add(&mut self, sketch: S, given: impl Iterator<Item = TensorId>) {
        let own = sketch.borrow();
        let before = self.given.len();
        self.given.extend(given);
        let (tensors, storages) = (self.storages.len(), self.made.len());
        let made = own.storages.iter().skip(own.given);
        for &storage in made {
            let storage = storage.and_then(|storage| match self.given.get(before + storage.index()) {
                Some(&given) => self.storages[given],
                None => Some(StorageId::new(storages + storage.index() - own.given)),
            });
            self.storages.push(storage);
        }
        let ops = self.ops;
        self.made.extend(own.made.iter().map(|&(bytes, op)| (bytes, ops + op)));
        self.ops += own.ops.len();
        self.sketches.push(Placement {
            sketch,
            given: before,
            tensors,
        });
    }

    /// The number of a tensor of a sketch in the whole.
    fn number(&self, placement: &Placement<S>, tensor: TensorId) -> TensorId {
        let (own, given) = (tensor.index(), placement.sketch.borrow().given);
        match own.checked_sub(given) {
            Some(made) => TensorId::new(placement.tensors + made),
            None => self.given[placement.given + own],
        }
    }

    /// The same of the sketch that was added last.
    pub(super) fn number_of_last(&self, tensor: TensorId) -> TensorId {
        let last = self.sketches.last();
        last.map_or(tensor, |placement| self.number(placement, tensor))
    }

    /// Every op in order with its sketch.
    fn ops(&self) -> impl Iterator<Item = (&Placement<S>, &SketchOp)> {
        let placements = self.sketches.iter();
        placements.flat_map(|placement| placement.sketch.borrow().ops.iter().map(move |op| (placement, op)))
    }

    /// What the forms of the ops depend on.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let placed = |(placement, op): (&Placement<S>, &SketchOp)| {
            let number = |&tensor: &TensorId| self.number(placement, tensor);
            Some(Placed {
                facts: op.facts?,
                reads: op.reads.iter().map(|read| read.as_ref().map(number)).collect(),
                result: op.results.first().map(number),
            })
        };
        self.ops().filter_map(placed).collect()
    }

    pub(super) fn tensors(&self) -> usize {
        self.storages.len()
    }

    fn uses(&self) -> Uses {
        let tensors = self.storages.len();
        let mut uses = Uses {
            reads: TiVec::from(vec![0; tensors]),
            is_output: TiVec::from(vec![false; tensors]),
            last: TiVec::from(vec![0; self.made.len()]),
            stays: TiVec::from(vec![false; self.made.len()]),
        };
        for (place, (placement, op)) in self.ops().enumerate() {
            for &read in op.reads.iter().flatten() {
                let read = self.number(placement, read);
                uses.reads[read] += 1;
                if let Some(storage) = self.storages[read] {
                    uses.last[storage] = place + 1;
                }
            }
        }
        for &output in &self.outputs {
            uses.is_output[output] = true;
            if let Some(storage) = self.storages[output] {
                uses.stays[storage] = true;
            }
        }
        uses
    }

    /// By storage: the one that it becomes part of where kernels write over operands, as `share_overwritten` has it.
    fn shared(&self, uses: &mut Uses) -> TiVec<StorageId, StorageId> {
        let mut is_chain: TiVec<StorageId, bool> = TiVec::from(vec![true; self.made.len()]);
        for (tensor, storage) in self.storages.iter_enumerated() {
            if let Some(storage) = *storage {
                is_chain[storage] &= uses.reads[tensor] == 1 && !uses.is_output[tensor];
            }
        }
        let mut part_of: TiVec<StorageId, StorageId> = self.made.keys().collect();
        for (placement, op) in self.ops() {
            let Some((operand, result)) = op.overwritten else {
                continue;
            };
            let [operand, result] = [operand, result].map(|tensor| self.number(placement, tensor));
            let (Some(storage), Some(old)) = (self.storages[operand], self.storages[result]) else {
                continue;
            };
            let storage = part_of[storage];
            if is_chain[storage] && uses.reads[result] > 0 && !uses.is_output[result] {
                is_chain[storage] = is_chain[old];
                part_of[old] = storage;
                uses.last[storage] = uses.last[storage].max(uses.last[old]);
                uses.stays[storage] |= uses.stays[old];
            }
        }
        part_of
    }

    /// Estimates the whole, of ops that are there for `ops` ones, each more of which takes `op_bytes` all the time; `None` where sizes are too large.
    ///
    /// A result has memory from its op to the last op that reads it or a view of it, and outputs and what nobody reads to the end: what replaying
    /// the reference order gives, in one pass.
    pub(super) fn score(&self, ops: usize, op_bytes: u64) -> Option<Score> {
        let mut uses = self.uses();
        let part_of = self.shared(&mut uses);
        let (mut made, mut freed) = (vec![0u64; self.ops], vec![0u64; self.ops]);
        for (storage, &(bytes, op)) in self.made.iter_enumerated().filter(|&(id, _)| part_of[id] == id) {
            made[op] = made[op].checked_add(bytes)?;
            if let Some(last) = uses.last[storage].checked_sub(1).filter(|_| !uses.stays[storage]) {
                freed[last] = freed[last].checked_add(bytes)?;
            }
        }
        let added = u64::try_from(self.ops.saturating_sub(ops)).ok()?;
        let mut now = more_loaded(added.saturating_mul(op_bytes));
        let (mut peak, mut time, mut need) = (0u64, 0u64, 0u64);
        let mut touched: Vec<StorageId> = Vec::new();
        let mut levels = vec![0; ops];
        for (place, (placement, op)) in self.ops().enumerate() {
            let Cost { time: own, workspace } = op.cost;
            now = now.checked_add(made[place])?;
            let during = now.saturating_add(workspace);
            now -= freed[place];
            touched.clear();
            let both = op.reads.iter().flatten().chain(&op.results);
            let storages = both.filter_map(|&tensor| self.storages[self.number(placement, tensor)]);
            touched.extend(storages.map(|storage| part_of[storage]));
            touched.sort_unstable();
            touched.dedup();
            let bytes = touched.iter().map(|&storage| self.made[storage].0);
            need = need.max(bytes.fold(workspace, u64::saturating_add));
            time = time.saturating_add(own);
            peak = peak.max(during);
            let level: &mut u64 = &mut levels[op.origin.index()];
            *level = (*level).max(during);
        }
        let share = |level: u64| level as f64 / peak.max(1) as f64;
        let sum: f64 = levels.iter().map(|&level| share(level).powi(NORM)).sum();
        Some(Score {
            peak,
            need,
            time,
            levels,
            norm: peak.max(1) as f64 * sum.powf(1.0 / f64::from(NORM)),
        })
    }
}

#[cfg(test)]
mod tests {
    use remat_cost::{Device, ProblemOptions, analytic, no_bodies, problem};
    use remat_ir::{GraphBuilder, OpSpec, ResultSpec, ValueType};
    use remat_operators::share_overwritten;
    use remat_plan::baseline;
    use remat_verify::replay;

    use super::*;

    /// A chain with a skip, a view and an op that is not read.
    fn graph() -> Graph {
        let ty = |rows: u64| ValueType::tensor(remat_ir::ElementType::Float32, &[1, 8, rows, 16]);
        let mut builder = GraphBuilder::new("g".to_owned());
        let input = builder.input("x".to_owned(), ty(32)).unwrap();
        let mut made = vec![input];
        let rows = [32, 32, 16, 16, 32, 32];
        for (place, rows) in rows.into_iter().enumerate() {
            let mut spec = OpSpec::new(format!("op{place}"), if place % 2 == 0 { "Abs" } else { "Add" });
            let previous = *made.last().unwrap();
            spec.inputs = vec![Some(previous)];
            if place == 5 {
                spec.inputs.push(Some(made[1]));
            }
            let placement = if place == 3 {
                remat_ir::Placement::ViewOf(previous)
            } else {
                remat_ir::Placement::New
            };
            spec.results = vec![Some(ResultSpec {
                name: format!("t{place}"),
                ty: ty(rows),
                placement,
            })];
            made.push(builder.op(spec).unwrap().1[0].unwrap());
        }
        builder.output(*made.last().unwrap());
        builder.finish()
    }

    #[test]
    fn one_pass_gives_what_replaying_the_order_gives() {
        let device = Device::preset(Device::DEFAULT).unwrap();
        let mut graph = graph();
        let origin: TiVec<OpId, OpId> = graph.ops.keys().collect();
        let own = score(&graph, &origin, graph.ops.len(), &mut Costs::new(&device, no_bodies, 0)).unwrap();
        share_overwritten(&mut graph);
        let problem = problem(
            &graph,
            &analytic(&graph, &device, no_bodies),
            &ProblemOptions::default(),
        )
        .unwrap();
        let replay = replay(&problem, &baseline(&problem)).unwrap();
        assert_eq!((own.peak, own.time), (replay.peak, replay.duration));
        assert!(own.norm >= own.peak as f64 && own.levels.iter().max() == Some(&own.peak));
    }
}
