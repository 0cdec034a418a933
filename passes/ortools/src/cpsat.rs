//! A model solved by CP-SAT in slices, under a deadline and a flag.
//!
//! The C interface tells nothing while it solves, so a solve is cut into slices of growing length; each starts from the solution
//! and the bound of the one before. With one worker the slices are measured in CP-SAT's deterministic time, so that the result
//! does not depend on the speed of the machine unless the deadline is hit.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use web_time::{Duration, Instant};

use crate::messages::{CpModelProto, CpSolverResponse, CpSolverStatus, PartialVariableAssignment, SatParameters};

use remat_plan::Evidence;
use remat_solve::SolveControl;

use crate::capi::Environment;
use crate::clock::{Clock, Ended, PATIENCE};
use crate::cpmodel::CpModel;

/// Length of the first slice in seconds (of deterministic time with one worker), and how much longer the next one is. Every slice
/// repeats the presolve, so the first is long enough for most models to be solved in it, and larger models get more.
const FIRST_SLICE: f64 = 20.0;
const CONSTRAINTS_PER_SECOND: f64 = 1000.0;
const GROWTH: f64 = 3.0;
/// CP-SAT compares objective and bound in floating point: above this, an optimum is one only if a search below it finds nothing.
const EXACT_IN_FLOATING_POINT: i64 = 1 << 53;
/// How often the flag is looked at.
const POLL: Duration = Duration::from_millis(10);
/// Solves shorter than this are not started.
const SHORTEST: Duration = Duration::from_millis(5);

/// What is known of a model after the last slice.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Why the solver ended.
    pub ended: Ended,
    /// No solution has a smaller objective.
    pub bound: i64,
    /// What the bound, or that there is no solution, rests on.
    pub evidence: Evidence,
    /// Conflicts of all slices.
    pub conflicts: u64,
}

/// Minimizes the objective of a model as [`minimize_with`], with CP-SAT's own portfolio of searches.
pub fn minimize(model: CpModel, lower: i64, clock: &Clock<'_>, improved: &mut dyn FnMut(&[i64], i64, i64)) -> Answer {
    minimize_with(model.0, parameters(clock.control), lower, clock, improved)
}

/// As many workers as there may be threads, and their seed.
pub(crate) fn parameters(control: &SolveControl<'_>) -> SatParameters {
    SatParameters {
        num_workers: Some(i32::try_from(control.threads.max(1)).unwrap_or(i32::MAX)),
        random_seed: Some(i32::try_from(control.seed & 0x3fff_ffff).unwrap_or(0)),
        catch_sigint_signal: Some(false),
        ..SatParameters::default()
    }
}

/// Minimizes the objective of a model; `lower` is a bound on it that is known beforehand.
///
/// `improved` is told of every better solution with its objective and the bound, at the end of the slice that found it.
pub(crate) fn minimize_with(
    model: CpModelProto,
    parameters: SatParameters,
    lower: i64,
    clock: &Clock<'_>,
    improved: &mut dyn FnMut(&[i64], i64, i64),
) -> Answer {
    let mut length = FIRST_SLICE + model.constraints.len() as f64 / CONSTRAINTS_PER_SECOND;
    let mut slices = Slices {
        model: Arc::new(model),
        parameters,
        clock,
        conflicts: 0,
    };
    let mut answer = Answer {
        ended: Ended::TimeLimit,
        bound: lower,
        evidence: Evidence::solver("CP-SAT", 0.0),
        conflicts: 0,
    };
    // The cost of the best solution, and whether only solutions that cost less are asked for.
    let mut best: Option<i64> = None;
    let mut below = false;
    loop {
        let slice = match slices.next(length) {
            Ok(slice) => slice,
            Err(ended) => {
                answer.ended = ended;
                break;
            }
        };
        let status = slice.status();
        if matches!(status, CpSolverStatus::Optimal | CpSolverStatus::Feasible) {
            let objective = objective(&slices.model, &slice.solution);
            if status == CpSolverStatus::Optimal && objective > EXACT_IN_FLOATING_POINT && objective > answer.bound {
                improved(&slice.solution, objective, answer.bound);
                best = Some(objective);
                below = true;
                slices.continue_from(&slice.solution, answer.bound, objective - 1);
                continue;
            }
            answer.bound = answer.bound.max(slice.inner_objective_lower_bound).min(objective);
            if best.is_none_or(|best| objective < best) {
                best = Some(objective);
                improved(&slice.solution, objective, answer.bound);
                slices.continue_from(&slice.solution, answer.bound, objective);
            }
        } else if status == CpSolverStatus::Unknown {
            answer.bound = answer
                .bound
                .max(slice.inner_objective_lower_bound.min(best.unwrap_or(i64::MAX)));
        }
        answer.ended = match status {
            CpSolverStatus::Optimal => Ended::Optimal,
            CpSolverStatus::Infeasible if best.is_none() => Ended::Infeasible,
            CpSolverStatus::Infeasible if below => Ended::Optimal,
            CpSolverStatus::Infeasible | CpSolverStatus::ModelInvalid => {
                tracing::error!(info = slice.solution_info, "CP-SAT rejects its model");
                Ended::Failed
            }
            _ if best.is_some_and(|best| answer.bound >= best) => Ended::Optimal,
            CpSolverStatus::Unknown | CpSolverStatus::Feasible => {
                tracing::debug!(?best, bound = answer.bound, length, "slice ended");
                length *= GROWTH;
                continue;
            }
        };
        if let (Ended::Optimal, Some(best)) = (answer.ended, best) {
            answer.bound = best;
        }
        break;
    }
    answer.conflicts = slices.conflicts;
    answer
}

