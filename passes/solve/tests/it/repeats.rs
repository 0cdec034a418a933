//! Networks of blocks alike.

use proptest::prelude::*;
use remat_plan::{AntiDependence, OpId, OrderMode, Problem, StorageRole};
use remat_solve::{Search, SolveControl, Solver};
use remat_testing::net::with_budget;
use remat_testing::networks::Blocks;
use remat_truth::judge::checked;

/// Networks whose blocks repeat whatever a problem may have, here and there with an exception.
fn repeating() -> impl Strategy<Value = Problem> {
    let network = prop_oneof![
        (10usize..16).prop_map(Blocks::transformer),
        (8usize..12).prop_map(Blocks::residual),
        (1usize..3).prop_map(Blocks::u_net),
    ];
    let features = (
        2u64..9,
        0u64..9,
        prop::option::of(2u32..4),
        prop::bool::ANY,
        prop::bool::ANY,
    );
    let places = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4);
    (network, features, places, 5u64..95).prop_map(|(network, features, places, budget)| {
        let (every, rest, most, is_free, lasts) = features;
        let mut problem = network.training();
        problem.max_computes = most;
        if is_free {
            problem.order = OrderMode::Free;
        }
        for op in &mut problem.ops {
            op.recomputable = op.duration % every != rest;
            op.workspace = op.duration % 7;
        }
        for storage in problem
            .storages
            .iter_mut()
            .filter(|storage| lasts && storage.bytes == 16)
        {
            storage.role = StorageRole::LiveOut;
        }
        let ops = problem.ops.len();
        for (one, other) in &places {
            let (one, other) = (one.index(ops), other.index(ops));
            if one != other {
                problem.anti_dependences.push(AntiDependence {
                    before: OpId::new(one.min(other)),
                    after: OpId::new(one.max(other)),
                });
            }
        }
        problem.anti_dependences.sort_unstable();
        problem.anti_dependences.dedup();
        with_budget(problem, budget)
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(12))]

    #[test]
    fn every_plan_passes_the_checker(problem in repeating(), seed in any::<u64>()) {
        let control = SolveControl::new().step_limit(10_000).seed(seed);
        let outcome = Search.solve(&problem, &control);
        checked(&problem, &outcome);
        let again = Search.solve(&problem, &control);
        prop_assert_eq!(outcome.plan, again.plan, "the same once more");
    }
}
