//! Retention intervals as a CP-SAT model.
//!
//! For every node `v` and every `i` up to `C(v)` there are a start and an activity, and for every value of `v` an end and a
//! length: an op with several results starts all their intervals at once, and each ends on its own. An interval runs from the
//! event at which `v` runs up to and including the event of the last use.
//!
//! - the first interval of a node is active, and an interval only if the one before it is;
//! - the intervals of a value are disjoint and in order;
//! - cumulative: at every event the active intervals over it fit the capacity. Workspace, and the duplicate of a graph output that is
//!   made again, are intervals of one event; a graph output is an interval to the end;
//! - reservoir, for each value and node that needs it: the level rises by one at the start of an interval of the value and falls
//!   after its end, and a run of the node takes one for its own event; it is never negative;
//! - a node that must not follow another one starts in stages up to the first run of that, in free order before it starts;
//! - starts are those of staged events, or all different. In free order a node also starts after those whose results take no
//!   part in this because they take no memory, or stay for good.

use remat_ortools::ModelSize;
use remat_ortools::cpmodel::{Affine, Change, CpModel, ModelBuilder, Var};
use remat_ortools::scaled::Scaled;
use remat_plan::{NodeId, ValueId};
use typed_index_collections::TiVec;

use super::time::Time;

/// What is minimized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// Phase 1: the larger of peak and budget.
    Peak {
        /// The peak of a plan that is known.
        known: i64,
    },
    /// Phase 2: the time of recomputes.
    Duration,
}

/// The variables of one run of a node.
#[derive(Clone, Debug)]
struct Retention {
    start: Var,
    active: Var,
    /// Length and end of the interval of each of its values.
    values: Vec<(Var, Var)>,
}

/// The model and the way back from its solutions.
pub(super) struct Model {
    builder: ModelBuilder,
    time: Time,
    retentions: TiVec<NodeId, Vec<Retention>>,
    peak: Option<Var>,
    /// What sizes are divided by.
    step: i64,
}

impl Model {
    /// The model in which each node runs up to `computes(node)` times. Sizes and budget are divided by `step` and rounded down: what keeps
    /// the budget as it is keeps it then, too.
    pub(super) fn new(
        instance: &Scaled,
        time: Time,
        computes: impl Fn(NodeId) -> u32,
        (budget, step): (i64, i64),
        goal: Goal,
    ) -> Self {
        let mut model = Self {
            builder: ModelBuilder::default(),
            time,
            step,
            retentions: TiVec::new(),
            peak: None,
        };
        for node in instance.nodes() {
            let retentions = (0..computes(node)).map(|repetition| model.retention(instance, node, repetition));
            let retentions: Vec<_> = retentions.collect();
            model.retentions.push(retentions);
        }
        for node in instance.nodes() {
            model.keep_in_order(node);
        }
        model.respect_memory(instance, budget, goal);
        model.respect_dependencies(instance);
        if let Time::Free { .. } = time {
            let starts: Vec<Var> = model
                .retentions
                .iter()
                .flatten()
                .map(|retention| retention.start)
                .collect();
            model.builder.all_different(&starts);
        }
        match model.peak {
            Some(peak) => model.builder.minimize(&[(peak, 1)]),
            None => model.minimize_duration(instance),
        }
        model
    }

    fn retention(&mut self, instance: &Scaled, node: NodeId, repetition: u32) -> Retention {
        let last = self.time.events() - 1;
        let start = self
            .builder
            .integer(&self.time.starts(node, repetition, instance.last_stage(node)));
        let active = self.builder.boolean(repetition == 0);
        let values = instance.values(node).map(|_| {
            let length = self.builder.integer(&[(1, last + 1)]);
            let end = self.builder.integer(&[(0, last)]);
            // Both ends are part of the interval.
            self.builder
                .linear(&[active], &[(start, 1), (length, 1), (end, -1)], 1, 1);
            (length, end)
        });
        let values = values.collect();
        Retention { start, active, values }
    }

