//! The linear relaxation of a program, kept in HiGHS from solve to solve: each starts from the basis of the one before.

use web_time::Instant;

use super::highs_capi::{Highs, Outcome, Solution, Watcher};
use super::{Program, Rows};
use crate::clock::{Clock, Ended};

/// A linear program that grows.
pub(crate) struct Relaxation {
    highs: Highs,
    /// Seconds of all solves so far, which HiGHS counts against its limit.
    spent: f64,
    /// What a price of 1 stands for.
    price: f64,
}

impl Relaxation {
    /// The relaxation of a program; `None` if it is too large for the interface.
    pub(crate) fn new(program: &Program) -> Option<Self> {
        let highs = Highs::new(program, false)?;
        highs.integer(c"threads", 1);
        Some(Self {
            highs,
            spent: 0.0,
            price: program.price,
        })
    }

    /// Adds rows; whether that worked.
    pub(crate) fn add(&mut self, rows: &Rows) -> bool {
        self.highs.add(rows)
    }

    /// Solves. Where it was stopped, the multipliers are those reached so far, and the values are not to be trusted.
    pub(crate) fn solve(&mut self, clock: &Clock<'_>) -> (Ended, Solution) {
        if let Some(ended) = clock.ended() {
            return (ended, Solution::default());
        }
        let ended = match self.timed(clock, |highs| highs.run(&Ticking { clock })) {
            Outcome::Optimal => Ended::Optimal,
            Outcome::Infeasible => Ended::Infeasible,
            Outcome::Stopped => clock.ended().unwrap_or(Ended::TimeLimit),
            Outcome::Failed => Ended::Failed,
        };
        let mut solution = self.highs.solution();
        solution
            .multipliers
            .iter_mut()
            .for_each(|multiplier| *multiplier *= self.price);
        (ended, solution)
    }

    /// Multipliers that may prove that the program solved last has no solution.
    pub(crate) fn ray(&mut self, clock: &Clock<'_>) -> Option<Vec<f64>> {
        self.timed(clock, |highs| highs.ray(&Ticking { clock }))
    }

    fn timed<T>(&mut self, clock: &Clock<'_>, work: impl FnOnce(&mut Highs) -> T) -> T {
        if let Some(left) = clock.left() {
            self.highs.number(c"time_limit", self.spent + 0.98 * left.as_secs_f64());
        }
        let started = Instant::now();
        let result = work(&mut self.highs);
        self.spent += started.elapsed().as_secs_f64();
        result
    }
}

/// Stops HiGHS when the clock says so.
struct Ticking<'a> {
    clock: &'a Clock<'a>,
}

impl Watcher for Ticking<'_> {
    fn stop(&self) -> bool {
        self.clock.ended().is_some()
    }

    fn improved(&self, _: &[f64], _: f64) {}
}
