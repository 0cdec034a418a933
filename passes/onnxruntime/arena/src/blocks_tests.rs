//! Runs that follow their plans, that leave them, and that have nonsense for a plan.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;

use crate::blocks::{Blocks, Memory, Misfit, Origin, Thread};
use crate::cursor::Plans;
use crate::{ArenaPlan, PlannedBuffer};

/// Where addresses outside of blocks begin.
const OUTSIDE: usize = 1 << 40;
const GAP: usize = 1 << 20;

/// Address space that only remembers what was done to it.
#[derive(Clone, Default)]
struct Noted(Rc<RefCell<Notes>>);

#[derive(Default)]
struct Notes {
    mapped: BTreeMap<usize, usize>,
    maps: usize,
    /// What is about to be used of each mapping.
    expected: Vec<usize>,
    forgotten: Vec<Range<usize>>,
}

impl Memory for Noted {
    fn map(&self, bytes: usize, expected: usize) -> Option<usize> {
        let mut notes = self.0.borrow_mut();
        notes.maps += 1;
        notes.expected.push(expected);
        let base = notes.maps * GAP;
        assert!(bytes <= GAP);
        notes.mapped.insert(base, bytes);
        Some(base)
    }

    fn unmap(&self, start: usize, bytes: usize) {
        assert_eq!(self.0.borrow_mut().mapped.remove(&start), Some(bytes));
    }

    fn forget(&self, addresses: Range<usize>) {
        self.0.borrow_mut().forgotten.push(addresses);
    }
}

/// A session: what the runtime would see, checked at every step.
struct Session {
    blocks: Blocks<Noted>,
    memory: Noted,
    /// Live buffers by address.
    live: BTreeMap<usize, usize>,
    next_outside: usize,
}

impl Session {
    fn new(plans: &[ArenaPlan]) -> Self {
        let memory = Noted::default();
        Self {
            blocks: Blocks::new(Arc::new(Plans::new(plans)), memory.clone()),
            memory,
            live: BTreeMap::new(),
            next_outside: OUTSIDE,
        }
    }

    fn allocate(&mut self, thread: Thread, bytes: u64) -> usize {
        let size = usize::try_from(bytes).expect("it is small");
        let address = match self.blocks.allocate(thread, bytes) {
            Ok(address) => {
                let notes = self.memory.0.borrow();
                let block = notes.mapped.range(..=address).next_back();
                let (base, mapped) = block.expect("it lies in a block");
                assert!(address + size <= base + mapped, "it ends in its block");
                address
            }
            Err(origin) => {
                let address = self.next_outside;
                self.next_outside += size.next_multiple_of(64);
                self.blocks.adopt(address, bytes, origin);
                address
            }
        };
        let below = self.live.range(..address + size).next_back();
        assert!(
            below.is_none_or(|(&start, &size)| start + size <= address),
            "two live buffers overlap"
        );
        self.live.insert(address, size);
        self.check_forgotten();
        address
    }

    fn free(&mut self, address: usize) {
        assert!(self.live.remove(&address).is_some());
        assert_eq!(self.blocks.free(address), address < OUTSIDE);
        self.check_forgotten();
        // A block goes when nothing in it is live.
        let notes = self.memory.0.borrow();
        for &address in self.live.keys().filter(|&&address| address < OUTSIDE) {
            let (base, bytes) = notes.mapped.range(..=address).next_back().expect("it lies in a block");
            assert!(address < base + bytes);
        }
    }

    /// What was given back is no part of a live buffer.
    fn check_forgotten(&self) {
        for range in self.memory.0.borrow_mut().forgotten.drain(..) {
            let below = self.live.range(..range.end).next_back();
            assert!(
                below.is_none_or(|(&start, &size)| start + size <= range.start),
                "{range:?} is live"
            );
        }
    }

    /// A run that does what the plan says; the outputs.
    fn run(&mut self, thread: Thread, plan: &ArenaPlan) -> Vec<usize> {
        self.run_until(thread, plan, u64::MAX)
    }

    /// The same, aborted at a time: what is no output is freed.
    fn run_until(&mut self, thread: Thread, plan: &ArenaPlan, end: u64) -> Vec<usize> {
        let mut live: Vec<(u64, usize)> = Vec::new();
        let mut outputs = Vec::new();
        for buffer in plan.buffers.iter().take_while(|buffer| buffer.first < end) {
            let (ended, left) = live.into_iter().partition(|&(last, _)| last <= buffer.first);
            live = left;
            let ended: Vec<(u64, usize)> = ended;
            ended.into_iter().for_each(|(_, address)| self.free(address));
            let address = self.allocate(thread, buffer.bytes);
            if buffer.is_output {
                outputs.push(address);
            } else {
                live.push((buffer.last, address));
            }
        }
        live.into_iter().for_each(|(_, address)| self.free(address));
        outputs
    }

    fn free_all(&mut self, addresses: Vec<usize>) {
        addresses.into_iter().for_each(|address| self.free(address));
    }

    fn mapped(&self) -> usize {
        self.memory.0.borrow().mapped.len()
    }