    fn keep_in_order(&mut self, node: NodeId) {
        for pair in self.retentions[node].windows(2) {
            let [before, after] = pair else { continue };
            self.builder.linear(&[after.active], &[(before.active, 1)], 1, 1);
            for &(_, end) in &before.values {
                self.builder
                    .linear(&[after.active], &[(after.start, 1), (end, -1)], 1, i64::MAX);
            }
        }
    }

    fn respect_memory(&mut self, instance: &Scaled, budget: i64, goal: Goal) {
        let budget = budget / self.step;
        let mut demands = Vec::new();
        for (node, retentions) in self.retentions.iter_enumerated() {
            for (repetition, retention) in retentions.iter().enumerate() {
                let start = Affine::of(retention.start);
                for (value, &(length, end)) in instance.values(node).zip(&retention.values) {
                    let size = Affine::of(length);
                    let interval = self
                        .builder
                        .interval(retention.active, start, size, Affine::of(end).plus(1));
                    demands.push((interval, instance.bytes(value)));
                }
                let kept = instance.kept(node);
                let at_once = instance.workspace(node) + if repetition == 0 { 0 } else { kept };
                if at_once > 0 {
                    let one = Affine::constant(1);
                    demands.push((
                        self.builder.interval(retention.active, start, one, start.plus(1)),
                        at_once,
                    ));
                }
                if repetition == 0 && kept > 0 {
                    let all = self.time.events();
                    let size = Affine::minus_variable(all, retention.start);
                    demands.push((
                        self.builder
                            .interval(retention.active, start, size, Affine::constant(all)),
                        kept,
                    ));
                }
            }
        }
        let capacity = match goal {
            Goal::Peak { known } => {
                let peak = self.builder.integer(&[(budget, (known / self.step).max(budget))]);
                self.peak = Some(peak);
                Affine::of(peak)
            }
            Goal::Duration => Affine::constant(budget),
        };
        for (_, demand) in &mut demands {
            *demand /= self.step;
        }
        self.builder.cumulative(&demands, capacity);
    }

    fn respect_dependencies(&mut self, instance: &Scaled) {
        for node in instance.nodes() {
            for &value in instance.needs(node) {
                self.reservoir(instance, value, node);
            }
            if let Time::Free { .. } = self.time {
                for &after in instance.anti_successors(node) {
                    let then = self.retentions[after][0].start;
                    for run in &self.retentions[node] {
                        self.builder
                            .linear(&[run.active], &[(then, 1), (run.start, -1)], 1, i64::MAX);
                    }
                }
                let served: Vec<NodeId> = instance
                    .needs(node)
                    .iter()
                    .map(|&value| instance.producer(value))
                    .collect();
                for &before in instance
                    .predecessors(node)
                    .iter()
                    .filter(|before| !served.contains(before))
                {
                    let (first, then) = (self.retentions[before][0].start, self.retentions[node][0].start);
                    self.builder.linear(&[], &[(then, 1), (first, -1)], 1, i64::MAX);
                }
            }
        }
    }

    fn reservoir(&mut self, instance: &Scaled, value: ValueId, user: NodeId) {
        let producer = instance.producer(value);
        let rank = instance.rank(value);
        let mut changes = Vec::new();
        for retention in &self.retentions[producer] {
            let active = retention.active;
            let (_, end) = retention.values[rank];
            changes.push(Change {
                time: Affine::of(retention.start),
                by: 1,
                active,
            });
            changes.push(Change {
                time: Affine::of(end).plus(1),
                by: -1,
                active,
            });
        }
        for retention in &self.retentions[user] {
            let (start, active) = (Affine::of(retention.start), retention.active);
            changes.push(Change {
                time: start,
                by: -1,
                active,
            });
            changes.push(Change {
                time: start.plus(1),
                by: 1,
                active,
            });
        }
        self.builder.reservoir(&changes);
    }

    fn minimize_duration(&mut self, instance: &Scaled) {
        let priced = self.retentions.iter_enumerated().flat_map(|(node, retentions)| {
            let duration = instance.duration(node);
            retentions
                .iter()
                .skip(1)
                .map(move |retention| (retention.active, duration))
        });
        let terms: Vec<(Var, i64)> = priced.filter(|&(_, duration)| duration > 0).collect();
        self.builder.minimize(&terms);
    }

