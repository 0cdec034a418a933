//! What one thread does with its time.

use remat_plan::StopReason;

use crate::cleanup::cleanup;
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::lns::Neighbourhood;
use crate::repair::RepairOptions;
use crate::rng::Rng;
use crate::search::Found;
use crate::state::{Edit, Event, State};

/// The best sequence so far.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    /// Time of all runs, in units.
    pub(crate) duration: i64,
    /// Largest memory, in units.
    pub(crate) peak: i32,
    /// Nodes in the order in which they run.
    pub(crate) sequence: Vec<u32>,
}

type Report<'a> = &'a dyn Fn(&Best, &State<'_>, Phase);

/// One thread of the search.
pub(crate) struct Worker<'a> {
    dag: &'a Dag,
    state: State<'a>,
    meter: Meter<'a>,
    rng: Rng,
    neighbourhood: Neighbourhood,
    log: Vec<Edit>,
    buffer: Vec<Event>,
    best: Option<Best>,
    lowest_peak: i32,
    last_improvement: u64,
    report: Report<'a>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(dag: &'a Dag, meter: Meter<'a>, seed: u64, stream: u64, report: Report<'a>) -> Self {
        let state = State::new(dag, i32::MAX);
        Self {
            dag,
            lowest_peak: state.peak(),
            state,
            meter,
            rng: Rng::new(seed, stream),
            neighbourhood: Neighbourhood::default(),
            log: Vec::new(),
            buffer: Vec::new(),
            best: None,
            last_improvement: 0,
            report,
        }
    }

    /// Searches for the shortest sequence within a budget.
    pub(crate) fn minimize_duration(&mut self, budget: i32, start: Option<&[u32]>) -> Found {
        self.state.set_budget(budget);
        if let Some(start) = start {
            self.state.load(start);
        }
        self.neighbourhood.repair.run(
            &mut self.state,
            RepairOptions::GREEDY,
            &mut self.rng,
            &mut self.meter,
            &mut self.log,
        );
        cleanup(&mut self.state, &mut self.buffer, &mut self.log);
        self.note(Phase::Greedy);
        self.found()
    }

    /// Keeps the state if it is within the budget and better than all before.
    fn note(&mut self, phase: Phase) -> bool {
        let better = self
            .best
            .as_ref()
            .is_none_or(|best| self.state.duration() < best.duration);
        if self.state.excess() > 0 || !better {
            return false;
        }
        let best = Best {
            duration: self.state.duration(),
            peak: self.state.peak(),
            sequence: self.state.nodes(),
        };
        (self.report)(&best, &self.state, phase);
        self.last_improvement = self.state.steps;
        self.best = Some(best);
        true
    }

    fn found(&mut self) -> Found {
        self.lowest_peak = self.lowest_peak.min(self.state.peak());
        Found {
            best: self.best.take(),
            lowest_peak: self.lowest_peak,
            stop: self.meter.reason().unwrap_or(StopReason::Converged),
            steps: self.state.steps,
        }
    }
}
