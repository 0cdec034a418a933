//! Costs per op.

use remat_ir::{Attribute, Body, Graph, Op, OpId, StorageClass, TensorId};
use serde::Serialize;
use typed_index_collections::TiVec;

use crate::workspace::{self, BodyBytes};
use crate::{Device, KernelClass, formula::work, time, work::Work};

/// Where the costs of an op come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The analytic model.
    Analytic,
    /// A profile file.
    File,
}

/// What one run of an op costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OpCost {
    /// Name of the op.
    pub node: String,
    /// The efficiency class of its kernel.
    pub class: KernelClass,
    /// Time in nanoseconds.
    pub duration_ns: u64,
    /// Energy in picojoules; 0 where the device states none.
    pub energy_pj: u64,
    /// Bytes the kernel takes on top of operands and results while it runs.
    pub workspace_bytes: u64,
    /// Arithmetic operations, a multiply-add counted as two; 0 where shapes are unknown.
    pub flops: u64,
    /// Bytes of the operands that the op looks at.
    pub read_bytes: u64,
    /// Bytes of the results that the op writes.
    pub written_bytes: u64,
    /// Where duration and workspace come from.
    pub provenance: Provenance,
}

/// Costs of all ops of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Profile {
    /// The device, in words.
    pub device: String,
    /// How the costs were obtained, in words.
    pub method: String,
    /// The runtime rounds sizes up to a multiple of this many bytes.
    pub alignment: u64,
    /// One entry per op of the graph.
    pub ops: TiVec<OpId, OpCost>,
}

/// The costs of `graph` on `device` by the roofline model: the larger of arithmetic time and memory time, plus the time to
/// start a kernel.
///
/// Every op that is neither a view, a constant nor a `dealloc` takes at least the launch overhead. Where shapes are unknown
/// the arithmetic counts as nothing and only known bytes are charged. Figures that overflow 64 bits saturate. `bodies`
/// says what subgraphs take where kernels are those of ONNX Runtime.
#[must_use]
pub fn analytic(graph: &Graph, device: &Device, bodies: BodyBytes) -> Profile {
    Profile {
        device: device.name.clone(),
        method: "analytic model".to_owned(),
        alignment: device.alignment,
        ops: graph
            .ops
            .keys()
            .map(|id| analytic_cost(graph, id, device, bodies))
            .collect(),
    }
}

/// The cost of one op, as [`analytic`] has it.
#[must_use]
pub fn analytic_cost(graph: &Graph, id: OpId, device: &Device, bodies: BodyBytes) -> OpCost {
    let op = &graph.ops[id];
    let work = work_of(graph, id);
    let kernel = if device.cpu_kernels {
        workspace::bytes(graph, id, bodies)
    } else {
        0
    };
    OpCost {
        node: op.name.clone(),
        class: work.class,
        duration_ns: stated_ns(op)
            .unwrap_or_else(|| time::duration_ns(&work, device).saturating_add(bodies_ns(graph, id, device))),
        energy_pj: device.energy_pj(
            saturate(work.flops),
            saturate(work.read_bytes.saturating_add(work.written_bytes)),
        ),
        workspace_bytes: kernel.saturating_add(workspace::lowered(graph, op)),
        flops: saturate(work.flops),
        read_bytes: saturate(work.read_bytes),
        written_bytes: saturate(work.written_bytes),
        provenance: Provenance::Analytic,
    }
}

fn work_of(graph: &Graph, id: OpId) -> Work {
    if only_constants(graph, id) {
        Work::none(KernelClass::Constant)
    } else {
        work(graph, &graph.ops[id])
    }
}

/// More trips than this are no number but a bound, of a loop that its condition ends.
const MOST_TRIPS: u64 = 1 << 32;
/// The longest time of subgraphs, 13 days: sums of some thousand such times are still times.
const LONGEST_BODIES_NS: u64 = 1 << 50;

/// Time that an op takes for its subgraphs: for what it repeats, as often as is known, else once; of branches that of the longest one.
fn bodies_ns(graph: &Graph, id: OpId, device: &Device) -> u64 {
    let of_op = |graph: &Graph, id: OpId| {
        let own = time::duration_ns(&work_of(graph, id), device);
        own.saturating_add(bodies_ns(graph, id, device))
    };
    let of_body = |body: &Body| {
        let times = body.graph.ops.keys().map(|id| of_op(&body.graph, id));
        let once = times.fold(0, u64::saturating_add);
        let trips = body.trips.filter(|&trips| trips <= MOST_TRIPS);
        once.saturating_mul(trips.unwrap_or(1)).min(LONGEST_BODIES_NS)
    };
    graph.ops[id].bodies.iter().map(of_body).max().unwrap_or(0)
}

/// The time of one run where the attribute `nanoseconds` states it: that of an op whose regions were looked at one by one.
fn stated_ns(op: &Op) -> Option<u64> {
    let stated = op.attributes.get("nanoseconds").and_then(Attribute::as_int);
    stated.and_then(|nanoseconds| u64::try_from(nanoseconds).ok())
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Whether all that an op makes is memory of the session; such an op runs once, when the model is loaded.
pub(crate) fn only_constants(graph: &Graph, op: OpId) -> bool {
    let created = |tensor: TensorId| {
        let storage = &graph.storages[graph.tensors[tensor].storage];
        storage.root == tensor && storage.class == StorageClass::Constant
    };
    let mut results = graph.ops[op].results().peekable();
    results.peek().is_some() && results.all(created)
}
