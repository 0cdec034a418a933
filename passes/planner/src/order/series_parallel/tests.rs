//! The recognizer against the definition, and what is looked at in large problems.

use alloc::vec;
use alloc::vec::Vec;

use super::find;
use super::releases::Releases;
use super::scope::Scope;
use super::segments::merge;
use super::tree::Tree;
use crate::dense::Id;
use crate::order::network::{Dag, Network, NodeId, Value};
use crate::order::tests::random;
use crate::rng::Rng;

/// A network in which each op makes one value of so many bytes, and reads those of the ops named.
fn network<R: AsRef<[usize]>>(ops: &[(u64, R)]) -> Network {
    let values: Vec<Value> = (0u32..)
        .zip(ops)
        .map(|(op, &(bytes, _))| Value {
            bytes,
            producer: Some(op),
            stays: false,
        })
        .collect();
    let reads: Vec<(u32, u32)> = (0u32..)
        .zip(ops)
        .flat_map(|(op, (_, reads))| reads.as_ref().iter().map(move |&value| (op, value as u32)))
        .collect();
    let dag = Dag {
        workspace: &vec![0; ops.len()],
        values: &values,
        reads: &reads,
        after: &[],
    };
    Network::new(&dag).unwrap()
}

fn is_series_parallel(ops: &[&[usize]]) -> bool {
    let ops: Vec<(u64, &[usize])> = ops.iter().map(|&reads| (1, reads)).collect();
    Tree::of(&Scope::of(&network(&ops))).is_some()
}

/// Which node has to stand before which, by following all predecessors.
fn closure(scope: &Scope<'_>) -> Vec<Vec<bool>> {
    let count = scope.network.len();
    let mut before = vec![vec![false; count]; count];
    for node in scope.nodes() {
        for other in scope.predecessors(node) {
            let further = before[other.position()].clone();
            let own = &mut before[node.position()];
            own[other.position()] = true;
            own.iter_mut()
                .zip(further)
                .for_each(|(is_before, far)| *is_before |= far);
        }
    }
    before
}

/// An order is series-parallel just if no four elements are ordered like the letter N: `b` behind `a`, `d` behind `a` and `c`, and no
/// more.
fn has_no_n(before: &[Vec<bool>]) -> bool {
    let count = before.len();
    let free = |x: usize, y: usize| x != y && !before[x][y] && !before[y][x];
    let quadruples = (0..count).flat_map(|a| {
        (0..count).flat_map(move |b| (0..count).flat_map(move |c| (0..count).map(move |d| (a, b, c, d))))
    });
    !quadruples
        .into_iter()
        .any(|(a, b, c, d)| before[b][a] && before[d][a] && before[d][c] && free(a, c) && free(b, c) && free(b, d))
}

#[test]
fn chains_trees_and_nested_skips_are_recognized() {
    let chain: &[&[usize]] = &[&[], &[0], &[1], &[2]];
    let trees: &[&[usize]] = &[&[], &[], &[0, 1], &[], &[3], &[2, 4], &[], &[6], &[6], &[8], &[8]];
    // Each level of the way down is read by the way up, too.
    let nested: &[&[usize]] = &[&[], &[0], &[1], &[2], &[3, 1], &[4, 0]];
    // Two branches, the first of which is also read far behind the op that they meet in.
    let far: &[&[usize]] = &[&[], &[0], &[1], &[0], &[2, 3], &[4], &[5, 1], &[6, 0]];
    let crossbar: &[&[usize]] = &[&[], &[], &[0, 1], &[0, 1], &[2]];
    for ops in [chain, trees, nested, far, crossbar] {
        assert!(is_series_parallel(ops), "{ops:?}");
    }
}

#[test]
fn the_letter_n_and_what_contains_it_is_not() {
    let letter: &[&[usize]] = &[&[], &[0], &[], &[0, 2]];
    // All ops that follow the first one at once are in one layer, but not all follow the second one.
    let within: &[&[usize]] = &[&[], &[0], &[0], &[1], &[1, 2], &[3, 4]];
    // What the first one demands of the last one does not follow from the rest.
    let skip: &[&[usize]] = &[&[], &[], &[0], &[1], &[3, 0]];
    for ops in [letter, within, skip] {
        assert!(!is_series_parallel(ops), "{ops:?}");
    }
}

