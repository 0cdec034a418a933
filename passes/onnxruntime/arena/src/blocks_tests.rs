//! Runs that follow their plans, that leave them, and that have nonsense for a plan.

use proptest::prelude::*;

use crate::account::{Credit, Denied, Turn};
use crate::blocks::{Elsewhere, Misfit, Origin};
use crate::fake::{Session, buffer, chain, open, plan, sized, small};
use crate::formula::{Derived, Formula, values};
use crate::ledger::Thread;
use crate::plans::Plans;
use crate::{ArenaPlan, PlannedBuffer};

#[test]
fn every_buffer_of_every_run_gets_its_offset_in_one_block() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    for _ in 0..3 {
        let outputs = session.run(1, &plan);
        session.free_all(outputs);
    }
    let figures = session.blocks.figures();
    assert_eq!(
        (figures.runs, figures.placed, figures.missed, figures.refused),
        (3, 12, 0, 0)
    );
    assert_eq!(
        (figures.blocks, figures.block_bytes, figures.most_outside_bytes),
        (1, 320, 0)
    );
}

#[test]
fn a_block_that_is_too_small_for_a_run_makes_room_for_another() {
    let (little, large) = (plan(vec![buffer(64, 0..1, 0)]), plan(vec![buffer(640, 0..1, 0)]));
    let mut session = Session::new(&[little.clone(), large.clone()]);
    session.memory.notes().room = Some(100);
    session.run(1, &little);
    session.memory.notes().room = None;
    session.run(1, &large);
    session.run(1, &little);
    let figures = session.blocks.figures();
    assert_eq!((figures.placed, figures.refused, figures.blocks), (3, 0, 1));
}

#[test]
fn a_run_is_expected_to_use_the_block_of_its_own_plan() {
    let (little, large) = (plan(vec![buffer(64, 0..1, 0)]), plan(vec![buffer(640, 0..1, 0)]));
    for (first, expected) in [(&little, 64), (&large, 640)] {
        let mut session = Session::new(&[little.clone(), large.clone()]);
        session.run(1, first);
        assert_eq!(session.memory.notes().expected, [expected]);
        assert_eq!(session.blocks.figures().block_bytes, 640);
    }
}

#[test]
fn outputs_that_are_held_send_the_next_run_to_another_block_and_the_rest_of_theirs_is_given_back() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    let mut held = Vec::new();
    for _ in 0..10 {
        let outputs = session.run(1, &plan);
        session.free_all(std::mem::replace(&mut held, outputs));
    }
    let figures = session.blocks.figures();
    assert_eq!(
        (figures.placed, figures.missed, figures.refused, figures.blocks),
        (40, 0, 0, 2)
    );
}

#[test]
fn many_outputs_may_be_held_and_blocks_that_nobody_needs_are_given_back() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    let held: Vec<Vec<usize>> = (0..10).map(|_| session.run(1, &plan)).collect();
    assert_eq!(session.mapped(), 10);
    held.into_iter().for_each(|outputs| session.free_all(outputs));
    for _ in 0..100 {
        let outputs = session.run(1, &plan);
        session.free_all(outputs);
    }
    assert_eq!((session.mapped(), session.blocks.figures().refused), (1, 0));
}

#[test]
fn a_run_begins_anew_after_one_that_was_aborted_wherever_that_was() {
    let plan = small(64);
    for end in 1..6 {
        let mut session = Session::new(std::slice::from_ref(&plan));
        session.run_until(1, &plan, &[], end);
        let before = session.blocks.figures();
        // What follows an aborted run is none of its plan's.
        session.run(1, &plan);
        let figures = session.blocks.figures();
        assert_eq!(figures.placed - before.placed, 4, "aborted at {end}");
        assert_eq!((figures.missed, figures.refused), (0, 0), "aborted at {end}");
    }
}

#[test]
fn runs_follow_the_plan_of_their_shapes_and_what_no_plan_foresees_stays_outside() {
    let plans = [small(64), small(192)];
    let mut session = Session::new(&plans);
    for place in [0, 1, 1, 0, 1] {
        let outputs = session.run(1, &plans[place]);
        session.free_all(outputs);
    }
    assert_eq!(
        (session.blocks.figures().placed, session.blocks.figures().missed),
        (20, 0)
    );
    let outputs = session.run(1, &small(32));
    session.free_all(outputs);
    assert!(session.blocks.figures().missed > 0);
    // It goes on as if nothing had been.
    let before = session.blocks.figures();
    session.run(1, &plans[1]);
    assert_eq!(session.blocks.figures().missed, before.missed);
    assert_eq!(session.blocks.figures().placed, before.placed + 4);
}

