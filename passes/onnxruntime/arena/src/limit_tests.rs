//! Threads that reserve bytes: all ways in which three can meet, tried by a checker of threads, and many at random.

use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use loom::thread;

use crate::ledger::{Ledger, Request, Thread, Verdict};
use crate::limit::{Limit, Monitor};

/// A lock and a condition of the checker.
#[derive(Default)]
struct Checked {
    ledger: Mutex<Ledger>,
    decided: Condvar,
}

impl Monitor for Checked {
    type Guard<'a> = MutexGuard<'a, Ledger>;

    fn lock(&self) -> Self::Guard<'_> {
        self.ledger.lock().unwrap()
    }

    fn wait<'a>(&'a self, guard: Self::Guard<'a>) -> Self::Guard<'a> {
        self.decided.wait(guard).unwrap()
    }

    fn notify_all(&self) {
        self.decided.notify_all();
    }
}

const LIMIT: u64 = 100;

fn request(thread: Thread, bytes: u64) -> Request {
    Request::whole(thread, bytes, LIMIT)
}

/// A run of a thread that needs these bytes, one after the other; whether it got them.
fn run<M: Monitor>(limit: &Limit<M>, thread: Thread, needs: &[u64]) -> bool {
    let mut held = 0;
    for (place, &bytes) in needs.iter().enumerate() {
        let request = Request {
            begins: place == 0,
            enters: place == 0,
            ..request(thread, bytes)
        };
        let verdict = limit.ask(request).unwrap_or_else(|| {
            let _shortage = limit.shortage();
            limit.wait(request)
        });
        match verdict {
            Verdict::Granted(bytes) => held += bytes,
            Verdict::Refused(_) => {
                if place > 0 {
                    limit.leave(thread, held);
                }
                return false;
            }
        }
        assert!(limit.reserved().0 <= LIMIT);
    }
    limit.leave(thread, held);
    true
}

/// Threads with these needs, in all orders; how many got what they need must be one of these.
fn check(needs: [&'static [u64]; 3], ends: std::ops::RangeInclusive<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let limit = Arc::new(Limit::new(Checked::default()));
        let others: Vec<_> = (1..3)
            .map(|place| {
                let limit = Arc::clone(&limit);
                thread::spawn(move || run(&limit, place as u64, needs[place]))
            })
            .collect();
        let mut ended = usize::from(run(&limit, 0, needs[0]));
        ended += others
            .into_iter()
            .filter(|_| true)
            .map(|other| usize::from(other.join().unwrap()))
            .sum::<usize>();
        assert!(ends.contains(&ended), "{ended} runs ended");
        let (reserved, most) = limit.reserved();
        assert!(reserved == 0 && most <= LIMIT && !limit.is_short());
    });
}

#[test]
fn three_threads_that_do_not_fit_together_all_get_their_turn() {
    check([&[60], &[60], &[60]], 3..=3);
}

#[test]
fn a_small_run_and_two_large_ones_all_get_their_turn() {
    check([&[100], &[30], &[80]], 3..=3);
}

#[test]
fn of_threads_that_grow_at_least_one_gets_what_it_needs_and_no_one_waits_for_ever() {
    check([&[40, 40], &[40, 40], &[30]], 1..=3);
}