#[test]
fn what_has_no_n_is_recognized_and_nothing_else() {
    let mut rng = Rng::new(7, 0);
    let mut found = 0;
    for _ in 0..4_000 {
        let network = random(&mut rng, 12);
        let scope = Scope::of(&network);
        let before = closure(&scope);
        let tree = Tree::of(&scope);
        assert_eq!(tree.is_some(), has_no_n(&before), "{network:?}");
        let Some(tree) = tree else { continue };
        found += 1;
        for (node, other) in scope
            .nodes()
            .flat_map(|node| scope.nodes().map(move |other| (node, other)))
        {
            assert_eq!(tree.precedes(other, node), before[node.position()][other.position()]);
        }
        for value in network.all_values() {
            let users = network.users(value);
            let is_last = |node: &&NodeId| !users.iter().any(|other| before[other.position()][node.position()]);
            let mut last = tree.last_of(users);
            last.sort_unstable();
            assert_eq!(last, users.iter().filter(is_last).copied().collect::<Vec<_>>());
        }
    }
    assert!((400..3_600).contains(&found), "{found}");
}

/// Random networks of a million ops or so, as operands of each op: trees that fork and meet, caterpillars, chains of forks.
fn large(kind: usize, ops: usize, rng: &mut Rng) -> Vec<(u64, Vec<usize>)> {
    let mut list: Vec<(u64, Vec<usize>)> = vec![(1 + rng.below(1_000) as u64, Vec::new())];
    // Ends of branches.
    let mut open = vec![0];
    while list.len() < ops {
        let number = list.len();
        let reads = match kind {
            // An out-tree of any shape.
            0 => vec![rng.below(number)],
            // An in-tree: what no op has read yet, some at a time.
            1 => {
                let count = if number.is_multiple_of(3) { open.len().min(2) } else { 0 };
                open.split_off(open.len() - count)
            }
            // A chain with a leaf at each op.
            2 => vec![number - 1 - usize::from(number.is_multiple_of(2) && number > 1)],
            // Forks of two ops each, one after the other.
            _ => match number % 3 {
                0 => vec![number - 2, number - 1],
                rest => vec![number - rest],
            },
        };
        open.push(number);
        list.push((1 + rng.below(1_000) as u64, reads));
    }
    list
}

#[test]
fn the_number_of_segments_that_are_looked_at_grows_hardly_faster_than_the_problem() {
    const OPS: usize = 100_000;
    let mut rng = Rng::new(1, 0);
    for kind in 0..4 {
        let network = network(&large(kind, OPS, &mut rng));
        let tree = Tree::of(&Scope::of(&network)).expect("series-parallel");
        assert!(tree.parts().len() < 2 * OPS);
        let merged = merge(&tree, &Releases::of(&network, &tree).demands());
        assert_eq!(merged.order.len(), network.len());
        let most = OPS * OPS.ilog2() as usize;
        assert!(merged.looked_at <= most, "kind {kind}: {} of {most}", merged.looked_at);
    }
}

#[test]
fn what_takes_no_memory_and_waits_for_nothing_binds_nobody() {
    // The letter N, two of whose ops make nothing.
    let network = network(&[(5, &[][..]), (0, &[]), (0, &[1]), (1, &[0]), (1, &[0, 2])]);
    let found = find(&network, || true).expect("series-parallel");
    assert_eq!(network.ops(&found.order)[..3], [1, 2, 0]);
    assert_eq!((found.order.len(), found.peak, found.bound), (5, 6, 6));
}

#[test]
fn of_two_branches_the_one_with_the_higher_hill_runs_first() {
    // Two chains that begin with a large result and end with a small one: 20 and then 2, 30 and then 3 bytes.
    let network = network(&[(20, &[][..]), (2, &[0]), (30, &[]), (3, &[2]), (1, &[1, 3])]);
    let found = find(&network, || true).expect("series-parallel");
    assert_eq!((found.peak, found.bound), (33, 33));
    let given: Vec<NodeId> = network.nodes().collect();
    assert_eq!(network.peak_of(&given).0, 35);
}
