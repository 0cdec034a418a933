//! What `benches/sequence.rs` drives: the moves of the search. No part of the interface.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use remat_plan::{NodeId, Problem, Structure};

use crate::SolveControl;
use crate::chain::Chain;
use crate::control::Meter;
use crate::dag::Dag;
use crate::frame::{Frame, Tools};
use crate::moves::propose;
use crate::repair::{Repair, RepairOptions};
use crate::rng::Rng;
use crate::sequence::{Edit, EventId, Sequence};

/// A problem as the search sees it.
pub struct Subject {
    dag: Dag,
    budget: i32,
}

impl Subject {
    /// A problem with a budget.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let dag = Dag::of(problem, &Structure::of(problem));
        let budget = dag.scaled_budget(problem.budget);
        Self { dag, budget }
    }

    /// The reference order of the problem, to make changes in.
    #[must_use]
    pub fn driver(&self) -> Driver<'_> {
        let nodes: Vec<NodeId> = self.dag.nodes().collect();
        Driver {
            sequence: Sequence::of(&self.dag, self.budget, &nodes),
            frame: Frame::default(),
            log: Vec::new(),
            rng: Rng::new(0, 0),
        }
    }
}

/// Changes of a sequence; each but [`Driver::repair`] leaves the sequence as it was and returns an excess.
pub struct Driver<'a> {
    sequence: Sequence<'a>,
    frame: Frame,
    log: Vec<Edit>,
    rng: Rng,
}

impl Driver<'_> {
    /// Builds the sequence anew from the reference order.
    pub fn load(&mut self) {
        self.sequence.load_reference();
    }

    /// Moves the first run of a node as far ahead as it may, and back.
    pub fn relocate(&mut self, node: usize) -> i64 {
        let event = self.sequence.runs(NodeId::new(node))[0];
        let next = self.sequence.next_event(self.sequence.window(event).end - 1);
        if next == EventId::NONE || self.sequence.next_event(self.sequence.place_of(event) + 1) == next {
            return 0;
        }
        self.log.push(self.sequence.relocate(event, next));
        self.undone()
    }

    /// Runs a node once more before the last use of its first value, and takes it out.
    pub fn insert(&mut self, node: usize) -> i64 {
        let node = NodeId::new(node);
        let event = self.sequence.runs(node)[0];
        let end = self.sequence.end_of(event, self.sequence.dag().value(node, 0));
        if end == event {
            return 0;
        }
        self.log.push(Edit::Inserted(self.sequence.insert(node, end)));
        self.undone()
    }

    /// Proposes a change as annealing does, and takes it back.
    pub fn propose(&mut self) -> i64 {
        propose(
            &mut self.sequence,
            &mut self.frame,
            0.0,
            Chain::SHORT,
            &mut self.log,
            &mut self.rng,
        );
        self.undone()
    }

    /// Adds recomputes until the budget holds.
    pub fn repair(&mut self) {
        let (control, done) = (SolveControl::new(), AtomicBool::new(false));
        let mut meter = Meter::new(&control, &done, Instant::now(), self.sequence.dag().len());
        let options = RepairOptions {
            max_steps: 20_000,
            ..RepairOptions::GREEDY
        };
        let mut tools = Tools {
            rng: &mut self.rng,
            meter: &mut meter,
        };
        Repair::default().run(&mut self.sequence, &[], options, &mut tools, &mut self.log);
        self.log.clear();
        let whole = 0..self.sequence.len();
        self.frame.set(&mut self.sequence, whole);
    }

    fn undone(&mut self) -> i64 {
        let excess = self.sequence.excess();
        self.sequence.undo_to(&mut self.log, 0);
        excess
    }
}
