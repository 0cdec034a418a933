//! Where the time of a search went.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use web_time::{Duration, Instant};

/// A part of the local search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Round {
    /// Recomputes added until the budget holds, within other rounds too.
    Repair,
    /// Superfluous recomputes dropped after a repair.
    Cleanup,
    /// A start from blocks that repeat.
    Replicate,
    /// A bound on the peak of every plan.
    Floor,
    /// The way into a tight budget, or to the lowest peak.
    Sink,
    /// Simulated annealing.
    Anneal,
    /// Large neighbourhood search.
    Neighbourhood,
    /// Stretches of one sequence in another one, and its improvement.
    Relink,
    /// What is in none of them.
    Rest,
}

impl Round {
    const ALL: [(Self, &str); 9] = [
        (Self::Repair, "repair"),
        (Self::Cleanup, "cleanup"),
        (Self::Replicate, "replicate"),
        (Self::Floor, "floor"),
        (Self::Sink, "sink"),
        (Self::Anneal, "anneal"),
        (Self::Neighbourhood, "lns"),
        (Self::Relink, "relink"),
        (Self::Rest, "rest"),
    ];
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}

/// What all rounds of one kind took and gave. A round within another one counts for itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Times that it began.
    pub rounds: u64,
    /// Steps of the search.
    pub steps: u64,
    /// Time, of all threads together.
    pub time: Duration,
    /// Times that a thread found a better plan than it had, and the first one.
    pub improvements: u64,
    /// By how much those were shorter together; the first plan of a thread, and lower peaks, are no gain.
    pub gain: u64,
}

/// What the rounds of all searches took and gave that were told to take note here.
#[derive(Debug, Default)]
pub struct Profile(Mutex<[Spent; Round::ALL.len()]>);

impl Profile {
    /// Nothing so far.
    #[must_use]
    pub const fn new() -> Self {
        let nothing = Spent {
            rounds: 0,
            steps: 0,
            time: Duration::ZERO,
            improvements: 0,
            gain: 0,
        };
        Self(Mutex::new([nothing; Round::ALL.len()]))
    }

    /// The rounds that there were.
    #[must_use]
    pub fn rounds(&self) -> Vec<(Round, Spent)> {
        let spent = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Round::ALL.into_iter().map(|(round, _)| round).zip(spent);
        all.filter(|&(_, spent)| spent != Spent::default()).collect()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }
}

/// What one thread takes note with; costs nothing where nobody asked.
pub(crate) struct Clock<'a> {
    profile: Option<&'a Profile>,
    spent: [Spent; Round::ALL.len()],
    round: Round,
    since: Instant,
    /// Steps that were taken by then.
    steps: u64,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(profile: Option<&'a Profile>) -> Self {
        Self {
            profile,
            spent: Default::default(),
            round: Round::Rest,
            since: Instant::now(),
            steps: 0,
        }
    }

    /// A round begins after so many steps. Returns the one that it is part of.
    pub(crate) fn enter(&mut self, round: Round, steps: u64) -> Round {
        let around = self.round;
        self.go_on_with(round, steps);
        self.spent[round as usize].rounds += 1;
        around
    }

    /// What happens after so many steps is part of another round.
    pub(crate) fn go_on_with(&mut self, round: Round, steps: u64) {
        if self.profile.is_none() {
            return;
        }
        let now = Instant::now();
        let spent = &mut self.spent[self.round as usize];
        spent.time += now.saturating_duration_since(self.since);
        spent.steps += steps.saturating_sub(self.steps);
        (self.round, self.since, self.steps) = (round, now, steps);
    }

    /// The round gave a better plan.
    pub(crate) fn improved(&mut self, gain: u64) {
        let spent = &mut self.spent[self.round as usize];
        spent.improvements += 1;
        spent.gain = spent.gain.saturating_add(gain);
    }

    /// The thread ends after so many steps.
    pub(crate) fn end(&mut self, steps: u64) {
        self.go_on_with(Round::Rest, steps);
        let Some(profile) = self.profile else {
            return;
        };
        let mut all = profile.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (sum, own) in all.iter_mut().zip(std::mem::take(&mut self.spent)) {
            sum.rounds += own.rounds;
            sum.steps += own.steps;
            sum.time += own.time;
            sum.improvements += own.improvements;
            sum.gain = sum.gain.saturating_add(own.gain);
        }
    }
}

#[cfg(test)]
mod tests {
    use remat_testing::net::with_budget;
    use remat_testing::networks::Blocks;

    use super::*;
    use crate::{Search, SolveControl, Solver};

    #[test]
    fn every_step_and_improvement_is_of_one_round() {
        let problem = with_budget(Blocks::residual(4).training(), 60);
        let profile = Profile::new();
        let control = SolveControl::new().step_limit(30_000).profile(&profile);
        let outcome = Search.solve(&problem, &control);
        let rounds = profile.rounds();
        let steps: u64 = rounds.iter().map(|(_, spent)| spent.steps).sum();
        assert_eq!(steps, outcome.certificate.steps, "{rounds:?}");
        assert!(rounds.iter().any(|(_, spent)| spent.improvements > 0), "{rounds:?}");
        assert!(
            rounds.iter().any(|&(round, _)| round == Round::Neighbourhood),
            "{rounds:?}"
        );
        profile.clear();
        assert!(profile.rounds().is_empty());
    }
}
