//! Random changes of a frame: recomputes come, go and shift, and in free order first runs move.

use crate::chain::{Chain, insert_chain};
use crate::frame::Frame;
use crate::rng::Rng;
use crate::sequence::{Edit, EventId, Sequence};

/// Makes a random change; it is appended to `log`. No change where the draw offers none. `moves` is the share of changes that move a first
/// run in free order.
pub(crate) fn propose(
    sequence: &mut Sequence<'_>,
    frame: &mut Frame,
    moves: f64,
    chain: Chain,
    log: &mut Vec<Edit>,
    rng: &mut Rng,
) {
    if sequence.frame.is_empty() {
        return;
    }
    if sequence.dag().is_free() && rng.chance(moves) {
        reorder(sequence, log, rng);
        return;
    }
    let draw = rng.unit();
    let event = if draw < 0.45 {
        None
    } else {
        frame.some_recompute(sequence, rng)
    };
    let Some(event) = event else {
        add(sequence, frame, chain, log, rng);
        return;
    };
    if draw < 0.72 {
        drop(sequence, event, log, rng);
    } else if draw < 0.86 {
        log.push(sequence.remove(event));
        add(sequence, frame, chain, log, rng);
    } else {
        shift(sequence, event, log, rng);
    }
}

/// A place of the frame that holds an event: one above the budget if there is any, be it the only one.
fn some_place(sequence: &mut Sequence<'_>, rng: &mut Rng) -> Option<usize> {
    let frame = sequence.frame.clone();
    let mut any = None;
    for _ in 0..8 {
        let place = frame.start + rng.below(frame.len());
        if sequence.memory()[place] > sequence.budget() {
            return Some(place);
        }
        if sequence.event_at(place) != EventId::NONE {
            any = Some(place);
        }
    }
    if sequence.excess() == 0 {
        return any;
    }
    let from = frame.start + rng.below(frame.len());
    let mut over = sequence.next_excess(from).filter(|&place| place < frame.end);
    if over.is_none() {
        over = sequence.next_excess(frame.start).filter(|&place| place < frame.end);
    }
    over.or(any)
}

/// Recomputes a value that is resident and unused at a place above the budget, or anywhere if there is none.
fn add(sequence: &mut Sequence<'_>, frame: &Frame, chain: Chain, log: &mut Vec<Edit>, rng: &mut Rng) {
    if sequence.is_full() {
        return;
    }
    let Some(place) = some_place(sequence, rng) else {
        return;
    };
    let dag = sequence.dag();
    let inside = place - sequence.frame.start;
    for attempt in 0..16 {
        let event = match attempt % 3 {
            0 if !frame.entering.is_empty() => frame.entering[rng.below(frame.entering.len())],
            1 => sequence.event_at(place - rng.below(inside + 1)),
            _ => sequence.event_at(
                place
                    .saturating_sub(rng.nearby(inside as f64))
                    .max(sequence.frame.start),
            ),
        };
        if event == EventId::NONE
            || sequence.place_of(event) >= place
            || !sequence.may_run_again(sequence.node_of(event))
        {
            continue;
        }
        let node = sequence.node_of(event);
        let values = dag.values(node);
        if values.len() == 0 {
            continue;
        }
        let value = dag.value(node, rng.below(values.len()));
        // Entries of the list may have been removed: then their ends mean nothing.
        let present = sequence.runs(node).contains(&event);
        if !present || sequence.place_of(sequence.end_of(event, value)) <= place {
            continue;
        }
        let Some(next) = sequence
            .next_use(value, place)
            .filter(|&next| sequence.place_of(next) > place)
        else {
            continue;
        };
        let revival = [1.0, 0.5, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0][rng.below(8)];
        let chain = if revival > 0.0 { chain } else { Chain::NONE };
        insert_chain(sequence, node, next, chain, &mut |_| rng.chance(revival), log);
        return;
    }
}

