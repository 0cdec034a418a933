//! Any runs in any order: the limit holds, the order is kept, and nobody waits for ever.

use proptest::prelude::*;

use crate::ledger::{Ledger, Request, Stage, Thread, Ticket, Verdict};

fn growth(thread: Thread, bytes: u64, limit: u64) -> Request {
    Request {
        begins: false,
        enters: false,
        ..Request::whole(thread, bytes, limit)
    }
}

fn granted(ledger: &mut Ledger, request: Request) {
    assert_eq!(ledger.ask(request), Some(Verdict::Granted(request.bytes)));
}

#[test]
fn a_small_run_does_not_overtake_a_large_one_that_waits() {
    let mut ledger = Ledger::default();
    granted(&mut ledger, Request::whole(1, 60, 100));
    assert_eq!(ledger.ask(Request::whole(2, 80, 100)), None);
    let large = ledger.join(Request::whole(2, 80, 100));
    assert_eq!(ledger.ask(Request::whole(3, 10, 100)), None);
    let small = ledger.join(Request::whole(3, 10, 100));
    assert_eq!((ledger.fetch(large), ledger.fetch(small)), (None, None));
    ledger.leave(1, 60);
    assert_eq!(ledger.fetch(large), Some(Verdict::Granted(80)));
    assert_eq!(ledger.fetch(small), Some(Verdict::Granted(10)));
    assert_eq!((ledger.reserved(), ledger.most()), (90, 90));
}

#[test]
fn a_run_that_never_fits_is_refused_at_once() {
    let mut ledger = Ledger::default();
    granted(&mut ledger, Request::whole(1, 60, 100));
    assert_eq!(ledger.ask(Request::whole(2, 101, 100)), Some(Verdict::Refused(60)));
}

#[test]
fn a_run_that_grows_comes_before_those_that_begin_and_two_do_not_wait_for_each_other() {
    let mut ledger = Ledger::default();
    granted(&mut ledger, Request::whole(1, 40, 100));
    granted(&mut ledger, Request::whole(2, 40, 100));
    let begins = ledger.join(Request::whole(3, 30, 100));
    granted(&mut ledger, growth(1, 10, 100));
    let first = ledger.join(growth(1, 30, 100));
    assert_eq!(ledger.fetch(first), None, "the second run goes on");
    let second = ledger.join(growth(2, 30, 100));
    assert_eq!(ledger.fetch(second), Some(Verdict::Refused(90)), "nobody would go on");
    assert_eq!(ledger.fetch(first), None, "the second run ends now");
    ledger.leave(2, 40);
    assert_eq!(ledger.fetch(first), Some(Verdict::Granted(30)));
    assert_eq!(ledger.fetch(begins), None);
    ledger.leave(1, 80);
    assert_eq!(ledger.fetch(begins), Some(Verdict::Granted(30)));
}

#[test]
fn nobody_waits_for_bytes_that_no_run_gives_back() {
    let mut ledger = Ledger::default();
    granted(&mut ledger, Request::whole(1, 60, 100));
    // Its outputs are held.
    ledger.leave(1, 20);
    let large = ledger.join(Request::whole(2, 70, 100));
    assert_eq!(ledger.fetch(large), Some(Verdict::Refused(40)));
    granted(&mut ledger, Request::whole(2, 60, 100));
}

#[test]
fn a_run_that_does_not_wait_is_refused_but_waits_for_a_need_that_is_about_to_be_known() {
    let mut ledger = Ledger::default();
    let early = Request {
        rather: 90,
        stage: Stage::Early,
        ..Request::whole(1, 5, 100)
    };
    assert_eq!(ledger.ask(early), Some(Verdict::Granted(90)));
    let impatient = Request {
        waits: false,
        ..Request::whole(2, 30, 100)
    };
    assert_eq!(ledger.ask(impatient), None);
    let ticket = ledger.join(impatient);
    assert_eq!(ledger.fetch(ticket), None);
    ledger.give_back(50);
    ledger.knows(1);
    assert_eq!(ledger.fetch(ticket), Some(Verdict::Granted(30)));
    let other = Request {
        waits: false,
        ..Request::whole(3, 31, 100)
    };
    let ticket = ledger.join(other);
    assert_eq!(ledger.fetch(ticket), Some(Verdict::Refused(70)));
}

