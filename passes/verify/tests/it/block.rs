//! Random placements of random plans, valid and mutated: the checker and bytes that are painted one by one agree on every rule.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{Block, BlockPlacement, PagingMode, PlacedInterval, Plan, Problem, Resident, StorageId, StorageRole};
use remat_verify::{Code, Interval, check_block, intervals, replay};

use crate::mutation::{lowered, random_problem};
use crate::oracle;

/// Every interval above the ones before.
fn stacked(needed: &[Interval], alignment: u64) -> BlockPlacement {
    let mut end: u64 = 0;
    let mut place = |interval: &Interval| {
        let offset = end.next_multiple_of(alignment);
        end = offset + interval.bytes;
        PlacedInterval {
            step: interval.steps.start,
            what: interval.what,
            offset,
        }
    };
    let intervals = needed.iter().map(&mut place).collect();
    BlockPlacement {
        block: Block {
            bytes: end,
            alignment,
            outputs_bytes: None,
            certificate: None,
        },
        intervals,
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Move(Index, u64),
    Onto(Index, Index),
    Drop(Index),
    Again(Index),
    Elsewhere(Index, Index),
    Shrink(u64),
    Align(u64),
    Outputs(u64),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        3 => (any::<Index>(), 0u64..300).prop_map(|(which, offset)| Mutation::Move(which, offset)),
        3 => any::<(Index, Index)>().prop_map(|(which, other)| Mutation::Onto(which, other)),
        1 => any::<Index>().prop_map(Mutation::Drop),
        1 => any::<Index>().prop_map(Mutation::Again),
        1 => any::<(Index, Index)>().prop_map(|(which, step)| Mutation::Elsewhere(which, step)),
        1 => (0u64..20).prop_map(Mutation::Shrink),
        1 => (1u64..5).prop_map(Mutation::Align),
        1 => (0u64..200).prop_map(Mutation::Outputs),
    ]
}

fn mutate(placement: &mut BlockPlacement, steps: usize, mutation: &Mutation) {
    let all = &mut placement.intervals;
    if all.is_empty() {
        return;
    }
    let count = all.len();
    match mutation {
        Mutation::Move(which, offset) => all[which.index(count)].offset = *offset,
        Mutation::Onto(which, other) => all[which.index(count)].offset = all[other.index(count)].offset,
        Mutation::Drop(which) => drop(all.remove(which.index(count))),
        Mutation::Again(which) => all.push(all[which.index(count)]),
        Mutation::Elsewhere(which, step) => all[which.index(count)].step = step.index(steps),
        Mutation::Shrink(by) => placement.block.bytes = placement.block.bytes.saturating_sub(*by),
        Mutation::Align(alignment) => placement.block.alignment = *alignment,
        Mutation::Outputs(bytes) => placement.block.outputs_bytes = Some(*bytes),
    }
    placement.intervals.sort_unstable();
}

/// The rules that a placement breaks, byte by byte and step by step.
fn painted(problem: &Problem, plan: &Plan, placement: &BlockPlacement) -> BTreeSet<Code> {
    let mut codes = BTreeSet::new();
    let mut places: BTreeMap<(usize, Resident), u64> = BTreeMap::new();
    let residents = oracle::residents(problem, plan);
    let begun: BTreeSet<(usize, Resident)> = residents
        .iter()
        .flatten()
        .map(|&(step, what, _)| (step, what))
        .collect();
    for placed in &placement.intervals {
        let key = (placed.step, placed.what);
        if !begun.contains(&key) || places.insert(key, placed.offset).is_some() {
            codes.insert(Code::P009);
        }
    }
    // Of two offsets for the same interval, the first one counts.
    for placed in placement.intervals.iter().rev() {
        places.insert((placed.step, placed.what), placed.offset);
    }
    let is_output = |what: Resident, began: usize| {
        let kept = |id: StorageId| problem.storages[id].role == StorageRole::LiveOut;
        // A duplicate stands behind what it is a duplicate of.
        let last = residents.last().unwrap().iter().find(|&&(_, other, _)| other == what);
        matches!(what, Resident::Storage(id) if kept(id)) && last.is_some_and(|&(step, _, _)| step == began)
    };
    let block = &placement.block;
    for now in &residents {
        let mut paint = BTreeSet::new();
        for &(step, what, bytes) in now {
            let Some(&offset) = places.get(&(step, what)) else {
                codes.insert(Code::P004);
                continue;
            };
            if offset % block.alignment != 0 {
                codes.insert(Code::P003);
            }
            if offset + bytes > block.bytes {
                codes.insert(Code::P002);
            }
            if block.outputs_bytes.is_some_and(|end| offset + bytes > end) && is_output(what, step) {
                codes.insert(Code::P005);
            }
            if (offset..offset + bytes).filter(|&byte| !paint.insert(byte)).count() > 0 {
                codes.insert(Code::P001);
            }
        }
    }
    codes
}

