//! Sessions whose runs share a limit: what is reserved when, and threads that wait for each other.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use crate::account::{Account, Credit, Denied, insist};
use crate::fake::{Session, buffer, chain, file, plan, small};
use crate::formula::values;
use crate::ledger::Thread;
use crate::limit::Limit;
use crate::plans::Plans;
use crate::{ArenaPlan, ArenaPlanFile, PlannedBuffer};

/// What a run of `small(64)` needs.
const SMALL: u64 = 320;

fn under(limit: &Arc<Limit>, bytes: u64, file: &ArenaPlanFile) -> Session {
    Session::under(file, Account::new(Arc::clone(limit), Some(bytes), true))
}

fn reserved(limit: &Limit) -> u64 {
    limit.reserved().0
}

/// An allocation of a thread that would have to wait.
fn is_short(session: &mut Session, thread: Thread, bytes: u64) -> bool {
    matches!(
        session.try_allocate(thread, bytes, &mut Credit::default()),
        Err(Denied::Short(_))
    )
}

#[test]
fn a_run_has_its_whole_need_from_its_first_buffer_to_its_last_one_and_then_what_it_leaves() {
    let limit = Arc::default();
    let mut session = under(&limit, 1000, &file(&[small(64)]));
    let first = session.allocate(1, 128);
    assert_eq!(reserved(&limit), SMALL);
    session.free(first);
    assert_eq!(reserved(&limit), 128, "nothing is live, but the pages are kept");
    let first = session.allocate(1, 128);
    let second = session.allocate(1, 64);
    session.free(first);
    assert_eq!(reserved(&limit), SMALL);
    session.free(second);
    assert!(session.trim() > 0);
    assert_eq!(reserved(&limit), 0);
}

#[test]
fn outputs_that_are_held_count_with_their_own_bytes() {
    let limit = Arc::default();
    let small = small(64);
    let mut session = under(&limit, 1000, &file(std::slice::from_ref(&small)));
    let held = session.run(1, &small);
    let other = session.run(1, &small);
    session.trim();
    assert_eq!((held.len(), reserved(&limit)), (1, 200));
    session.free_all(held);
    session.free_all(other);
    session.trim();
    assert_eq!((reserved(&limit), session.blocks.figures().used_bytes), (0, 0));
}

#[test]
fn a_run_that_does_not_fit_waits_until_another_one_is_over_and_takes_its_pages() {
    let limit: Arc<Limit> = Arc::default();
    let small = small(64);
    let mut session = under(&limit, SMALL + 120, &file(std::slice::from_ref(&small)));
    let first = session.allocate(1, 128);
    assert!(is_short(&mut session, 2, 128));
    session.free(first);
    assert!(is_short(&mut session, 2, 128), "its pages are kept");
    session.trim();
    session.run(2, &small);
    session.trim();
    // While an allocation looks for bytes, a run that ends gives its pages back by itself.
    let first = session.allocate(1, 128);
    let shortage = limit.shortage();
    session.free(first);
    drop(shortage);
    assert_eq!(reserved(&limit), 100, "the output of the second run");
}

#[test]
fn a_run_that_is_aborted_or_refused_leaves_nothing() {
    let small = small(64);
    for end in 1..6 {
        let limit = Arc::default();
        let mut session = under(&limit, 1000, &file(std::slice::from_ref(&small)));
        let outputs = session.run_until(1, &small, &[], end);
        session.free_all(outputs);
        session.trim();
        assert_eq!(reserved(&limit), 0, "aborted at {end}");
    }
    let limit = Arc::default();
    let mut session = under(&limit, SMALL - 1, &file(std::slice::from_ref(&small)));
    for thread in 1..4 {
        let credit = &mut Credit::default();
        let denied = session.try_allocate(thread, 128, credit);
        assert!(matches!(denied, Err(Denied::Refused(request, 0)) if request.need == SMALL));
        session.blocks.refuse(thread);
    }
    let figures = session.blocks.figures();
    assert_eq!(
        (figures.refused_runs, figures.limit_bytes, figures.blocks),
        (3, SMALL - 1, 1)
    );
    assert_eq!((figures.reserved_bytes, figures.most_reserved_bytes), (0, 0));
}

