//! Simulated annealing of a segment or of the whole sequence, with a price on excess memory that adapts.

use crate::chain::Chain;
use crate::dag::Dag;
use crate::frame::{Frame, Tools};
use crate::moves::propose;
use crate::price::{Price, Units};
use crate::sequence::{Edit, Sequence};

/// Share of the first temperature that is the last one where memory alone counts, as a divisor: short durations do not matter there.
const MELTED: f64 = 300.0;

/// How an annealing begins and ends, and what it pays for excess. Units are those of the problem: its mean duration and mean size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Schedule {
    /// Temperature at the beginning, in mean durations.
    pub(crate) hot: f64,
    /// Temperature at the end, in short durations, where the price of excess adapts; else it is a share of that at the beginning.
    pub(crate) cold: f64,
    /// Mean sizes of excess that cost as much as one mean duration.
    pub(crate) excess: f64,
    /// Whether the price of excess adapts, or stays as it is.
    pub(crate) adapts: bool,
    /// The share of proposals that move a run in free order.
    pub(crate) moves: f64,
}

impl Schedule {
    /// From a good sequence to better ones nearby.
    pub(crate) const NEAR: Self = Self {
        hot: 0.05,
        cold: 0.01,
        excess: 10.0,
        adapts: true,
        moves: 0.5,
    };
    /// From a sequence within the budget to better ones in another order. The cheapest recomputes settle last.
    pub(crate) const FAR: Self = Self {
        hot: 1.5,
        cold: 0.002,
        moves: 0.3,
        ..Self::NEAR
    };
    /// The way into a tight budget: excess is expensive, so that memory alone counts, and at first what is resident may change a lot.
    pub(crate) const MELT: Self = Self {
        hot: 40.0,
        excess: 0.05,
        adapts: false,
        ..Self::NEAR
    };
    /// The same, so hot that at first recomputes cost nothing.
    pub(crate) const WIDE: Self = Self {
        hot: 300.0,
        moves: 0.4,
        ..Self::MELT
    };

    /// The same from another temperature.
    pub(crate) const fn from(self, hot: f64) -> Self {
        Self { hot, ..self }
    }
}

/// What an annealing is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    /// To bring the excess down to this; over as soon as it is.
    Excess(i64),
    /// The least duration without excess, or one that is short enough; starts without excess.
    Duration(i64),
}

/// The steps over which an annealing cools down: from the first one on so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) begin: u64,
    pub(crate) steps: u64,
}

/// Annealing of a frame: minimises `duration + price * excess`.
///
/// The [price](Price) of excess adapts where the schedule says so. The temperature falls geometrically with the share of the steps
/// that are used up; nothing depends on the clock.
pub(crate) struct Annealing {
    units: Units,
    schedule: Schedule,
    chain: Chain,
    /// Of an excess, where it adapts; it goes on from frame to frame.
    price: Price,
    trial: Vec<Edit>,
    log: Vec<Edit>,
}

impl Annealing {
    /// An annealing with temperatures and price fitting the problem.
    pub(crate) fn new(dag: &Dag) -> Self {
        let units = Units::of(dag);
        Self {
            units,
            schedule: Schedule::NEAR,
            chain: Chain::SHORT,
            price: Price::new(units, Schedule::NEAR.excess),
            trial: Vec::new(),
            log: Vec::new(),
        }
    }

    /// From now on anneals like this, with chains up to this.
    pub(crate) fn set(&mut self, schedule: Schedule, chain: Chain) {
        (self.schedule, self.chain) = (schedule, chain);
        self.price = Price::new(self.units, schedule.excess);
    }

    /// Anneals the frame to the end of the span, or until the aim is reached. The sequence is not worse after than before.
    pub(crate) fn run(
        &mut self,
        sequence: &mut Sequence<'_>,
        frame: &mut Frame,
        aim: Aim,
        span: Span,
        tools: &mut Tools<'_, '_>,
    ) {
        let (allowed, goal) = match aim {
            Aim::Excess(excess) => (excess, None),
            Aim::Duration(goal) => (0, Some(goal)),
        };
        let rank = |sequence: &Sequence<'_>| (sequence.excess().max(allowed), sequence.duration());
        let mut best = rank(sequence);
        self.log.clear();
        while sequence.steps - span.begin < span.steps {
            let within = sequence.excess() <= allowed;
            let reached = within && goal.is_none_or(|goal| sequence.duration() <= goal);
            if reached || tools.meter.is_over(sequence.steps) {
                break;
            }
            let progress = (sequence.steps - span.begin) as f64 / span.steps as f64;
            if self.step(sequence, frame, allowed, progress, tools) && rank(sequence) < best {
                best = rank(sequence);
                self.log.clear();
            }
        }
        sequence.undo_to(&mut self.log, 0);
    }

    /// One move. Returns whether the sequence changed.
    fn step(
        &mut self,
        sequence: &mut Sequence<'_>,
        frame: &mut Frame,
        allowed: i64,
        progress: f64,
        tools: &mut Tools<'_, '_>,
    ) -> bool {
        if self.schedule.adapts {
            self.price.adapt(progress);
        }
        let (duration, excess) = (sequence.duration(), sequence.excess());
        self.trial.clear();
        sequence.steps += 1;
        propose(
            sequence,
            frame,
            self.schedule.moves,
            self.chain,
            &mut self.trial,
            tools.rng,
        );
        if self.trial.is_empty() {
            return false;
        }
        let change = (sequence.duration() - duration) as f64 + self.price.value * (sequence.excess() - excess) as f64;
        let hot = self.schedule.hot * self.units.duration;
        let cold = if self.schedule.adapts {
            self.schedule.cold * self.units.short
        } else {
            hot / MELTED
        };
        let temperature = hot * (cold / hot).powf(progress);
        let accepted = change <= 0.0 || tools.rng.chance((-change / temperature).exp());
        if accepted {
            frame.recomputes.extend(self.trial.iter().filter_map(Edit::inserted));
            self.log.append(&mut self.trial);
        } else {
            sequence.undo_to(&mut self.trial, 0);
        }
        self.price.count(sequence.excess() > allowed);
        accepted
    }
}
