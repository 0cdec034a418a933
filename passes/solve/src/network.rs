//! An instance as the planner's network of ops and values.

use remat_plan::Instance;
use remat_planner::order::{Dag, Network, OrderError, Value};

/// The nodes of an instance as ops of these numbers, its values in their order, kept results and all that binds first runs.
///
/// # Errors
/// [`OrderError`] where its bytes add up to more than 2^62, or where it is too large to be counted in 32 bits.
pub fn network(instance: &Instance) -> Result<Network, OrderError> {
    let number = |index: usize| u32::try_from(index).map_err(|_| OrderError::TooMany);
    number(instance.len().max(instance.value_count()))?;
    let workspace: Vec<u64> = instance.nodes().map(|node| instance.workspace(node)).collect();
    let made = instance.all_values().map(|value| Value {
        bytes: instance.bytes(value),
        producer: Some(instance.producer(value).index() as u32),
        stays: false,
    });
    let kept = instance.nodes().filter(|&node| instance.kept(node) > 0);
    let kept = kept.map(|node| Value {
        bytes: instance.kept(node),
        producer: Some(node.index() as u32),
        stays: true,
    });
    let values: Vec<Value> = made.chain(kept).collect();
    let mut reads = Vec::new();
    let mut after = Vec::new();
    for node in instance.nodes() {
        let op = node.index() as u32;
        reads.extend(instance.needs(node).iter().map(|value| (op, value.index() as u32)));
        after.extend(
            instance
                .predecessors(node)
                .iter()
                .map(|other| (op, other.index() as u32)),
        );
    }
    Network::new(&Dag {
        workspace: &workspace,
        values: &values,
        reads: &reads,
        after: &after,
    })
}
