//! What `benches/sequence.rs` drives: sequences in both layouts. No part of the interface.

use remat_plan::{NodeId, Problem, Structure};

use crate::anneal;
use crate::dag::Dag;
pub use crate::large::bench::Driver;
use crate::large::bench::{Gapped, last_use, unlimited};
use crate::repair::{Chain, Repair, RepairOptions};
use crate::rng::Rng;
use crate::state::{Edit, State};

/// Where the events of a sequence stand.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// One beside the other.
    Dense,
    /// With room in between.
    Gapped,
}

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
    pub fn driver(&self, layout: Layout) -> Box<dyn Driver + '_> {
        match layout {
            Layout::Dense => Box::new(Dense(State::new(&self.dag, self.budget), Vec::new(), Rng::new(0, 0))),
            Layout::Gapped => Box::new(Gapped::of(&self.dag, self.budget)),
        }
    }
}

struct Dense<'a>(State<'a>, Vec<Edit>, Rng);

impl Driver for Dense<'_> {
    fn load(&mut self) {
        self.0.load_reference();
    }

    fn relocate(&mut self, node: usize) -> i64 {
        let event = self.0.runs(NodeId::new(node))[0];
        let window = self.0.window(event);
        if *window.end() == self.0.place_of(event) {
            return 0;
        }
        self.1.push(self.0.move_to(event, *window.end()));
        let excess = self.0.excess();
        self.0.undo_to(&mut self.1, 0);
        excess
    }

    fn insert(&mut self, node: usize) -> i64 {
        let Some(end) = last_use(&self.0, NodeId::new(node)) else {
            return 0;
        };
        let inserted = self.0.insert(NodeId::new(node), self.0.place_of(end));
        let excess = self.0.excess();
        self.0.remove(inserted);
        excess
    }

    fn repair(&mut self) {
        let options = RepairOptions {
            max_steps: 20_000,
            ..RepairOptions::GREEDY
        };
        unlimited(self.0.dag().len(), |meter| {
            Repair::default().run(&mut self.0, options, &mut self.2, meter, &mut self.1);
        });
        self.1.clear();
    }

    fn propose(&mut self) -> i64 {
        anneal::propose(&mut self.0, Chain::SHORT, &mut self.1, &mut self.2);
        let excess = self.0.excess();
        self.0.undo_to(&mut self.1, 0);
        excess
    }
}
