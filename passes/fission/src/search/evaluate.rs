//! What a tiling takes: costs of the tiled graph, and the memory of its reference order.

use std::hash::{Hash, Hasher};

use remat_cost::{BodyBytes, Device, analytic_cost};
use remat_ir::{Attribute, Graph, OpId, StorageClass, StorageId};
use remat_operators::share_overwritten;
use rustc_hash::{FxHashMap, FxHasher};
use typed_index_collections::TiVec;

/// What a tiled graph takes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Score {
    /// Bytes.
    pub(super) peak: u64,
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

/// Costs of ops, each worked out once: by what an op is a part of, and its shapes.
pub(super) struct Costs<'a> {
    device: &'a Device,
    bodies: BodyBytes,
    known: FxHashMap<u64, Cost>,
}

/// What a run of an op costs: nanoseconds and bytes.
#[derive(Clone, Copy)]
struct Cost {
    time: u64,
    workspace: u64,
}

impl<'a> Costs<'a> {
    pub(super) fn new(device: &'a Device, bodies: BodyBytes) -> Self {
        Self {
            device,
            bodies,
            known: FxHashMap::default(),
        }
    }

    fn of(&mut self, graph: &Graph, id: OpId) -> Cost {
        let op = &graph.ops[id];
        let mut hasher = FxHasher::default();
        let pads = op.attributes.get("pads").and_then(Attribute::as_ints);
        let axis = op.attributes.get("axis").and_then(Attribute::as_int);
        (&op.domain, &op.op_type, op.source, pads, axis).hash(&mut hasher);
        if op.source.is_none() && op.parts.is_empty() {
            op.name.hash(&mut hasher);
        }
        for tensor in op.inputs.iter().copied().chain(op.results().map(Some)) {
            let tensor = tensor.map(|tensor| &graph.tensors[tensor]);
            let is_made = tensor.map(|tensor| graph.storages[tensor.storage].class == StorageClass::Intermediate);
            (tensor.map(|tensor| &tensor.ty), is_made).hash(&mut hasher);
        }
        let key = hasher.finish();
        let (device, bodies) = (self.device, self.bodies);
        *self.known.entry(key).or_insert_with(|| {
            let cost = analytic_cost(graph, id, device, bodies);
            Cost {
                time: cost.duration_ns,
                workspace: cost.workspace_bytes,
            }
        })
    }
}

/// Estimates a graph whose ops come from those of another one, in its order; `None` where a size is not known.
///
/// A result has memory from its op to the last op that reads it or a view of it, and outputs and what nobody reads to the end: what replaying
/// the reference order gives, in one pass.
pub(super) fn score(mut graph: Graph, origin: &TiVec<OpId, OpId>, ops: usize, costs: &mut Costs<'_>) -> Option<Score> {
    share_overwritten(&mut graph);
    let alignment = costs.device.alignment.max(1);
    let mut last: TiVec<StorageId, usize> = TiVec::from(vec![usize::MAX; graph.storages.len()]);
    for (id, op) in graph.ops.iter_enumerated() {
        for tensor in op.reads() {
            last[graph.tensors[tensor].storage] = id.index();
        }
    }
    for &output in &graph.outputs {
        last[graph.tensors[output].storage] = usize::MAX;
    }
    let mut made: TiVec<OpId, u64> = TiVec::from(vec![0; graph.ops.len()]);
    let mut freed: TiVec<OpId, u64> = TiVec::from(vec![0; graph.ops.len()]);
    for (id, storage) in graph.storages.iter_enumerated() {
        let Some(producer) = graph.tensors[storage.root].producer else {
            continue;
        };
        if storage.class != StorageClass::Intermediate {
            continue;
        }
        let bytes = storage.bytes?.checked_next_multiple_of(alignment)?;
        made[producer] = made[producer].checked_add(bytes)?;
        if last[id] != usize::MAX {
            let freed = &mut freed[OpId::new(last[id])];
            *freed = freed.checked_add(bytes)?;
        }
    }
    let (mut now, mut peak, mut time) = (0u64, 0u64, 0u64);
    let mut levels = vec![0; ops];
    for id in graph.ops.keys() {
        let cost = costs.of(&graph, id);
        now = now.checked_add(made[id])?;
        let during = now.saturating_add(cost.workspace);
        now -= freed[id];
        time = time.saturating_add(cost.time);
        peak = peak.max(during);
        let level: &mut u64 = &mut levels[origin[id].index()];
        *level = (*level).max(during);
    }
    let share = |level: u64| level as f64 / peak.max(1) as f64;
    let sum: f64 = levels.iter().map(|&level| share(level).powi(NORM)).sum();
    Some(Score {
        peak,
        time,
        levels,
        norm: peak.max(1) as f64 * sum.powf(1.0 / f64::from(NORM)),
    })
}

#[cfg(test)]
mod tests {
    use remat_cost::{ProblemOptions, analytic, no_bodies, problem};
    use remat_ir::{GraphBuilder, OpSpec, Placement, ResultSpec, ValueType};
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
                Placement::ViewOf(previous)
            } else {
                Placement::New
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
        let own = score(
            graph.clone(),
            &origin,
            graph.ops.len(),
            &mut Costs::new(&device, no_bodies),
        )
        .unwrap();
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
