//! The optimum by trying every sequence of scheduled ops; what is valid, and at what peak, is left to lowering and the checker.

use remat_plan::{OpId, Problem, Structure, lower_sequence};

/// Least duration of the plans in stage form that keep the budget.
///
/// # Panics
/// If there are more than 6 scheduled ops.
#[must_use]
pub fn stage_form(problem: &Problem) -> Option<u64> {
    let structure = Structure::of(problem);
    let scheduled: Vec<OpId> = structure.scheduled().collect();
    let places: Vec<(usize, usize)> = (0..scheduled.len())
        .flat_map(|stage| (0..stage).map(move |node| (stage, node)))
        .collect();
    assert!(places.len() <= 15, "too many places to try everything");
    let most = problem.max_computes.map_or(usize::MAX, |most| most as usize);
    let mut best = None;
    for chosen in 0u32..1 << places.len() {
        let again: Vec<(usize, usize)> = places
            .iter()
            .enumerate()
            .filter(|&(bit, _)| chosen >> bit & 1 == 1)
            .map(|(_, &place)| place)
            .collect();
        let too_often = |node| again.iter().filter(|place| place.1 == node).count() >= most;
        if (0..scheduled.len()).any(too_often) {
            continue;
        }
        let stage = |stage: usize| {
            again
                .iter()
                .filter(move |place| place.0 == stage)
                .map(|place| place.1)
                .chain([stage])
        };
        let sequence = (0..scheduled.len()).flat_map(stage).map(|node| scheduled[node]);
        consider(problem, &structure, sequence, &mut best);
    }
    best
}

/// Least duration of all sequences in which each op runs once or twice, in any order.
///
/// # Panics
/// If the problem allows another number of computes than 2.
#[must_use]
pub fn any_order(problem: &Problem) -> Option<u64> {
    assert_eq!(problem.max_computes, Some(2));
    let structure = Structure::of(problem);
    let scheduled: Vec<OpId> = structure.scheduled().collect();
    let mut best = None;
    extend(problem, &structure, &scheduled, &mut Vec::new(), &mut best);
    best
}

/// Least duration of all sequences in which each op runs once or twice, and first runs follow the reference order.
///
/// # Panics
/// If the problem allows another number of computes than 2.
#[must_use]
pub fn fixed_order(problem: &Problem) -> Option<u64> {
    assert_eq!(problem.max_computes, Some(2));
    let structure = Structure::of(problem);
    let scheduled: Vec<OpId> = structure.scheduled().collect();
    let mut best = None;
    extend_in_order(problem, &structure, &scheduled, &mut Vec::new(), 0, &mut best);
    best
}

/// `next` is the number of ops that ran.
fn extend_in_order(
    problem: &Problem,
    structure: &Structure,
    ops: &[OpId],
    sequence: &mut Vec<OpId>,
    next: usize,
    best: &mut Option<u64>,
) {
    if next == ops.len() {
        // Nothing is gained by runs after the last first one.
        consider(problem, structure, sequence.iter().copied(), best);
        return;
    }
    for (index, &op) in ops[..=next].iter().enumerate() {
        if sequence.iter().filter(|&&ran| ran == op).count() < 2 {
            sequence.push(op);
            extend_in_order(
                problem,
                structure,
                ops,
                sequence,
                next + usize::from(index == next),
                best,
            );
            sequence.pop();
        }
    }
}

fn extend(problem: &Problem, structure: &Structure, ops: &[OpId], sequence: &mut Vec<OpId>, best: &mut Option<u64>) {
    if ops.iter().all(|op| sequence.contains(op)) {
        consider(problem, structure, sequence.iter().copied(), best);
    }
    for &op in ops {
        if sequence.iter().filter(|&&ran| ran == op).count() < 2 {
            sequence.push(op);
            if lower_sequence(problem, structure, sequence.iter().copied()).is_ok() {
                extend(problem, structure, ops, sequence, best);
            }
            sequence.pop();
        }
    }
}

fn consider(
    problem: &Problem,
    structure: &Structure,
    sequence: impl IntoIterator<Item = OpId>,
    best: &mut Option<u64>,
) {
    let Ok(plan) = lower_sequence(problem, structure, sequence) else {
        return;
    };
    let Ok(replay) = remat_verify::replay(problem, &plan) else {
        return;
    };
    if best.is_none_or(|best| replay.duration < best) {
        *best = Some(replay.duration);
    }
}