/// A plan whose buffers are said to be live one after the other.
fn one_after_the_other() -> ArenaPlan {
    let mut wrong = small(64);
    wrong
        .buffers
        .iter_mut()
        .for_each(|buffer| buffer.last = buffer.first + 1);
    wrong
}

#[test]
fn a_plan_with_wrong_lives_is_refused_buffer_by_buffer() {
    let mut session = Session::new(&[one_after_the_other()]);
    session.run(1, &small(64));
    let figures = session.blocks.figures();
    // The third begins when the first is gone.
    assert_eq!((figures.placed, figures.refused), (2, 2));
}

#[test]
fn runs_at_one_time_have_a_block_each() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    let first: Vec<usize> = [128, 64].map(|size| session.allocate(1, size)).to_vec();
    session.run(2, &plan);
    session.free_all(first);
    let figures = session.blocks.figures();
    assert_eq!(
        (figures.runs, figures.placed, figures.refused, figures.blocks),
        (2, 6, 0, 2)
    );
}

#[test]
fn blocks_go_with_the_session_and_one_with_outputs_when_they_do() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    for _ in 0..2 {
        let weight = session.load();
        let held = session.run(1, &plan);
        let outputs = session.run(1, &plan);
        session.free_all(outputs);
        assert_eq!(session.mapped(), 2);
        session.free(weight);
        assert_eq!(session.mapped(), 1);
        session.free_all(held);
        assert_eq!(session.mapped(), 0);
    }
    assert_eq!(session.blocks.figures().at_load, 2);
}

#[test]
fn blocks_of_a_session_without_weights_go_when_no_run_used_them_between_two_looks() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    assert!(!session.blocks.asks_for_watch(), "there is no block yet");
    let outputs = session.run(1, &plan);
    assert!(session.blocks.asks_for_watch());
    assert!(!session.blocks.asks_for_watch(), "it asks once");
    assert!(session.blocks.look());
    assert!(session.blocks.look(), "outputs are held");
    session.free_all(outputs);
    assert!(session.blocks.look(), "it was used since the last look");
    let outputs = session.run(1, &plan);
    session.free_all(outputs);
    assert!(session.blocks.look(), "a run began since");
    assert!(!session.blocks.look());
    assert_eq!(session.mapped(), 0);
    // One that is alive all the same takes another block, and asks again.
    session.run(1, &plan);
    assert_eq!(session.blocks.figures().missed, 0);
    assert!(session.blocks.asks_for_watch());
}

#[test]
fn another_session_takes_idle_blocks_of_sessions_without_weights_only() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    let outputs = session.run(1, &plan);
    session.blocks.make_room();
    assert_eq!(session.mapped(), 1, "outputs are held");
    session.free_all(outputs);
    session.blocks.make_room();
    assert_eq!(session.mapped(), 0);
    session.load();
    let outputs = session.run(1, &plan);
    session.free_all(outputs);
    assert!(!session.blocks.asks_for_watch());
    session.blocks.make_room();
    assert!(!session.blocks.look());
    assert_eq!(session.mapped(), 1);
}

#[test]
fn the_first_buffer_that_the_plan_does_not_serve_is_told_once() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    session.run(1, &plan);
    assert_eq!(session.blocks.take_misfit(), None);
    session.run(1, &small(32));
    assert_eq!(
        session.blocks.take_misfit(),
        Some(Misfit::Missed { place: 1, bytes: 32 })
    );
    session.run(1, &small(32));
    assert_eq!(session.blocks.take_misfit(), None);
    let mut session = Session::new(&[one_after_the_other()]);
    session.run(1, &small(64));
    assert_eq!(
        session.blocks.take_misfit(),
        Some(Misfit::Refused { place: 1, bytes: 64 })
    );
}

#[test]
fn what_is_allocated_while_a_session_loads_is_none_of_a_run() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    session.blocks.load_begins(1);
    let credit = &mut Credit::default();
    assert_eq!(
        session.blocks.allocate(1, 128, credit),
        Err(Elsewhere::Outside(Origin::Load))
    );
    // Another session of the same options may run meanwhile.
    session.run(2, &plan);
    assert_eq!(
        (session.blocks.figures().placed, session.blocks.figures().missed),
        (4, 0)
    );
}

