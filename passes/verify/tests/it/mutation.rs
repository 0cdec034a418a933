//! Random plans, valid and mutated: the checker and the oracle agree on every rule.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{OpId, OrderMode, Paging, Plan, Problem, Step, StorageId, StorageRole, Structure, lower_sequence};
use remat_verify::{Code, replay};

use crate::net::{Net, Place};
use crate::oracle;

#[derive(Clone, Debug)]
struct RandomOp {
    reads: Vec<Index>,
    /// For each result: its kind, its size, and which operand it looks into if it is a view.
    results: Vec<(u8, u64, Index)>,
    workspace: u64,
    recomputable: bool,
    duration: u64,
}

fn random_op() -> impl Strategy<Value = RandomOp> {
    let results = prop::collection::vec((0u8..10, 0u64..50, any::<Index>()), 1..4);
    (
        prop::collection::vec(any::<Index>(), 0..4),
        results,
        prop_oneof![Just(0), 0u64..40],
        prop::bool::weighted(0.8),
        0u64..20,
    )
        .prop_map(|(reads, results, workspace, recomputable, duration)| RandomOp {
            reads,
            results,
            workspace,
            recomputable,
            duration,
        })
}

/// Problems with several results, views, graph outputs, constants, workspace and ops that are not recomputable.
fn random_problem() -> impl Strategy<Value = Problem> {
    let ops = prop::collection::vec(random_op(), 1..9);
    let most = prop::option::weighted(0.3, 1u32..3);
    let paging = prop::option::weighted(0.5, (0u64..1 << 21, 0u64..1 << 21));
    (ops, any::<bool>(), most, paging).prop_map(|(ops, fixed, most, paging)| build(&ops, fixed, most, paging))
}

fn build(ops: &[RandomOp], fixed: bool, most: Option<u32>, paging: Option<(u64, u64)>) -> Problem {
    let mut net = Net::new().input("x");
    for (id, op) in ops.iter().enumerate() {
        let tensors: Vec<String> = net.0.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let mut reads: Vec<&str> = op.reads.iter().map(|at| at.get(&tensors).as_str()).collect();
        reads.sort_unstable();
        reads.dedup();
        let names: Vec<String> = (0..op.results.len()).map(|result| format!("t{id}.{result}")).collect();
        let place = |&(kind, bytes, base): &(u8, u64, Index)| match kind {
            0 => Place::New(StorageRole::Kept, bytes),
            1 => Place::New(StorageRole::External, bytes),
            2..5 if !reads.is_empty() => Place::View(reads[base.index(reads.len())]),
            _ => Place::New(StorageRole::Transient, bytes),
        };
        let results: Vec<(&str, Place<'_>)> = names
            .iter()
            .map(String::as_str)
            .zip(op.results.iter().map(place))
            .collect();
        net = net
            .op(&format!("op{id}"), op.duration, &reads, &results)
            .with(|problem| {
                let entry = problem.ops.last_mut().unwrap();
                entry.workspace = op.workspace;
                entry.recomputable = op.recomputable;
            });
    }
    let with_limits = net.with(|problem| {
        problem.order = if fixed { OrderMode::Fixed } else { OrderMode::Free };
        problem.max_computes = most;
        problem.paging = paging.map(|(out_ns_per_mib, in_ns_per_mib)| Paging {
            out_ns_per_mib,
            in_ns_per_mib,
        });
    });
    with_limits.done()
}

/// The reference order with `again` inserted where it can be lowered.
fn lowered(problem: &Problem, again: &[(Index, Index)]) -> Plan {
    let structure = Structure::of(problem);
    let mut sequence: Vec<OpId> = structure.scheduled().collect();
    let mut plan = lower_sequence(problem, &structure, sequence.iter().copied()).unwrap();
    for (place, which) in again {
        let place = place.index(sequence.len());
        let op = sequence[..=place][which.index(place + 1)];
        if !problem.ops[op].recomputable {
            continue;
        }
        let mut longer = sequence.clone();
        longer.insert(place + 1, op);
        // Some results that are views cannot be made again on demand: their ops also create memory.
        if let Ok(found) = lower_sequence(problem, &structure, longer.iter().copied()) {
            (sequence, plan) = (longer, found);
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
        Mutation::Insert(..) => {}
    }
}

fn codes(problem: &Problem, plan: &Plan) -> BTreeSet<Code> {
    replay(problem, plan).map_or_else(|rejection| rejection.codes().into_iter().collect(), |_| BTreeSet::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lowered_sequences_are_valid_with_the_figures_of_the_oracle(
        mut problem in random_problem(),
        again in prop::collection::vec(any::<(Index, Index)>(), 0..6),
    ) {
        problem.max_computes = None;
        let plan = lowered(&problem, &again);
        let replay = replay(&problem, &plan);
        prop_assert!(replay.is_ok(), "{}", replay.unwrap_err());
        let replay = replay.unwrap();
        let verdict = oracle::judge(&problem, &plan);
        prop_assert_eq!(verdict.codes, BTreeSet::new());
        prop_assert_eq!((u128::from(replay.peak), u128::from(replay.duration)), (verdict.peak, verdict.duration));
        prop_assert_eq!(replay.recomputes, plan.recomputes());
        problem.budget = Some(replay.peak);
        prop_assert_eq!(codes(&problem, &plan), BTreeSet::new());
        if replay.peak > 0 {
            problem.budget = Some(replay.peak - 1);
            prop_assert_eq!(codes(&problem, &plan), BTreeSet::from([Code::V006]));
        }
    }

    #[test]
    fn mutated_plans_break_the_rules_that_the_oracle_says(
        mut problem in random_problem(),
        again in prop::collection::vec(any::<(Index, Index)>(), 0..4),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let mut plan = lowered(&problem, &again);
        for mutation in &mutations {
            mutate(&mut problem, &mut plan, mutation);
        }
        prop_assert_eq!(codes(&problem, &plan), oracle::judge(&problem, &plan).codes);
    }

    #[test]
    fn random_steps_break_the_rules_that_the_oracle_says(
        problem in random_problem(),
        steps in prop::collection::vec((0u8..5, any::<Index>()), 0..30),
    ) {
        let steps = steps.iter().map(|&(kind, which)| random_step(&problem, kind, which)).collect();
        let plan = Plan { steps };
        prop_assert_eq!(codes(&problem, &plan), oracle::judge(&problem, &plan).codes);
    }
}
