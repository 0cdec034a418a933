//! One solver on one problem, and when it found what.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use remat::plan::{BudgetSpec, Plan, parse_duration};
use remat::solver::{Observer, Progress, SolveControl};
use remat::{Error, ErrorKind, Model, Overhead, Solution, SolveRequest};

/// A plan on the way to the best one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Improvement {
    /// Since the solver was called.
    pub(crate) seconds: f64,
    /// Added time, per cent of the baseline.
    pub(crate) increase: f64,
}

/// What one run of a solver gave.
#[derive(Debug)]
pub(crate) struct Run {
    /// Name of the solver.
    pub(crate) solver: String,
    /// The plan, or why there is none, in a few words.
    pub(crate) result: Result<Solution, String>,
    /// What was found on the way, the final plan last.
    pub(crate) improvements: Vec<Improvement>,
}

impl Run {
    /// Seconds until a plan was there that adds no more than `printed` per cent, as a figure with one decimal is printed.
    pub(crate) fn seconds_to(&self, printed: f64) -> Option<f64> {
        let reached = |improvement: &&Improvement| improvement.increase < printed + 0.05;
        self.improvements
            .iter()
            .find(reached)
            .map(|improvement| improvement.seconds)
    }
}

/// How long and how hard.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Effort {
    /// Time to search; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) time: Duration,
    /// Threads to search with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Seed of the search.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[cfg(test)]
impl Effort {
    /// Next to none.
    pub(crate) const LITTLE: Self = Self {
        time: Duration::from_millis(50),
        threads: 1,
        seed: 0,
    };
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, threads, seed } = self;
        let time = time.as_secs_f64();
        write!(f, "{time} s for each, {threads} thread(s), seed {seed}")
    }
}

impl Effort {
    /// The same for what is called beside solvers; the time begins now.
    pub(crate) fn control(self) -> SolveControl<'static> {
        SolveControl::new()
            .time_limit(self.time)
            .threads(self.threads)
            .seed(self.seed)
    }
}

/// The solvers of these names that can be used here, or all there are where no names are given; says which cannot.
pub(crate) fn usable(wanted: &[String]) -> Vec<String> {
    let there = remat::solvers().filter(|solver| solver.missing().is_none());
    let known: Vec<String> = there.map(|solver| solver.name().to_owned()).collect();
    if wanted.is_empty() {
        return known;
    }
    let (there, missing): (Vec<_>, Vec<_>) = wanted.iter().cloned().partition(|name| known.contains(name));
    missing.iter().for_each(|name| crate::console::skipped(name));
    there
}

/// Notes every improvement.
struct Notes {
    baseline: u64,
    improvements: Mutex<Vec<Improvement>>,
    started: Instant,
}

impl Notes {
    fn note(&self, duration: u64, elapsed: Duration) {
        let overhead = Overhead {
            duration,
            baseline: self.baseline,
        };
        let new = Improvement {
            seconds: elapsed.as_secs_f64(),
            increase: overhead.percent(),
        };
        let mut improvements = self.improvements.lock().unwrap_or_else(PoisonError::into_inner);
        if improvements.last().is_none_or(|last| new.increase < last.increase) {
            improvements.push(new);
        }
    }
}

impl Observer for Notes {
    fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
        // The parts of a portfolio each count from their own start.
        self.note(progress.objective, self.started.elapsed());
    }
}

/// Runs a solver. What it finds has passed the checker.
///
/// # Errors
/// Whatever is not a finding or a limit.
pub(crate) fn measure(model: &Model, budget: BudgetSpec, solver: &str, effort: Effort) -> Result<Run, Error> {
    let notes = Notes {
        baseline: model.baseline().duration,
        improvements: Mutex::default(),
        started: Instant::now(),
    };
    let control = effort.control().observer(&notes);
    let request = SolveRequest {
        budget,
        max_overhead: None,
        solver: solver.to_owned(),
    };
    let result = match remat::solve(model, &request, &control) {
        Ok(solution) => {
            notes.note(solution.replay.duration, notes.started.elapsed());
            Ok(solution)
        }
        Err(error) => match error.kind() {
            ErrorKind::Negative => Err("impossible".to_owned()),
            ErrorKind::Limit => Err("none found".to_owned()),
            ErrorKind::Input | ErrorKind::Internal => return Err(error),
        },
    };
    Ok(Run {
        solver: solver.to_owned(),
        result,
        improvements: notes.improvements.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_figure_is_reached_when_ours_rounds_to_it() {
        let improvements = [(0.1, 5.0), (0.2, 0.96), (0.5, 0.94)];
        let run = Run {
            solver: String::new(),
            result: Err(String::new()),
            improvements: improvements
                .map(|(seconds, increase)| Improvement { seconds, increase })
                .to_vec(),
        };
        assert_eq!(run.seconds_to(5.0), Some(0.1));
        assert_eq!(run.seconds_to(0.9), Some(0.5));
        assert_eq!(run.seconds_to(0.8), None);
    }

    #[test]
    fn only_better_plans_are_noted() {
        let notes = Notes {
            baseline: 100,
            improvements: Mutex::default(),
            started: Instant::now(),
        };
        for duration in [120, 130, 110, 110] {
            notes.note(duration, Duration::ZERO);
        }
        let increases: Vec<_> = notes
            .improvements
            .into_inner()
            .unwrap()
            .iter()
            .map(|i| i.increase.round())
            .collect();
        assert_eq!(increases, [20.0, 10.0]);
    }
}
