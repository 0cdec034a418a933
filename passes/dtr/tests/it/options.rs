//! What the options of the simulator change.

use remat_dtr::{Deallocation, Heuristic, SimulateOptions, SimulateStatus, base_peak, simulate};

use crate::support::training_step;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(every_heuristic_stays_within_the_budget),
        trial!(freeing_for_good_takes_least_and_never_freeing_most),
        trial!(every_way_of_deallocation_keeps_to_a_budget),
        trial!(random_choices_follow_the_seed),
        trial!(the_limit_on_recomputation_is_a_limit),
    ]
}

fn options(heuristic: Heuristic, ratio: f64) -> SimulateOptions {
    SimulateOptions {
        heuristic,
        budget: Some((ratio * base_peak(&training_step()) as f64) as u64),
        ..SimulateOptions::default()
    }
}

fn every_heuristic_stays_within_the_budget() {
    let trace = training_step();
    for heuristic in Heuristic::ALL {
        let options = options(heuristic, 0.8);
        let result = simulate(&trace, &options);
        assert!(
            options.budget.is_some_and(|budget| result.peak <= budget),
            "{heuristic}"
        );
        assert!(
            result.status == SimulateStatus::Ok && result.evictions > 0,
            "{heuristic}: {result:?}"
        );
    }
}

fn freeing_for_good_takes_least_and_never_freeing_most() {
    let trace = training_step();
    let peak = |deallocation| {
        simulate(
            &trace,
            &SimulateOptions {
                deallocation,
                ..SimulateOptions::default()
            },
        )
        .peak
    };
    let (banish, eager, keep) = (
        peak(Deallocation::Banish),
        peak(Deallocation::Eager),
        peak(Deallocation::Keep),
    );
    assert_eq!(banish, base_peak(&trace));
    assert!(banish < eager && eager < keep, "{banish} {eager} {keep}");
}

fn every_way_of_deallocation_keeps_to_a_budget() {
    let trace = training_step();
    for deallocation in [Deallocation::Banish, Deallocation::Eager, Deallocation::Keep] {
        for ratio in [0.9, 0.7] {
            let options = SimulateOptions {
                deallocation,
                ..options(Heuristic::DtrEq, ratio)
            };
            let result = simulate(&trace, &options);
            assert!(
                options.budget.is_some_and(|budget| result.peak <= budget),
                "{deallocation:?} {ratio}"
            );
        }
    }
}

fn random_choices_follow_the_seed() {
    let trace = training_step();
    let run = |seed| {
        simulate(
            &trace,
            &SimulateOptions {
                seed,
                ..options(Heuristic::Random, 0.7)
            },
        )
    };
    assert_eq!(run(1), run(1));
    assert!((2..20).any(|seed| run(seed) != run(1)));
}

fn the_limit_on_recomputation_is_a_limit() {
    let trace = training_step();
    let tight = options(Heuristic::DtrEq, 0.5);
    let patient = SimulateOptions {
        thrash_limit: 50.0,
        ..tight.clone()
    };
    let (gave_up, went_on) = (simulate(&trace, &tight), simulate(&trace, &patient));
    assert_eq!(gave_up.status, SimulateStatus::Thrash);
    assert!(gave_up.recompute_ns > trace.base_cost() && went_on.recompute_ns > gave_up.recompute_ns);
}