/// Value of a model's objective, offset and scaling apart.
fn objective(model: &CpModelProto, solution: &[i64]) -> i64 {
    let Some(objective) = &model.objective else { return 0 };
    let terms = objective.vars.iter().zip(&objective.coeffs);
    terms
        .map(|(&variable, &coefficient)| {
            let value = usize::try_from(variable).ok().and_then(|index| solution.get(index));
            value.map_or(0, |value| value * coefficient)
        })
        .sum()
}

struct Slices<'a> {
    model: Arc<CpModelProto>,
    parameters: SatParameters,
    clock: &'a Clock<'a>,
    conflicts: u64,
}

impl Slices<'_> {
    /// Solves for that long at most, or says why there is no next slice.
    fn next(&mut self, length: f64) -> Result<CpSolverResponse, Ended> {
        let clock = self.clock;
        if clock.cancelled() {
            return Err(Ended::Cancelled);
        }
        let left = clock.left();
        if left.is_some_and(|left| left < SHORTEST) {
            return Err(Ended::TimeLimit);
        }
        let mut parameters = self.parameters.clone();
        if let Some(bytes) = clock.control.memory_limit {
            parameters.max_memory_in_mb = Some(i64::try_from(bytes >> 20).unwrap_or(i64::MAX).max(1));
        }
        if let Some(limit) = clock.control.step_limit {
            let left = limit.saturating_sub(self.conflicts);
            if left == 0 {
                return Err(Ended::StepLimit);
            }
            parameters.max_number_of_conflicts = Some(i64::try_from(left).unwrap_or(i64::MAX));
        }
        // A last slice that would be short belongs to the one before it.
        let ends_with_the_deadline = left.is_some_and(|left| left.as_secs_f64() < 2.0 * length);
        if !ends_with_the_deadline {
            if self.parameters.num_workers == Some(1) {
                parameters.max_deterministic_time = Some(length);
            } else {
                parameters.max_time_in_seconds = Some(length);
            }
        }
        if let Some(left) = left {
            let until_then = parameters.max_time_in_seconds.unwrap_or(f64::INFINITY);
            parameters.max_time_in_seconds = Some(until_then.min(0.98 * left.as_secs_f64()));
        }
        let response = solve(Arc::clone(&self.model), parameters, clock)?;
        self.conflicts += u64::try_from(response.num_conflicts).unwrap_or(0);
        let over = response.status() == CpSolverStatus::Unknown || response.status() == CpSolverStatus::Feasible;
        if over && response.solution.is_empty() && clock.cancelled() {
            return Err(Ended::Cancelled);
        }
        Ok(response)
    }

    /// Makes the next slice start from a solution, between a bound and its objective.
    fn continue_from(&mut self, solution: &[i64], bound: i64, objective: i64) {
        // The thread that shared the model is gone unless it was given up, and then nothing comes after.
        let model = Arc::make_mut(&mut self.model);
        model.solution_hint = Some(PartialVariableAssignment {
            vars: (0..).take(solution.len()).collect(),
            values: solution.to_vec(),
        });
        if let Some(target) = &mut model.objective {
            target.domain = vec![bound.min(objective), objective];
        }
    }
}

/// One call of the library, in a thread of its own so that this one can watch the clock.
///
/// Where the library does not return soon after it was told to stop, its thread is left behind: a deadline is a promise.
fn solve(model: Arc<CpModelProto>, parameters: SatParameters, clock: &Clock<'_>) -> Result<CpSolverResponse, Ended> {
    let environment = Arc::new(Environment::new().ok_or(Ended::Failed)?);
    let (send, receive) = channel();
    let solver = Arc::clone(&environment);
    std::thread::spawn(move || {
        let response = solver.solve(&model, &parameters);
        drop(model);
        // Nobody listens any more where the thread was left behind.
        let _ = send.send(response);
    });
    let mut give_up: Option<(Instant, Ended)> = None;
    loop {
        match receive.recv_timeout(POLL) {
            Ok(response) => return response.ok_or(Ended::Failed),
            Err(RecvTimeoutError::Disconnected) => return Err(Ended::Failed),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        match give_up {
            Some((when, ended)) if now >= when => {
                tracing::info!("CP-SAT does not stop in time, its thread is left behind");
                return last_word(&receive).ok_or(ended);
            }
            Some(_) => {}
            None if clock.cancelled() => {
                environment.stop();
                give_up = Some((now + PATIENCE, Ended::Cancelled));
            }
            None if clock.is_over() => {
                environment.stop();
                give_up = Some((now + clock.grace(), Ended::TimeLimit));
            }
            None => {}
        }
    }
}

fn last_word(receive: &Receiver<Option<CpSolverResponse>>) -> Option<CpSolverResponse> {
    receive.try_recv().ok().flatten()
}
