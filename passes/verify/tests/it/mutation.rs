//! Random plans, valid and mutated: the checker and the oracle agree on every rule.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{Event, OpId, Paging, PagingMode, Plan, Problem, Step, StorageId, Structure, lower_events};
use remat_testing::plans::file;
use remat_testing::random::{Features, in_either_order, problems, second_memory};
use remat_verify::{CheckError, Code, check_file, replay};

use crate::oracle;

/// Problems with several results, views, graph outputs, constants, workspace and ops that are not recomputable.
pub(crate) fn random_problem() -> impl Strategy<Value = Problem> {
    let most = prop::option::weighted(0.3, 1u32..3);
    let paging = prop::option::weighted(0.7, second_memory(Features::RULES));
    let problem = in_either_order(problems(1..9, Features::RULES));
    (problem, most, paging).prop_map(|(problem, max_computes, paging)| Problem {
        max_computes,
        paging,
        ..problem
    })
}

/// The reference order with recomputes and page-ins inserted where they can be lowered.
pub(crate) fn lowered(problem: &Problem, again: &[(Index, Index, bool)]) -> Plan {
    let structure = Structure::of(problem);
    let mut events: Vec<Event> = structure.scheduled().map(Event::Run).collect();
    let mut plan = lower_events(problem, &structure, events.iter().copied()).unwrap();
    for (place, which, fetch) in again {
        let place = place.index(events.len());
        let Event::Run(op) = events[..=place][which.index(place + 1)] else {
            continue;
        };
        let ran = |other: OpId| events[..=place].contains(&Event::Run(other));
        let mut pairs = problem.anti_dependences.iter();
        let is_late = pairs.any(|pair| pair.before == op && ran(pair.after));
        let event = match structure.owns(op).first() {
            Some(&storage) if *fetch && problem.paging.is_some() => Event::Fetch(storage),
            _ if problem.ops[op].recomputable && !is_late => Event::Run(op),
            _ => continue,
        };
        let mut longer = events.clone();
        longer.insert(place + 1, event);
        // Some results that are views cannot be made again on demand: their ops also create memory.
        if let Ok(found) = lower_events(problem, &structure, longer.iter().copied()) {
            (events, plan) = (longer, found);
        }
    }
    plan
}

#[derive(Clone, Debug)]
enum Mutation {
    Drop(Index),
    Duplicate(Index),
    Swap(Index, Index),
    Relabel(Index),
    Retarget(Index, Index),
    Insert(Index, u8, Index),
    Budget(u64),
    Computes(u32),
    Deadline(u64),
    Capacity(u64),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<Index>().prop_map(Mutation::Drop),
        any::<Index>().prop_map(Mutation::Duplicate),
        any::<(Index, Index)>().prop_map(|(a, b)| Mutation::Swap(a, b)),
        any::<Index>().prop_map(Mutation::Relabel),
        any::<(Index, Index)>().prop_map(|(at, to)| Mutation::Retarget(at, to)),
        (any::<Index>(), 0u8..5, any::<Index>()).prop_map(|(at, kind, which)| Mutation::Insert(at, kind, which)),
        (1u64..20).prop_map(Mutation::Budget),
        (0u32..3).prop_map(Mutation::Computes),
        (0u64..20).prop_map(Mutation::Deadline),
        (0u64..20).prop_map(Mutation::Capacity),
    ]
}

fn random_step(problem: &Problem, kind: u8, which: Index) -> Step {
    let op = OpId::new(which.index(problem.ops.len()));
    let storage = StorageId::new(which.index(problem.storages.len()));
    match kind {
        0 => Step::Compute(op),
        1 => Step::Recompute(op),
        2 => Step::Free(storage),
        3 => Step::PageOut(storage),
        _ => Step::PageIn(storage),
    }
}

fn mutate(problem: &mut Problem, plan: &mut Plan, mutation: &Mutation) {
    let steps = &mut plan.steps;
    if let Mutation::Insert(at, kind, which) = mutation {
        steps.insert(at.index(steps.len() + 1), random_step(problem, *kind, *which));
        return;
    }
    if steps.is_empty() {
        return;
    }
    match mutation {
        Mutation::Drop(at) => drop(steps.remove(at.index(steps.len()))),
        Mutation::Duplicate(at) => {
            let at = at.index(steps.len());
            steps.insert(at, steps[at]);
        }
        Mutation::Swap(a, b) => {
            let (a, b) = (a.index(steps.len()), b.index(steps.len()));
            steps.swap(a, b);
        }
        Mutation::Relabel(at) => {
            let step = at.index(steps.len());
            steps[step] = match steps[step] {
                Step::Compute(op) => Step::Recompute(op),
                Step::Recompute(op) => Step::Compute(op),
                other => other,
            };
        }
        Mutation::Retarget(at, to) => {
            let step = at.index(steps.len());
            if let Step::Free(storage) | Step::PageOut(storage) | Step::PageIn(storage) = &mut steps[step] {
                *storage = StorageId::new(to.index(problem.storages.len()));
            }
        }
        Mutation::Budget(below) => {
            let peak = u64::try_from(oracle::judge(problem, plan).peak).unwrap();
            problem.budget = Some(peak.saturating_sub(*below));
        }
        Mutation::Computes(most) => problem.max_computes = Some(*most),
        Mutation::Deadline(below) => {
            let duration = u64::try_from(oracle::judge(problem, plan).duration).unwrap();
            problem.deadline = Some((duration + 3).saturating_sub(*below));
        }
        Mutation::Capacity(below) => {
            let held = u64::try_from(oracle::judge(problem, plan).second_peak).unwrap();
            if let Some(paging) = &mut problem.paging {
                paging.capacity = Some((held + 3).saturating_sub(*below));
            }
        }
        Mutation::Insert(..) => {}
    }
}