#[test]
fn runs_of_any_shape_are_placed_and_take_no_more_than_theirs() {
    let file = chain();
    let plans = Plans::new(&file);
    let mut session = Session::of(&file);
    let mut placed = 0;
    for (batch, length) in [
        (1, 1),
        (16, 64),
        (3, 7),
        (7, 3),
        (3, 7),
        (16, 64),
        (1, 21),
        (21 % 16, 4),
        (2, 32),
        (4, 16),
        (8, 8),
    ] {
        let variables = values(&[batch, length], &file.derived).expect("it is small");
        for _ in 0..2 {
            let outputs = session.run_at(1, &file.plans[0], &variables);
            session.free_all(outputs);
            placed += 6;
            let figures = session.blocks.figures();
            assert_eq!(
                (figures.placed, figures.missed, figures.refused),
                (placed, 0, 0),
                "{batch} x {length}"
            );
        }
        assert!(session.blocks.figures().most_used_bytes <= plans.block_bytes());
        let shape = plans.shape(0, &[batch, length]).expect("it is small");
        assert!(shape.load_bytes(&plans) <= shape.block_bytes() && shape.block_bytes() <= plans.block_bytes());
    }
    assert_eq!(session.blocks.figures().blocks, 1);
}

#[test]
fn pages_go_back_when_runs_or_looks_did_not_need_them() {
    let file = chain();
    let plans = Plans::new(&file);
    let block_bytes = |dims: [u64; 2]| plans.shape(0, &dims).expect("it is small").block_bytes();
    let mut session = Session::of(&file);
    let run = |session: &mut Session, dims: [u64; 2]| {
        let outputs = session.run_at(1, &file.plans[0], &values(&dims, &file.derived).expect("it is small"));
        session.free_all(outputs);
        session.blocks.figures().used_bytes
    };
    let weight = session.load();
    assert!(run(&mut session, [16, 64]) > block_bytes([16, 64]) - 64);
    assert!(!session.blocks.asks_for_watch());
    let large = session.blocks.figures().used_bytes;
    let after: Vec<u64> = (0..20).map(|_| run(&mut session, [2, 8])).collect();
    assert_eq!(after[4], large, "it may be needed again");
    assert!(after[19] <= block_bytes([2, 8]), "{after:?}");
    run(&mut session, [16, 64]);
    run(&mut session, [2, 8]);
    assert!(session.blocks.asks_for_watch());
    assert!(session.blocks.look() && session.blocks.figures().used_bytes == large);
    assert!(!session.blocks.look());
    assert!(session.blocks.figures().used_bytes <= block_bytes([2, 8]));
    session.blocks.trim();
    assert_eq!(session.blocks.figures().used_bytes, 0);
    session.free(weight);
}

/// What a thread of a session does.
#[derive(Clone, Debug)]
enum Step {
    Allocate(Thread, u64),
    Free(usize),
    LoadBegins(Thread),
    LoadEnds(Thread),
    Look,
    MakeRoom,
    Trim,
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(64u64), Just(100), Just(128), 1..300u64]
}

/// A size of a buffer: a number, or a formula in a dimension and its half.
fn any_size() -> impl Strategy<Value = Formula> {
    let constant = |bytes: u64| Formula::constant(i64::try_from(bytes).expect("it is small"));
    let open = (1..4i64, 0..2usize, -8..64i64)
        .prop_map(|(factor, variable, more)| Formula::sum([(32 * factor, vec![(variable, 1)]), (more, Vec::new())]));
    prop_oneof![sizes().prop_map(constant), open]
}

fn any_plan() -> impl Strategy<Value = ArenaPlan> {
    let any_buffer = (
        any_size(),
        1..6u64,
        0..8u32,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let buffers = proptest::collection::vec(any_buffer, 1..8);
    (buffers, 0..4usize).prop_map(|(buffers, first)| {
        let places = (0u64..).zip(buffers);
        let buffers = places.map(
            |(place, (size, life, rank, is_output, is_in, is_exact))| PlannedBuffer {
                is_exact,
                is_output,
                ranks: is_in.then(|| vec![rank]),
                ..sized(size, place * 2..place * 2 + life, rank)
            },
        );
        ArenaPlan {
            first,
            ..plan(buffers.collect())
        }
    })
}

fn half() -> Vec<Derived> {
    vec![Derived::Quotient(Formula::variable(0), 2)]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..4u64, sizes()).prop_map(|(thread, bytes)| Step::Allocate(thread, bytes)),
        6 => any::<usize>().prop_map(Step::Free),
        1 => (1..4u64).prop_map(Step::LoadBegins),
        1 => (1..4u64).prop_map(Step::LoadEnds),
        1 => Just(Step::Look),
        1 => Just(Step::MakeRoom),
        1 => Just(Step::Trim),
    ]
}