    /// Loads a session with one weight.
    fn load(&mut self) -> usize {
        self.blocks.load_begins(1);
        let weight = self.allocate(1, 64);
        self.blocks.load_ends(1);
        weight
    }
}

fn buffer(bytes: u64, life: Range<u64>, offset: u64) -> PlannedBuffer {
    PlannedBuffer {
        bytes,
        first: life.start,
        last: life.end,
        offset: Some(offset),
        is_output: false,
    }
}

fn plan(buffers: Vec<PlannedBuffer>) -> ArenaPlan {
    let ends = buffers.iter().filter_map(|buffer| Some(buffer.offset? + buffer.bytes));
    ArenaPlan {
        threads: 1,
        inputs: Vec::new(),
        block_bytes: ends.max().unwrap_or(0).next_multiple_of(64),
        buffers,
    }
}

/// Three buffers and an output, of which the first and the third share their bytes; `size` is that of the second.
fn small(size: u64) -> ArenaPlan {
    let output = PlannedBuffer {
        is_output: true,
        ..buffer(100, 4..6, 0)
    };
    plan(vec![
        buffer(128, 0..3, 128),
        buffer(size, 1..5, 256),
        buffer(100, 3..5, 128),
        output,
    ])
}

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
fn a_run_is_expected_to_use_the_block_of_its_own_plan() {
    let (little, large) = (plan(vec![buffer(64, 0..1, 0)]), plan(vec![buffer(640, 0..1, 0)]));
    for (first, expected) in [(&little, 64), (&large, 640)] {
        let mut session = Session::new(&[little.clone(), large.clone()]);
        session.run(1, first);
        assert_eq!(session.memory.0.borrow().expected, [expected]);
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
        session.run_until(1, &plan, end);
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

#[test]
fn a_plan_with_all_offsets_0_is_refused_buffer_by_buffer() {
    let mut plan = small(64);
    plan.buffers.iter_mut().for_each(|buffer| buffer.offset = Some(0));
    let mut session = Session::new(std::slice::from_ref(&plan));
    session.run(1, &plan);
    let figures = session.blocks.figures();
    // The third begins when the first is gone.
    assert_eq!((figures.placed, figures.refused), (2, 2));
}

#[test]
fn runs_at_one_time_have_a_block_each() {
    let plan = small(64);
    let mut session = Session::new(std::slice::from_ref(&plan));
    let sizes: Vec<u64> = plan.buffers.iter().map(|buffer| buffer.bytes).collect();
    let first: Vec<usize> = sizes[..2].iter().map(|&size| session.allocate(1, size)).collect();
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
    let mut wrong = small(64);
    wrong.buffers.iter_mut().for_each(|buffer| buffer.offset = Some(0));
    let mut session = Session::new(std::slice::from_ref(&wrong));
    session.run(1, &wrong);
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
    assert_eq!(session.blocks.allocate(1, 128), Err(Origin::Load));
    // Another session of the same options may run meanwhile.
    session.run(2, &plan);
    assert_eq!(
        (session.blocks.figures().placed, session.blocks.figures().missed),
        (4, 0)
    );
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
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(64u64), Just(100), Just(128), 1..300u64]
}

fn any_plan() -> impl Strategy<Value = ArenaPlan> {
    let any_buffer = (sizes(), 1..6u64, 0..8u64, any::<bool>(), any::<bool>());
    proptest::collection::vec(any_buffer, 1..8).prop_map(|buffers| {
        let buffers = buffers
            .into_iter()
            .enumerate()
            .map(|(place, (bytes, life, offset, is_output, is_in))| {
                let first = place as u64 * 2;
                PlannedBuffer {
                    bytes,
                    first,
                    last: first + life,
                    offset: is_in.then_some(offset * 64),
                    is_output,
                }
            });
        plan(buffers.collect())
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..4u64, sizes()).prop_map(|(thread, bytes)| Step::Allocate(thread, bytes)),
        6 => any::<usize>().prop_map(Step::Free),
        1 => (1..4u64).prop_map(Step::LoadBegins),
        1 => (1..4u64).prop_map(Step::LoadEnds),
        1 => Just(Step::Look),
        1 => Just(Step::MakeRoom),
    ]
}

proptest! {
    #[test]
    fn no_plan_makes_two_live_buffers_overlap(
        plans in proptest::collection::vec(any_plan(), 0..3),
        steps in proptest::collection::vec(any_step(), 0..200),
    ) {
        let mut session = Session::new(&plans);
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
            }
        }
    }

    #[test]
    fn no_plan_makes_buffers_of_runs_that_follow_it_or_another_overlap(
        plans in proptest::collection::vec(any_plan(), 1..4),
        runs in proptest::collection::vec((0..8usize, 0..20u64, 1..3u64, any::<bool>()), 0..20),
    ) {
        // The last plan is one that the session does not know.
        let mut session = Session::new(&plans[..plans.len() - 1]);
        let mut held = Vec::new();
        for (place, end, thread, holds) in runs {
            let outputs = session.run_until(thread, &plans[place % plans.len()], end);
            if holds { held.extend(outputs) } else { session.free_all(outputs) }
        }
        session.free_all(held);
        prop_assert_eq!(session.blocks.figures().outside_bytes, 0);
    }
}