fn codes(problem: &Problem, plan: &Plan, placement: &BlockPlacement) -> BTreeSet<Code> {
    let found = replay(problem, plan).unwrap();
    let checked = check_block(problem, plan, &found, placement);
    checked.map_or_else(|rejection| rejection.codes().into_iter().collect(), |_| BTreeSet::new())
}

/// A problem without limits, and a plan of it.
fn planned() -> impl Strategy<Value = (Problem, Plan)> {
    let again = prop::collection::vec(any::<(Index, Index, bool)>(), 0..6);
    (random_problem(), again).prop_map(|(mut problem, again)| {
        problem.max_computes = None;
        if let Some(paging) = &mut problem.paging {
            paging.capacity = None;
        }
        let plan = lowered(&problem, &again);
        (problem, plan)
    })
}

fn is_dma(problem: &Problem) -> bool {
    problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma)
}

proptest! {
    #![proptest_config(remat_testing::cases(512))]

    #[test]
    fn intervals_are_what_counts_at_each_step((problem, plan) in planned()) {
        let found = replay(&problem, &plan).unwrap();
        let needed = intervals(&problem, &plan, &found);
        let during = |step: usize| {
            let now = needed.iter().filter(|interval| interval.steps.contains(&step));
            now.map(|interval| interval.bytes).sum::<u64>()
        };
        let load = (0..plan.steps.len()).map(during).max().unwrap_or(0);
        prop_assert_eq!(check_block(&problem, &plan, &found, &stacked(&needed, 1)).unwrap().load, load);
        if is_dma(&problem) {
            prop_assert!(load >= found.peak);
            return Ok(());
        }
        prop_assert_eq!(load, found.peak);
        for (step, residents) in oracle::residents(&problem, &plan).into_iter().enumerate() {
            let now = needed.iter().filter(|interval| interval.steps.contains(&step));
            let mut now: Vec<_> = now.map(|interval| (interval.steps.start, interval.what, interval.bytes)).collect();
            let mut residents = residents;
            now.sort_unstable();
            residents.sort_unstable();
            prop_assert_eq!(now, residents, "step {}", step);
        }
    }

    #[test]
    fn mutated_placements_break_the_rules_that_painting_says(
        (mut problem, plan) in planned(),
        alignment in 1u64..4,
        mutations in prop::collection::vec(mutation(), 0..4),
    ) {
        if let Some(paging) = &mut problem.paging {
            paging.mode = PagingMode::Sync;
        }
        let found = replay(&problem, &plan).unwrap();
        let mut placement = stacked(&intervals(&problem, &plan, &found), alignment);
        for mutation in &mutations {
            mutate(&mut placement, plan.steps.len(), mutation);
        }
        prop_assert_eq!(codes(&problem, &plan, &placement), painted(&problem, &plan, &placement));
    }

    #[test]
    fn with_dma_no_byte_is_given_away_before_its_transfer_has_ended((mut problem, plan) in planned()) {
        let Some(paging) = &mut problem.paging else { return Ok(()) };
        paging.mode = PagingMode::Dma;
        let found = replay(&problem, &plan).unwrap();
        let needed = intervals(&problem, &plan, &found);
        for (position, step) in plan.steps.iter().enumerate() {
            let remat_plan::Step::PageOut(storage) = *step else { continue };
            let ends = |interval: &&Interval| {
                interval.what == Resident::Storage(storage) && interval.steps.start < position && interval.steps.end >= position
            };
            let Some(last) = needed.iter().rfind(ends) else { continue };
            let moved = found.times[position];
            for (later, step) in plan.steps.iter().enumerate().skip(position + 1) {
                let runs = matches!(step, remat_plan::Step::Compute(_) | remat_plan::Step::Recompute(_));
                if runs && found.times[later].start < moved.end {
                    prop_assert!(last.steps.contains(&later), "{:?} at {}", last, later);
                }
            }
        }
    }
}
