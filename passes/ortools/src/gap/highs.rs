//! A 0/1 program on HiGHS.
//!
//! HiGHS counts in floating point: solutions are rounded and judged in integers by the caller, bounds are rounded down far enough
//! to cover its tolerances, but they are no proof in the sense in which those of CP-SAT are.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::program::{Literal, Program};
use crate::cpsat::{Answer, Ended};
use crate::highs_capi::{self, Matrix, Options, Outcome, Watcher};
use crate::run::Clock;

/// How often the flag is looked at.
const POLL: Duration = Duration::from_millis(10);
/// By how much a bound may be too high, as a share of it; HiGHS' own tolerance is 1e-6.
const SLACK: f64 = 1e-5;

/// Minimizes the cost of the program; `improved` is told of every better solution with its objective and the bound.
pub(super) fn minimize(
    program: &Program,
    hint: Option<&[bool]>,
    clock: &Clock<'_>,
    improved: &mut dyn FnMut(&[i64], i64, i64),
) -> Answer {
    let mut answer = Answer {
        ended: Ended::Failed,
        solution: None,
        bound: 0,
        conflicts: 0,
    };
    if let Some(ended) = clock.ended() {
        return Answer { ended, ..answer };
    }
    let matrix = matrix(program);
    let start: Option<Vec<f64>> = hint.map(|hint| hint.iter().map(|&on| if on { 1.0 } else { 0.0 }).collect());
    let options = Options {
        time_limit: clock.left().map(|left| 0.98 * left.as_secs_f64()),
        seed: c_int::try_from(clock.control.seed & 0x3fff_ffff).unwrap_or(0),
        // Costs are integers.
        absolute_gap: 0.99,
    };
    let (send, receive) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = Messages {
        send: send.clone(),
        stop: Arc::clone(&stop),
    };
    std::thread::spawn(move || {
        let (outcome, bound) = highs_capi::minimize(&matrix, start.as_deref(), options, &watcher);
        // Nobody listens any more where the thread was left behind.
        let _ = send.send(Message::Done(outcome, bound));
    });
    let mut give_up: Option<(Instant, Ended)> = None;
    loop {
        match receive.recv_timeout(POLL) {
            Ok(Message::Improved(solution, bound)) => {
                let objective = program.cost.iter().zip(&solution).map(|(cost, on)| cost * on).sum();
                answer.bound = answer.bound.max(rounded(bound)).min(objective);
                improved(&solution, objective, answer.bound);
                answer.solution = Some(solution);
                continue;
            }
            Ok(Message::Done(outcome, bound)) => {
                answer.bound = answer.bound.max(rounded(bound));
                answer.ended = match outcome {
                    Outcome::Optimal => Ended::Optimal,
                    Outcome::Infeasible => Ended::Infeasible,
                    Outcome::Failed => Ended::Failed,
                    Outcome::Stopped => clock
                        .ended()
                        .or(give_up.map(|(_, ended)| ended))
                        .unwrap_or(Ended::TimeLimit),
                };
                return answer;
            }
            Err(RecvTimeoutError::Disconnected) => return answer,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        match (give_up, clock.ended()) {
            (Some((when, ended)), _) if now >= when => {
                tracing::warn!("HiGHS does not stop in time, its thread is left behind");
                return Answer { ended, ..answer };
            }
            (None, Some(ended)) => {
                stop.store(true, Ordering::Relaxed);
                give_up = Some((now + clock.grace(), ended));
            }
            (Some(_) | None, _) => {}
        }
    }
}

/// The least integer that a floating-point bound certainly allows.
fn rounded(bound: f64) -> i64 {
    let certain = bound - SLACK * bound.abs().max(1.0);
    if certain.is_finite() {
        certain.ceil().max(0.0) as i64
    } else {
        0
    }
}

enum Message {
    Improved(Vec<i64>, f64),
    Done(Outcome, f64),
}

struct Messages {
    send: Sender<Message>,
    stop: Arc<AtomicBool>,
}

impl Watcher for Messages {
    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn improved(&self, solution: &[f64], bound: f64) {
        let on = solution.iter().map(|&value| i64::from(value > 0.5)).collect();
        // Nobody listens any more where the thread was left behind.
        let _ = self.send.send(Message::Improved(on, bound));
    }
}

fn matrix(program: &Program) -> Matrix {
    let mut matrix = Matrix {
        cost: program.cost.iter().map(|&cost| cost as f64).collect(),
        ..Matrix::default()
    };
    for clause in &program.clauses {
        let negated = clause.iter().filter(|literal| literal.negated).count();
        let terms = clause
            .iter()
            .map(|&Literal { variable, negated }| (variable, if negated { -1.0 } else { 1.0 }));
        row(&mut matrix, terms, 1.0 - negated as f64, f64::INFINITY);
    }
    for &(a, b) in &program.exclusions {
        row(&mut matrix, [(a, 1.0), (b, 1.0)].into_iter(), f64::NEG_INFINITY, 1.0);
    }
    for limit in &program.rows {
        let terms = limit
            .terms
            .iter()
            .map(|&(variable, coefficient)| (variable, coefficient as f64));
        row(&mut matrix, terms, f64::NEG_INFINITY, limit.most as f64);
    }
    matrix
}

fn row(matrix: &mut Matrix, terms: impl Iterator<Item = (u32, f64)>, lower: f64, upper: f64) {
    let index = |value: usize| c_int::try_from(value).expect("the number of terms is limited below 2^31");
    matrix.starts.push(index(matrix.columns.len()));
    for (variable, coefficient) in terms {
        matrix.columns.push(index(variable as usize));
        matrix.coefficients.push(coefficient);
    }
    matrix.lower.push(lower);
    matrix.upper.push(upper);
}