fn codes(problem: &Problem, plan: &Plan) -> BTreeSet<Code> {
    replay(problem, plan).map_or_else(|rejection| rejection.codes().into_iter().collect(), |_| BTreeSet::new())
}

/// The checker finds what the oracle finds.
fn agrees(problem: &Problem, plan: &Plan) {
    let verdict = oracle::judge(problem, plan);
    assert_eq!(codes(problem, plan), verdict.codes);
    if let Ok(replay) = replay(problem, plan) {
        let figures = [replay.peak, replay.duration, replay.energy, replay.second_peak].map(u128::from);
        let expected = [verdict.peak, verdict.duration, verdict.energy, verdict.second_peak];
        assert_eq!(figures, expected);
        let bus = plan.steps.iter().zip(&replay.times);
        let moves =
            bus.filter(|(step, span)| matches!(step, Step::PageOut(_) | Step::PageIn(_)) && span.start < span.end);
        let spans: Vec<_> = moves.map(|(_, span)| span).collect();
        let apart = spans.windows(2).all(|two| two[0].end <= two[1].start);
        assert!(apart, "two transfers are on the bus at once: {spans:?}");
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(512))]

    #[test]
    fn lowered_events_are_valid_with_the_figures_of_the_oracle(
        mut problem in random_problem(),
        again in prop::collection::vec(any::<(Index, Index, bool)>(), 0..6),
    ) {
        problem.max_computes = None;
        if let Some(paging) = &mut problem.paging {
            paging.capacity = None;
        }
        let plan = lowered(&problem, &again);
        let replay = replay(&problem, &plan);
        prop_assert!(replay.is_ok(), "{}", replay.unwrap_err());
        let replay = replay.unwrap();
        prop_assert_eq!(oracle::judge(&problem, &plan).codes, BTreeSet::new());
        agrees(&problem, &plan);
        prop_assert_eq!(replay.recomputes, plan.recomputes());
        problem.budget = Some(replay.peak);
        prop_assert_eq!(codes(&problem, &plan), BTreeSet::new());
        agrees(&problem, &plan);
        if replay.peak > 0 {
            problem.budget = Some(replay.peak - 1);
            agrees(&problem, &plan);
            // With DMA, waiting may help.
            if problem.paging.is_none_or(|paging| paging.mode == PagingMode::Sync) {
                prop_assert_eq!(codes(&problem, &plan), BTreeSet::from([Code::V006]));
            }
        }
    }

    #[test]
    fn the_baseline_is_found_as_it_is_lowered(mut problem in random_problem()) {
        problem.max_computes = None;
        let plan = lowered(&problem, &[]);
        let found = replay(&problem, &plan).unwrap();
        let mut file = file(&problem, &plan, found.peak, found.duration);
        file.baseline_peak_bytes = found.peak;
        let checked = check_file(&problem, &file);
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
        file.baseline_peak_bytes = u64::MAX;
        let Err(CheckError::Rejected(rejection)) = check_file(&problem, &file) else {
            panic!("accepted");
        };
        prop_assert_eq!(rejection.codes(), [Code::V022]);
    }

    #[test]
    fn a_plan_that_keeps_the_budget_without_dma_keeps_it_with_dma_and_takes_no_longer(
        mut problem in random_problem(),
        paging in second_memory(Features::RULES),
        again in prop::collection::vec(any::<(Index, Index, bool)>(), 0..8),
    ) {
        problem.max_computes = None;
        problem.paging = Some(Paging { mode: PagingMode::Sync, ..paging });
        let plan = lowered(&problem, &again);
        problem.budget = replay(&problem, &plan).ok().map(|replay| replay.peak);
        let sync = replay(&problem, &plan);
        problem.paging = Some(Paging { mode: PagingMode::Dma, ..paging });
        let dma = replay(&problem, &plan);
        prop_assert_eq!(sync.is_ok(), dma.is_ok());
        if let (Ok(sync), Ok(dma)) = (sync, dma) {
            prop_assert!(dma.duration <= sync.duration && dma.energy == sync.energy);
        }
    }

    #[test]
    fn a_larger_budget_never_makes_a_plan_longer(
        mut problem in random_problem(),
        again in prop::collection::vec(any::<(Index, Index, bool)>(), 0..8),
        budgets in (0u64..300, 0u64..300),
    ) {
        problem.max_computes = None;
        let plan = lowered(&problem, &again);
        let mut duration = |budget| {
            problem.budget = Some(budget);
            replay(&problem, &plan).ok().map(|replay| replay.duration)
        };
        let (small, large) = (budgets.0.min(budgets.1), budgets.0.max(budgets.1));
        if let Some(tight) = duration(small) {
            prop_assert!(duration(large).is_some_and(|loose| loose <= tight));
        }
    }

    #[test]
    fn mutated_plans_break_the_rules_that_the_oracle_says(
        mut problem in random_problem(),
        again in prop::collection::vec(any::<(Index, Index, bool)>(), 0..4),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let mut plan = lowered(&problem, &again);
        for mutation in &mutations {
            mutate(&mut problem, &mut plan, mutation);
        }
        agrees(&problem, &plan);
    }

    #[test]
    fn random_steps_break_the_rules_that_the_oracle_says(
        problem in random_problem(),
        steps in prop::collection::vec((0u8..5, any::<Index>()), 0..30),
    ) {
        let steps = steps.iter().map(|&(kind, which)| random_step(&problem, kind, which)).collect();
        let plan = Plan { steps };
        agrees(&problem, &plan);
    }
}