#[test]
fn of_runs_whose_need_is_not_known_one_is_let_in_where_the_most_does_not_fit() {
    let mut ledger = Ledger::default();
    let early = |thread| Request {
        rather: 100,
        stage: Stage::Early,
        ..Request::whole(thread, 5, 100)
    };
    granted(&mut ledger, Request::whole(9, 10, 100));
    granted(&mut ledger, early(1));
    assert_eq!(ledger.ask(early(2)), None);
    let second = ledger.join(early(2));
    let known = growth(1, 85, 100);
    granted(&mut ledger, known);
    assert_eq!(ledger.fetch(second), None, "there is no room");
    ledger.leave(9, 10);
    assert_eq!(ledger.fetch(second), Some(Verdict::Granted(5)));
}

/// What a run does: it may begin without knowing what it needs, it may turn out to need more, and may leave outputs.
#[derive(Clone, Copy, Debug)]
struct Run {
    need: u64,
    early: Option<u64>,
    grows: u64,
    outputs: u64,
    waits: bool,
}

/// A thread that does its runs one after the other.
struct Actor {
    thread: Thread,
    runs: Vec<Run>,
    /// How far the first of them is.
    step: u8,
    held: u64,
    outputs: u64,
    waits: Option<(Ticket, Request)>,
}

/// All of them, and what they saw.
struct World {
    ledger: Ledger,
    actors: Vec<Actor>,
    limit: u64,
    most: u64,
    refused: usize,
    /// Those that wait to begin, in the order in which they came.
    order: Vec<Ticket>,
}

impl World {
    fn granted(&mut self, place: usize, bytes: u64, step: u8) {
        let actor = &mut self.actors[place];
        actor.held += bytes;
        actor.step = step;
    }

    /// The run of an actor is over.
    fn ends(&mut self, place: usize, outputs: u64) {
        let actor = &mut self.actors[place];
        let outputs = outputs.min(actor.held);
        let bytes = actor.held - outputs;
        let holds = actor.step > 0;
        actor.outputs += outputs;
        (actor.held, actor.step) = (0, 0);
        actor.runs.remove(0);
        if holds {
            self.ledger.leave(actor.thread, bytes);
        } else {
            self.ledger.give_back(bytes);
        }
    }

    /// What the verdict on a request of an actor means.
    fn takes(&mut self, place: usize, verdict: Verdict, request: Request) {
        match verdict {
            Verdict::Granted(bytes) => {
                assert!(bytes == request.bytes || bytes == request.rather);
                let step = match (request.stage, self.actors[place].step) {
                    (Stage::Early, _) => 1,
                    (_, 2) => 3,
                    _ => 2,
                };
                self.granted(place, bytes, step);
            }
            Verdict::Refused(_) => {
                self.refused += 1;
                self.ends(place, 0);
            }
        }
    }

    /// An actor does its next step; whether it could do one.
    fn advance(&mut self, place: usize) -> bool {
        if let Some((ticket, request)) = self.actors[place].waits {
            let Some(verdict) = self.ledger.fetch(ticket) else {
                return false;
            };
            self.actors[place].waits = None;
            self.takes(place, verdict, request);
            return true;
        }
        // The outputs of the run before go when the next one begins.
        let actor = &mut self.actors[place];
        if actor.step == 0 && actor.outputs > 0 {
            self.ledger.give_back(std::mem::take(&mut actor.outputs));
            return true;
        }
        let Some(&run) = actor.runs.first() else { return false };
        let beyond = |need: u64| need.saturating_sub(actor.held);
        let bare = Request {
            need: run.need,
            waits: run.waits,
            ..Request::whole(actor.thread, 0, self.limit)
        };
        let asks = match (actor.step, run.early) {
            (0, Some(early)) => Request {
                bytes: early.min(run.need),
                rather: self.most.max(run.need),
                stage: Stage::Early,
                need: early.min(run.need),
                ..bare
            },
            (0, None) => Request {
                bytes: run.need,
                rather: run.need,
                ..bare
            },
            (1, _) if actor.held >= run.need => {
                self.ledger.give_back(actor.held - run.need);
                (actor.held, actor.step) = (run.need, 2);
                self.ledger.knows(actor.thread);
                return true;
            }
            (1, _) => Request {
                bytes: beyond(run.need),
                rather: beyond(run.need),
                begins: false,
                enters: false,
                ..bare
            },
            (2, _) if run.grows > 0 => Request {
                bytes: run.grows,
                rather: run.grows,
                need: run.need + run.grows,
                begins: false,
                enters: false,
                ..bare
            },
            _ => {
                self.ends(place, run.outputs);
                return true;
            }
        };
        match self.ledger.ask(asks) {
            Some(Verdict::Granted(_)) if asks.begins && !self.order.is_empty() => {
                panic!("thread {} overtook {:?}", asks.thread, self.order)
            }
            Some(verdict) => self.takes(place, verdict, asks),
            None => {
                let ticket = self.ledger.join(asks);
                if asks.begins {
                    self.order.push(ticket);
                }
                self.actors[place].waits = Some((ticket, asks));
            }
        }
        true
    }