/// Removes a recompute, sometimes with the recomputes of its inputs that nothing else needs.
fn drop(sequence: &mut Sequence<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (sequence.dag(), sequence.node_of(event));
    let place = sequence.place_of(event);
    log.push(sequence.remove(event));
    if !rng.chance(0.3) {
        return;
    }
    for &value in dag.needs(node) {
        let Some(serving) = sequence.serving(value, place) else {
            continue;
        };
        let mut values = dag.values(dag.producer(value));
        let unused = values.all(|value| sequence.end_of(serving, value) == serving);
        if unused && sequence.is_recompute(serving) {
            log.push(sequence.remove(serving));
        }
    }
}

/// Moves a recompute between its neighbouring runs.
fn shift(sequence: &mut Sequence<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let node = sequence.node_of(event);
    let place = sequence.place_of(event);
    let window = sequence.window(event);
    let values = sequence.dag().values(node);
    if values.len() == 0 {
        return;
    }
    let value = sequence.dag().value(node, rng.below(values.len()));
    let goal = match rng.below(3) {
        0 => sequence
            .last_use(value, window.start, place)
            .map(|event| sequence.place_of(event)),
        1 => sequence.next_use(value, place + 1).and_then(|first| {
            let first = sequence.place_of(first);
            if rng.chance(0.5) {
                return Some(first);
            }
            sequence
                .next_use(value, first + 1)
                .map(|second| sequence.place_of(second))
        }),
        _ => {
            let distance = rng.nearby(80.0);
            Some(if rng.chance(0.5) {
                place.saturating_sub(distance)
            } else {
                place + distance
            })
        }
    };
    let Some(goal) = goal.filter(|&goal| goal >= window.start && goal + 1 < window.end) else {
        return;
    };
    let before = sequence.next_event(goal);
    // The run after is as good a place as any, the end of the sequence is none.
    if before == EventId::NONE || before == event {
        return;
    }
    log.push(sequence.remove(event));
    log.push(Edit::Inserted(sequence.insert(node, before)));
}

/// Moves a first run across a place above the budget, or anywhere near if there is none.
fn reorder(sequence: &mut Sequence<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let Some(centre) = some_place(sequence, rng) else {
        return;
    };
    let reach = sequence.frame.len() as f64 / 4.0;
    for _ in 0..8 {
        let distance = rng.nearby(reach);
        let place = if rng.chance(0.5) {
            centre.saturating_sub(distance)
        } else {
            centre + distance
        };
        if place >= sequence.len() {
            continue;
        }
        let event = sequence.event_at(place);
        if event == EventId::NONE || !sequence.is_first(event) {
            continue;
        }
        if give_up(sequence, event, log) {
            return;
        }
        let window = sequence.window(event);
        let (first, last) = (window.start, window.end - 1);
        let goal = match rng.below(4) {
            0 => last,
            1 => first,
            _ => {
                let distance = rng.nearby(reach);
                if place < centre {
                    centre + distance
                } else {
                    centre.saturating_sub(distance)
                }
            }
        };
        let next = sequence.next_event(goal.clamp(first, last));
        // It stays where it is in front of itself and of the run after it.
        if next == event || sequence.next_event(sequence.place_of(event) + 1) == next {
            continue;
        }
        log.push(sequence.relocate(event, next));
        return;
    }
}

/// A first run whose values are not used before its node runs again takes the place of the second run, which goes. Returns whether it
/// did.
fn give_up(sequence: &mut Sequence<'_>, event: EventId, log: &mut Vec<Edit>) -> bool {
    let node = sequence.node_of(event);
    let Some(&second) = sequence.runs(node).get(1) else {
        return false;
    };
    let used = |value| sequence.end_of(event, value) != event;
    let is_last = sequence.window(event).end == sequence.place_of(second) + 1;
    if !is_last || sequence.dag().values(node).any(used) {
        return false;
    }
    log.push(sequence.relocate(event, second));
    log.push(sequence.remove(second));
    true
}