proptest! {
    #[test]
    fn no_plan_makes_two_live_buffers_overlap(
        plans in proptest::collection::vec(any_plan(), 0..3),
        steps in proptest::collection::vec(any_step(), 0..200),
    ) {
        let mut session = Session::of(&open(&plans, &[(1, 9)], half()));
        for step in steps {
            match step {
                Step::Allocate(thread, bytes) => _ = session.allocate(thread, bytes),
                Step::Free(place) => {
                    let place = place % session.live.len().max(1);
                    let address = session.live.keys().nth(place).copied();
                    address.into_iter().for_each(|address| session.free(address));
                }
                Step::LoadBegins(thread) => session.blocks.load_begins(thread),
                Step::LoadEnds(thread) => session.blocks.load_ends(thread),
                Step::Look => _ = session.blocks.look(),
                Step::MakeRoom => session.blocks.make_room(),
                Step::Trim => _ = session.blocks.trim(),
            }
            session.check_forgotten();
        }
    }

    #[test]
    fn no_plan_makes_buffers_of_runs_that_follow_it_or_another_overlap(
        plans in proptest::collection::vec(any_plan(), 1..4),
        runs in proptest::collection::vec((0..8usize, 0..20u64, 1..3u64, any::<bool>(), 1..12u64), 0..20),
    ) {
        // The last plan is one that the session does not know.
        let mut session = Session::of(&open(&plans[..plans.len() - 1], &[(1, 9)], half()));
        let mut held = Vec::new();
        for (place, end, thread, holds, dim) in runs {
            let variables = values(&[dim], &half()).expect("it is small");
            let outputs = session.run_until(thread, &plans[place % plans.len()], &variables, end);
            if holds { held.extend(outputs) } else { session.free_all(outputs) }
        }
        session.free_all(held);
        prop_assert_eq!(session.blocks.figures().outside_bytes, 0);
    }

    #[test]
    fn runs_of_random_shapes_are_placed_whatever_came_before(
        shapes in proptest::collection::vec((1..=16u64, 1..=64u64), 1..40),
    ) {
        let file = chain();
        let mut session = Session::of(&file);
        for &(batch, length) in &shapes {
            let variables = values(&[batch, length], &file.derived).expect("it is small");
            let outputs = session.run_at(1, &file.plans[0], &variables);
            session.free_all(outputs);
        }
        let figures = session.blocks.figures();
        prop_assert_eq!((figures.placed, figures.missed, figures.refused), (6 * shapes.len() as u64, 0, 0));
        prop_assert!(figures.shapes <= shapes.len() as u64);
    }
}

#[test]
fn a_run_has_its_turn_in_a_shared_block_while_a_buffer_there_is_live_that_is_no_output() {
    let small = small(64);
    let mut session = Session::new(std::slice::from_ref(&small));
    session.memory.notes().is_shared = true;
    let turn = |turn| Credit {
        turn: Some(turn),
        ..Credit::default()
    };
    let left = |session: &Session| session.memory.notes().left;
    let asked = session.try_allocate(1, 128, &mut Credit::default());
    assert_eq!(asked, Err(Denied::Turn));
    let first = session
        .try_allocate(1, 128, &mut turn(Turn::Taken))
        .expect("it has its turn");
    let second = session.allocate(1, 64);
    session.free(first);
    let third = session.allocate(1, 100);
    let output = session.allocate(1, 100);
    assert_eq!(left(&session), 0);
    session.free(second);
    session.free(third);
    assert_eq!(left(&session), 1, "the output is live, and lies elsewhere");
    assert_eq!(session.blocks.figures().used_bytes, 0, "the bytes are those of others");
    let figures = session.blocks.figures();
    assert_eq!((figures.placed, figures.planned_outside, figures.refused), (3, 1, 0));
    // Without a turn all lies elsewhere, and one that is not needed is handed back.
    let first = session
        .try_allocate(1, 128, &mut turn(Turn::Refused))
        .expect("the heap has it");
    let other = session
        .try_allocate(1, 4096, &mut turn(Turn::Taken))
        .expect("the heap has it");
    assert_eq!((left(&session), session.blocks.figures().placed), (2, 3));
    session.free_all(vec![first, other, output]);
}