#[test]
fn what_is_planned_outside_is_part_of_the_need() {
    let limit = Arc::default();
    let outside = |buffer: PlannedBuffer| PlannedBuffer { ranks: None, ..buffer };
    let output = PlannedBuffer {
        is_output: true,
        ..outside(buffer(300, 3..6, 0))
    };
    let plan = plan(vec![
        buffer(128, 0..4, 0),
        outside(buffer(500, 1..2, 0)),
        outside(buffer(500, 2..3, 0)),
        output,
    ]);
    let mut session = under(&limit, 1000, &file(std::slice::from_ref(&plan)));
    let first = session.allocate(1, 128);
    assert_eq!(reserved(&limit), 628);
    session.free(first);
    session.trim();
    let outputs = session.run(1, &plan);
    session.trim();
    assert_eq!(reserved(&limit), 300);
    let more = session.run(1, &plan);
    session.trim();
    assert_eq!((reserved(&limit), limit.reserved().1), (600, 928));
    session.free_all(outputs);
    session.free_all(more);
    assert_eq!(session.blocks.figures().reserved_bytes, 0);
}

#[test]
fn what_no_plan_foresees_counts_and_is_refused_where_no_run_would_make_room() {
    let limit: Arc<Limit> = Arc::default();
    let mut session = under(&limit, 1000, &file(&[small(64)]));
    let first = session.allocate(1, 777);
    assert_eq!((reserved(&limit), session.blocks.figures().missed), (777, 1));
    let Err(Denied::Short(request)) = session.try_allocate(1, 333, &mut Credit::default()) else {
        panic!("it does not fit");
    };
    assert_eq!(limit.wait(request), crate::ledger::Verdict::Refused(777));
    session.free(first);
    assert_eq!(reserved(&limit), 0);
}

#[test]
fn a_session_that_is_gone_leaves_nothing() {
    let limit = Arc::default();
    let small = small(64);
    let mut session = under(&limit, 1000, &file(std::slice::from_ref(&small)));
    let weight = session.load();
    let held = session.run(1, &small);
    session
        .run(2, &small)
        .into_iter()
        .for_each(|output| session.free(output));
    assert!(reserved(&limit) > 0);
    session.free(weight);
    session.free_all(held);
    assert_eq!(reserved(&limit), 0);
}

#[test]
fn a_run_whose_shape_is_not_certain_has_the_most_it_may_need_or_what_it_takes() {
    let mut file = chain();
    file.plans[0].first = 4;
    let plans = Plans::new(&file);
    let most = plans.block_bytes();
    let limit: Arc<Limit> = Arc::default();
    let mut session = under(&limit, most, &file);
    let variables = values(&[2, 4], &file.derived).expect("it is small");
    let need = plans.shape(0, &[2, 4]).expect("it is small").block_bytes();
    let size = |place: usize| u64::try_from(file.plans[0].buffers[place].size.value(&variables).unwrap()).unwrap();
    // All but the last one.
    let go_on = |session: &mut Session, thread, first| {
        let second = session.allocate(thread, size(1));
        session.free(first);
        let scratch = session.allocate(thread, size(2));
        session.free(scratch);
        let fourth = session.allocate(thread, size(3));
        session.free(second);
        let before = reserved(&limit);
        (before, [fourth, session.allocate(thread, size(4))])
    };
    let first = session.allocate(1, size(0));
    assert_eq!(reserved(&limit), most);
    assert!(is_short(&mut session, 2, size(0)));
    let (before, live) = go_on(&mut session, 1, first);
    assert_eq!((before, reserved(&limit)), (most, need));
    // Now there is room, but not for the most.
    let second = session.allocate(2, size(0));
    assert_eq!(reserved(&limit), need + size(0));
    assert!(is_short(&mut session, 3, size(0)), "one at a time");
    let (before, rest) = go_on(&mut session, 2, second);
    assert!(before < need + most);
    assert_eq!(reserved(&limit), 2 * need);
    session.free_all([live, rest].concat());
    session.trim();
    assert_eq!(reserved(&limit), 0);
}

/// A run of a session that others use at the same time; whether it had what it needed, and its outputs.
fn run(
    sessions: &[Mutex<Session>],
    limit: &Limit,
    place: usize,
    thread: Thread,
    plan: &ArenaPlan,
    variables: &[i128],
) -> (bool, Vec<usize>) {
    let session = || sessions[place].lock().unwrap();
    let (mut live, mut outputs, mut is_right): (Vec<(u64, usize)>, _, _) = (Vec::new(), Vec::new(), true);
    for buffer in &plan.buffers {
        let (ended, left) = live.into_iter().partition(|&(last, _)| last <= buffer.first);
        live = left;
        let ended: Vec<(u64, usize)> = ended;
        ended.into_iter().for_each(|(_, address)| session().free(address));
        let bytes = u64::try_from(buffer.size.value(variables).unwrap()).unwrap();
        let mut credit = Credit::default();
        let allocated = insist(
            limit,
            &mut credit,
            |credit| session().try_allocate(thread, bytes, credit),
            || unreachable!("they share no block"),
            || sessions.iter().for_each(|session| _ = session.lock().unwrap().trim()),
            |time| session().blocks.count_wait(time),
        );
        match allocated {
            Ok(address) if buffer.is_output => outputs.push(address),
            Ok(address) => live.push((buffer.last, address)),
            Err(_) => {
                let session = session();
                session.blocks.decline(credit);
                drop(session);
                is_right = false;
                break;
            }
        }
        std::thread::yield_now();
    }
    if !is_right {
        session().blocks.refuse(thread);
        session().free_all(std::mem::take(&mut outputs));
    }
    live.into_iter().for_each(|(_, address)| session().free(address));
    (is_right, outputs)
}

