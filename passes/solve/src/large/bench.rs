//! Driven by `benches/sequence.rs`.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use remat_plan::NodeId;

use super::anneal::propose;
use super::frame::{Frame, Tools};
use super::greedy::Greedy;
use super::timeline::{Edit, Timeline};
use crate::SolveControl;
use crate::control::Meter;
use crate::dag::Dag;
use crate::repair::Chain;
use crate::rng::Rng;
use crate::sequence::{EventId, Layout, Sequence};

/// Changes of a sequence; each leaves the sequence as it was, and returns an excess or duration.
pub trait Driver {
    /// Builds the sequence anew from the reference order.
    fn load(&mut self);
    /// Moves the first run of a node as far ahead as it may, and back.
    fn relocate(&mut self, node: usize) -> i64;
    /// Runs a node once more before the last use of its first value, and takes it out.
    fn insert(&mut self, node: usize) -> i64;
    /// Adds recomputes until the budget holds.
    fn repair(&mut self);
    /// Proposes a change as annealing does, and takes it back.
    fn propose(&mut self) -> i64;
}

/// What reads the first value of a node's first run last, if any does.
pub(crate) fn last_use<L: Layout>(sequence: &Sequence<'_, L>, node: NodeId) -> Option<EventId> {
    let event = sequence.runs(node)[0];
    let end = sequence.end_of(event, sequence.dag().value(node, 0));
    (end != event).then_some(end)
}

/// Works without a limit.
pub(crate) fn unlimited(nodes: usize, work: impl FnOnce(&mut Meter<'_>)) {
    let control = SolveControl::new().step_limit(u64::MAX);
    let done = AtomicBool::new(false);
    work(&mut Meter::new(&control, &done, Instant::now(), nodes));
}

pub(crate) struct Gapped<'a>(Timeline<'a>, Vec<Edit>, Rng, Frame);

impl<'a> Gapped<'a> {
    pub(crate) fn of(dag: &'a Dag, budget: i32) -> Self {
        let nodes: Vec<NodeId> = dag.nodes().collect();
        Self(
            Timeline::of(dag, budget, &nodes),
            Vec::new(),
            Rng::new(0, 0),
            Frame::default(),
        )
    }
}

impl Driver for Gapped<'_> {
    fn load(&mut self) {
        let nodes: Vec<NodeId> = self.0.dag().nodes().collect();
        self.0.load(&nodes);
    }

    fn relocate(&mut self, node: usize) -> i64 {
        let event = self.0.runs(NodeId::new(node))[0];
        let (_, before) = self.0.freedom(event);
        let next = if before < self.0.len() {
            self.0.next_event(before)
        } else {
            EventId::NONE
        };
        if next == EventId::NONE || self.0.next_event(self.0.place_of(event) + 1) == next {
            return 0;
        }
        self.1.push(self.0.relocate(event, next));
        let excess = self.0.excess();
        self.0.undo_to(&mut self.1, 0);
        excess
    }

    fn insert(&mut self, node: usize) -> i64 {
        let Some(end) = last_use(&self.0, NodeId::new(node)) else {
            return 0;
        };
        let inserted = self.0.insert(NodeId::new(node), end);
        let excess = self.0.excess();
        self.0.remove(inserted);
        excess
    }

    fn repair(&mut self) {
        let whole = 0..self.0.len();
        self.3.set(&mut self.0, whole);
        unlimited(self.0.dag().len(), |meter| {
            let mut tools = Tools {
                rng: &mut self.2,
                meter,
            };
            Greedy::default().run(&mut self.0, &mut self.3, Chain::SHORT, &mut tools);
        });
    }

    fn propose(&mut self) -> i64 {
        propose(&mut self.0, &mut self.3, Chain::SHORT, &mut self.1, &mut self.2);
        let excess = self.0.excess();
        self.0.undo_to(&mut self.1, 0);
        excess
    }
}