    pub(super) fn size(&self) -> ModelSize {
        self.builder.size()
    }

    pub(super) fn done(self) -> (CpModel, Solutions) {
        (
            self.builder.done(),
            Solutions {
                retentions: self.retentions,
            },
        )
    }

    /// Starts from a sequence. It is a solution if it keeps the capacity and, in the staged form, is in stage form.
    pub(super) fn start_from(&mut self, instance: &Scaled, sequence: &[NodeId]) {
        let runs = Runs::of(instance, self.time, sequence);
        let count = self.builder.size().integers + self.builder.size().booleans;
        let mut values = vec![0; count];
        let mut set = |variable: Var, value: i64| {
            if let Some(slot) = usize::try_from(variable).ok().and_then(|index| values.get_mut(index)) {
                *slot = value;
            }
        };
        let mut unused = runs.unused.into_iter();
        for (node, retentions) in self.retentions.iter_enumerated() {
            for (repetition, retention) in retentions.iter().enumerate() {
                let run = runs.of_node[node].get(repetition);
                set(retention.active, i64::from(run.is_some()));
                let start = run.map_or_else(
                    || match self.time {
                        Time::Staged { nodes } => {
                            let last = instance.last_stage(node).map_or(nodes - 1, NodeId::index);
                            Time::event(last, node)
                        }
                        Time::Free { .. } => unused.next().unwrap_or(0),
                    },
                    |run| run.start,
                );
                set(retention.start, start);
                for (rank, &(length, end)) in retention.values.iter().enumerate() {
                    let until = run.map_or(start, |run| run.ends[rank]);
                    set(length, until - start + 1);
                    set(end, until);
                }
            }
        }
        if let Some(peak) = self.peak {
            set(peak, instance.peak(sequence).unwrap_or(0) / self.step);
        }
        self.builder.hint(values);
    }
}

/// Reads solutions.
pub(super) struct Solutions {
    retentions: TiVec<NodeId, Vec<Retention>>,
}

impl Solutions {
    /// The runs of a solution, in order.
    pub(super) fn sequence(&self, solution: &[i64]) -> Vec<NodeId> {
        let value = |variable: Var| {
            usize::try_from(variable)
                .ok()
                .and_then(|index| solution.get(index))
                .copied()
        };
        let mut runs: Vec<(i64, NodeId)> = Vec::new();
        for (node, retentions) in self.retentions.iter_enumerated() {
            let active = retentions.iter().filter(|retention| value(retention.active) == Some(1));
            runs.extend(active.filter_map(|retention| Some((value(retention.start)?, node))));
        }
        runs.sort_unstable();
        runs.into_iter().map(|(_, node)| node).collect()
    }
}

/// One run of a node, and the last use of each of its values.
struct RunTimes {
    start: i64,
    ends: Vec<i64>,
}

/// A sequence in terms of events.
struct Runs {
    of_node: TiVec<NodeId, Vec<RunTimes>>,
    /// Events at which nothing runs, in free order.
    unused: Vec<i64>,
}

impl Runs {
    fn of(instance: &Scaled, time: Time, sequence: &[NodeId]) -> Self {
        let mut of_node: TiVec<NodeId, Vec<RunTimes>> = instance.nodes().map(|_| Vec::new()).collect();
        let mut stage = 0;
        let mut position = 0;
        for &node in sequence {
            let event = match time {
                Time::Staged { .. } => Time::event(stage, node),
                Time::Free { .. } => position,
            };
            position += 1;
            stage += usize::from(node.index() == stage);
            for &value in instance.needs(node) {
                let producer = instance.producer(value);
                if let Some(run) = of_node[producer].last_mut() {
                    run.ends[instance.rank(value)] = event;
                }
            }
            of_node[node].push(RunTimes {
                start: event,
                ends: vec![event; instance.values(node).len()],
            });
        }
        Self {
            of_node,
            unused: (position..time.events()).collect(),
        }
    }
}