/// Threads that run random shapes on two sessions; how many runs were refused.
fn stress(share: u64, holds: bool, waits: bool) -> u64 {
    let file = chain();
    let most = Plans::new(&file).block_bytes();
    let bytes = most * share / 100;
    let limit: Arc<Limit> = Arc::default();
    let account = || Account::new(Arc::clone(&limit), Some(bytes), waits);
    let sessions = [(); 2].map(|()| Mutex::new(Session::under(&file, account())));
    let work = |thread: u64| {
        let mut held = Vec::new();
        for round in 0..60u64 {
            let number = (thread * 7919 + round * 104_729) % 1024;
            let variables = values(&[1 + number % 16, 1 + number / 16], &file.derived).unwrap();
            let place = usize::from(number.is_multiple_of(3));
            let (_, outputs) = run(&sessions, &limit, place, thread, &file.plans[0], &variables);
            let outputs = outputs.into_iter().map(|output| (place, output)).collect();
            let before = if holds {
                std::mem::replace(&mut held, outputs)
            } else {
                outputs
            };
            for (place, output) in before {
                sessions[place].lock().unwrap().free(output);
            }
            assert!(reserved(&limit) <= bytes);
        }
        for (place, output) in held {
            sessions[place].lock().unwrap().free(output);
        }
    };
    std::thread::scope(|scope| (1..7).for_each(|thread| _ = scope.spawn(move || work(thread))));
    assert!(limit.reserved().1 <= bytes && !limit.is_short());
    let mut refused = 0;
    for session in &sessions {
        let mut session = session.lock().unwrap();
        session.trim();
        let figures = session.blocks.figures();
        assert_eq!((figures.missed, figures.refused, figures.reserved_bytes), (0, 0, 0));
        assert!(figures.most_used_bytes <= bytes && figures.runs > 0);
        refused += figures.refused_runs;
    }
    assert_eq!(reserved(&limit), 0);
    refused
}

#[test]
fn threads_with_runs_of_any_shape_share_a_limit_that_one_of_them_fills() {
    assert_eq!(stress(100, false, true), 0);
    assert_eq!(stress(150, false, true), 0);
    assert_eq!(stress(120, true, true), 0);
}

#[test]
fn threads_whose_runs_do_not_fit_or_do_not_wait_all_end() {
    assert!(stress(70, true, true) > 0);
    stress(110, true, false);
}

proptest! {
    #[test]
    fn what_is_reserved_is_what_is_used_and_needed_whatever_runs_do(
        bytes in 200..5000u64,
        runs in proptest::collection::vec((0..3usize, 0..14u64, 1..4u64, any::<bool>(), 1..9u64), 0..30),
    ) {
        let plans = [small(64), small(700)];
        let limit = Arc::default();
        let mut session = under(&limit, bytes, &file(&plans));
        let mut live: Vec<(u64, usize)> = Vec::new();
        for (place, end, thread, holds, more) in runs {
            // The third one is in no plan.
            let other = small(u32::try_from(90 * more).unwrap());
            let plan = plans.get(place).unwrap_or(&other);
            for buffer in plan.buffers.iter().take_while(|buffer| buffer.first < end) {
                let size = u64::try_from(buffer.size.as_constant().unwrap()).unwrap();
                match session.try_allocate(thread, size, &mut Credit::default()) {
                    Ok(address) => live.push((if holds { u64::MAX } else { buffer.last }, address)),
                    Err(_) => { session.blocks.refuse(thread); break; }
                }
                let figures = session.blocks.figures();
                prop_assert_eq!(figures.reserved_bytes, reserved(&limit));
                prop_assert!(reserved(&limit) <= bytes);
                prop_assert!(figures.used_bytes + figures.outside_bytes <= reserved(&limit));
            }
            let (ended, left): (Vec<_>, _) = live.into_iter().partition(|&(last, _)| last < u64::MAX);
            live = left;
            ended.into_iter().for_each(|(_, address)| session.free(address));
        }
        live.into_iter().for_each(|(_, address)| session.free(address));
        session.trim();
        prop_assert_eq!(reserved(&limit), 0);
    }
}
