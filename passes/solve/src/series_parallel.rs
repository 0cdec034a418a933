//! Series-parallel problems: the order of least peak in which every op runs once.
//!
//! `remat-planner` finds it; this is what is said of problems. Recomputes may go below.

use remat_plan::{
    Instance, NodeId, OpId, OrderMode, Problem, StorageId, StorageRole, Structure, TensorId, lower_sequence,
};
use remat_planner::order::{Found, Network, peak, series_parallel};

use crate::SolveControl;
use crate::measure::measure;
use crate::network::network;

/// An order of the ops of a series-parallel problem in which each runs once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnceOrder {
    /// The scheduled ops.
    pub ops: Vec<OpId>,
    /// The peak of the plan that [`lower_sequence`] makes of it, in bytes.
    pub peak: u64,
    /// No order in which every op runs once has a lower peak, in bytes; absent where nothing is known, because of views.
    pub bound: Option<u64>,
}

impl OnceOrder {
    /// Whether no order in which every op runs once has a lower peak.
    #[must_use]
    pub fn is_least(&self) -> bool {
        self.bound == Some(self.peak)
    }
}

/// An order of low peak in which every op of a valid problem runs once, with a bound; `None` where the problem is not series-parallel, has a second
/// memory, or its order is fixed. The budget plays no part.
///
/// Where the last reader of every value is the same in all orders, the peak is the least one. The time is about linear in the size of the
/// problem; the limits of `control` end the attempts at values of which it is not so.
#[must_use]
pub fn once_order(problem: &Problem, control: &SolveControl<'_>) -> Option<OnceOrder> {
    let structure = Structure::of(problem);
    let instance = Instance::of(problem, &structure);
    let (_, found) = found_for(problem, &instance, || control.interruption(0).is_none())?;
    let ops: Vec<OpId> = nodes(&found.ops).map(|node| instance.op(node)).collect();
    let plan = lower_sequence(problem, &structure, ops.iter().copied());
    let plan = plan.inspect_err(|error| tracing::error!(%error, "an order could not be lowered"));
    Some(OnceOrder {
        peak: measure(problem, &structure, &plan.ok()?).peak,
        bound: is_exact(problem, &structure).then_some(found.bound),
        ops,
    })
}

/// No order of a problem of which this is the instance has a lower peak, in bytes; `None` as for [`once_order`]. `go_on` is asked between attempts.
pub(crate) fn least_of_orders(problem: &Problem, instance: &Instance, go_on: impl FnMut() -> bool) -> Option<u64> {
    Some(found_for(problem, instance, go_on)?.1.bound)
}

/// The order of a series-parallel problem where it has a lower peak than the reference order: for a search to begin from.
pub(crate) fn better_order(problem: &Problem, instance: &Instance, control: &SolveControl<'_>) -> Option<Vec<NodeId>> {
    let (network, found) = found_for(problem, instance, || control.interruption(0).is_none())?;
    let reference: Vec<u32> = (0u32..).take(instance.len()).collect();
    let is_lower = peak(&network, &reference).is_none_or(|reference| found.peak < reference);
    is_lower.then(|| nodes(&found.ops).collect())
}

fn found_for(problem: &Problem, instance: &Instance, mut go_on: impl FnMut() -> bool) -> Option<(Network, Found)> {
    if problem.order == OrderMode::Fixed || problem.paging.is_some() {
        return None;
    }
    let network = network(instance).ok()?;
    let found = series_parallel(&network, &mut go_on)?;
    Some((network, found))
}

fn nodes(ops: &[u32]) -> impl Iterator<Item = NodeId> {
    ops.iter().map(|&op| NodeId::new(op as usize))
}

/// Whether an instance takes no op for larger than it is: lazy views take nothing, and look into one storage only.
pub(crate) fn is_exact(problem: &Problem, structure: &Structure) -> bool {
    let mut views = problem.ops.iter_enumerated().filter(|&(op, _)| structure.is_lazy(op));
    views.all(|(_, view)| {
        let storage = |&tensor: &TensorId| problem.tensors[tensor].storage;
        let counts = |&storage: &StorageId| problem.storages[storage].role != StorageRole::External;
        let mut storages = view.reads.iter().chain(&view.defines).map(storage).filter(counts);
        let first = storages.next();
        view.workspace == 0 && storages.all(|other| Some(other) == first)
    })
}