    fn check(&mut self, before: &[Ticket]) {
        let waiting = |ticket: &Ticket| {
            let mut waits = self.actors.iter().filter_map(|actor| actor.waits);
            waits.any(|(other, _)| other == *ticket) && !self.ledger.is_decided(*ticket)
        };
        self.order.retain(waiting);
        // Whoever left the queue came before all that are still in it; those that were refused apart.
        let left = before.iter().filter(|ticket| !self.order.contains(ticket));
        let served = left.filter(|&&ticket| self.ledger.was_granted(ticket));
        if let (Some(last), Some(first)) = (served.max(), self.order.first()) {
            assert!(last < first, "{last:?} overtook {first:?}");
        }
        let held: u64 = self.actors.iter().map(|actor| actor.held + actor.outputs).sum();
        assert_eq!(held + self.ledger.undelivered(), self.ledger.reserved());
        assert!(self.ledger.reserved() <= self.limit && self.ledger.most() <= self.limit);
    }

    /// All runs, in an order that the choices say; how many were refused.
    fn play(runs: Vec<Vec<Run>>, limit: u64, most: u64, choices: &[usize]) -> usize {
        let actors = (1..).zip(runs).map(|(thread, runs)| Actor {
            thread,
            runs,
            step: 0,
            held: 0,
            outputs: 0,
            waits: None,
        });
        let mut world = Self {
            ledger: Ledger::default(),
            actors: actors.collect(),
            limit,
            most,
            refused: 0,
            order: Vec::new(),
        };
        let count = world.actors.len();
        let mut choices = choices.iter().cycle();
        let mut idle = 0;
        // All of them, one after the other, when those that were chosen had nothing to do.
        while idle < 2 * count {
            let place = if idle < count {
                choices.next().map_or(0, |choice| choice % count)
            } else {
                idle - count
            };
            let before = world.order.clone();
            idle = if world.advance(place) { 0 } else { idle + 1 };
            world.check(&before);
        }
        for actor in &world.actors {
            assert!(
                actor.runs.is_empty() && actor.waits.is_none(),
                "thread {} waits for ever",
                actor.thread
            );
        }
        assert_eq!(world.ledger.reserved(), 0);
        world.refused
    }
}

fn any_runs(least: bool, grows: bool, outputs: bool) -> impl Strategy<Value = Vec<Vec<Run>>> {
    let run = (
        1..=130u64,
        proptest::option::of(1..10u64),
        0..60u64,
        0..40u64,
        any::<bool>(),
    );
    let run = run.prop_map(move |(need, early, growth, left, waits)| Run {
        need: if least { need.min(100) } else { need },
        early,
        grows: if grows { growth.saturating_sub(30) } else { 0 },
        outputs: if outputs { left } else { 0 },
        waits: least || waits,
    });
    proptest::collection::vec(proptest::collection::vec(run, 0..5), 1..6)
}

proptest! {
    #[test]
    fn the_limit_holds_and_every_run_ends_or_is_refused(
        runs in any_runs(false, true, true),
        most in 10..150u64,
        choices in proptest::collection::vec(0..60usize, 1..100),
    ) {
        World::play(runs, 100, most, &choices);
    }

    #[test]
    fn no_run_is_refused_that_fits_alone_if_runs_wait_and_do_not_grow(
        runs in any_runs(true, false, false),
        most in 10..150u64,
        choices in proptest::collection::vec(0..60usize, 1..100),
    ) {
        prop_assert_eq!(World::play(runs, 100, most.max(10), &choices), 0);
    }
}
