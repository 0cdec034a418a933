//! Orders against all orders of small networks.

use alloc::vec;
use alloc::vec::Vec;

use super::{Dag, Network, Order, Value, order, peak};
use crate::limits::Tries;
use crate::order::network::NodeId;
use crate::rng::Rng;

/// A random network of up to so many ops: inputs, outputs, values that nobody reads or several do, ops without values, workspace.
pub(crate) fn random(rng: &mut Rng, most: usize) -> Network {
    let ops = 1 + rng.below(most);
    let mut values = Vec::new();
    let mut reads = Vec::new();
    let mut after = Vec::new();
    if rng.chance(0.3) {
        values.push(Value {
            bytes: rng.below(9) as u64,
            producer: None,
            stays: rng.chance(0.2),
        });
    }
    let density = rng.unit();
    for op in 0..ops as u32 {
        if !values.is_empty() {
            for _ in 0..1 + rng.below(3) {
                if rng.chance(density) {
                    // Near ones more often.
                    let value = values.len() - rng.nearby(values.len() as f64).min(values.len());
                    reads.push((op, value as u32));
                }
            }
        }
        if op > 0 && rng.chance(0.05) {
            after.push((op, rng.below(op as usize) as u32));
        }
        for _ in 0..[1, 1, 1, 2, 0][rng.below(5)] {
            values.push(Value {
                bytes: [0, 1, 2, 5, 9, 30][rng.below(6)],
                producer: Some(op),
                stays: rng.chance(0.1),
            });
        }
    }
    let workspace: Vec<u64> = (0..ops)
        .map(|_| if rng.chance(0.2) { rng.below(12) as u64 } else { 0 })
        .collect();
    let dag = Dag {
        workspace: &workspace,
        values: &values,
        reads: &reads,
        after: &after,
    };
    Network::new(&dag).expect("its ops are in an order")
}

/// The least peak, by trying every order.
fn least(network: &Network, way: &mut Vec<NodeId>, least_yet: &mut u64) {
    if way.len() == network.len() {
        *least_yet = (*least_yet).min(network.peak_of(way).0);
        return;
    }
    for node in network.nodes() {
        let is_ready = network.predecessors(node).iter().all(|other| way.contains(other));
        if is_ready && !way.contains(&node) {
            way.push(node);
            least(network, way, least_yet);
            way.pop();
        }
    }
}

fn checked(network: &Network, tries: u64) -> Order {
    let found = order(network, &mut Tries::at_most(tries));
    assert_eq!(peak(network, &found.ops), Some(found.peak));
    assert!(found.bound <= found.peak);
    found
}

#[test]
fn small_networks_have_an_order_of_least_peak() {
    let mut rng = Rng::new(3, 0);
    for _ in 0..1_500 {
        let network = random(&mut rng, 7);
        let mut least_of_all = u64::MAX;
        least(&network, &mut Vec::new(), &mut least_of_all);
        let found = checked(&network, u64::MAX);
        assert_eq!((found.peak, found.bound), (least_of_all, least_of_all), "{network:?}");
    }
}

#[test]
fn whatever_the_limit_there_is_an_order_and_a_true_bound() {
    let mut rng = Rng::new(5, 0);
    let mut open = 0;
    for _ in 0..200 {
        let network = random(&mut rng, 40);
        let best = checked(&network, 200_000);
        let given: Vec<NodeId> = network.nodes().collect();
        for tries in [0, 1, 50] {
            let found = checked(&network, tries);
            assert!(found.bound <= best.peak && best.bound <= found.peak);
            assert!(found.peak <= network.peak_of(&given).0);
            open += usize::from(found.bound < found.peak);
        }
    }
    assert!(open > 50, "{open}");
}

/// Ops in no simple order, each of which reads one or two of the 30 before.
fn irregular(ops: u32, seed: u64) -> Network {
    let mut rng = Rng::new(seed, 0);
    let values: Vec<Value> = (0..ops)
        .map(|op| Value {
            bytes: [4, 4, 8, 16][rng.below(4)],
            producer: Some(op),
            stays: false,
        })
        .collect();
    let near = |rng: &mut Rng, op: u32| op - 1 - rng.below(op.min(30) as usize) as u32;
    let reads: Vec<(u32, u32)> = (1..ops)
        .flat_map(|op| [op, op])
        .map(|op| (op, near(&mut rng, op)))
        .collect();
    let dag = Dag {
        workspace: &vec![0; ops as usize],
        values: &values,
        reads: &reads,
        after: &[],
    };
    Network::new(&dag).unwrap()
}

#[test]
fn more_tries_find_lower_orders_of_irregular_networks() {
    let (mut lower, mut proved) = (0, 0);
    for seed in 0..12 {
        let network = irregular(50, seed);
        let [none, some, many] = [0, 5_000, 300_000].map(|tries| checked(&network, tries));
        assert!(none.peak >= some.peak && some.peak >= many.peak);
        assert!(none.bound <= some.bound && some.bound <= many.bound);
        lower += usize::from(many.peak < none.peak);
        proved += usize::from(many.peak == many.bound);
    }
    assert!(lower >= 8 && proved >= 6, "{lower} {proved}");
}

#[test]
fn an_order_is_judged() {
    let value = Value {
        bytes: 4,
        producer: Some(0),
        stays: true,
    };
    let dag = Dag {
        workspace: &[1, 2],
        values: &[value],
        reads: &[(1, 0)],
        after: &[],
    };
    let network = Network::new(&dag).unwrap();
    assert_eq!(peak(&network, &[0, 1]), Some(6));
    for wrong in [vec![], vec![0], vec![1, 0], vec![0, 0], vec![0, 1, 1], vec![0, 7]] {
        assert_eq!(peak(&network, &wrong), None, "{wrong:?}");
    }
}

#[test]
fn nothing_has_an_order() {
    let dag = Dag {
        workspace: &[],
        values: &[],
        reads: &[],
        after: &[],
    };
    let found = checked(&Network::new(&dag).unwrap(), 10);
    assert_eq!((found.ops.len(), found.peak, found.bound), (0, 0, 0));
}
