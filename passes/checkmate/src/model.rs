//! The variables of the integer program, and the rows that are made of them.

use remat_plan::NodeId;
use remat_solve::stages::Node;

use super::Setting;
use super::layout::{Freeing, Layout, offset};
use remat_ortools::ModelSize;
use remat_ortools::program::{Literal, Program, Row, Variable};

/// The program within a budget in units; `None` where no stage can hold the graph outputs and its own node.
#[must_use]
pub fn build(setting: &Setting, budget: i64, freeing: Freeing) -> Option<(Program, Layout)> {
    let mut builder = Builder {
        setting,
        freeing,
        nodes: setting.instance.len(),
        program: Program::default(),
        layout: Layout::new(setting.instance.len()),
    };
    builder.variables(budget)?;
    builder.cover();
    for stage in 0..builder.nodes {
        builder.operands(stage);
        builder.retention(stage);
        builder.memory(stage, budget);
        builder.freeing(stage);
        builder.pages(stage);
    }
    builder.deadline();
    debug_assert!(
        {
            let (known, built) = (setting.size(freeing), builder.program.size());
            let figures = |size: ModelSize| (size.integers + size.booleans, size.constraints, size.terms);
            figures(known) == figures(built)
        },
        "the size is known beforehand"
    );
    Some((builder.program, builder.layout))
}

struct Builder<'a> {
    setting: &'a Setting,
    freeing: Freeing,
    nodes: usize,
    program: Program,
    layout: Layout,
}

impl Builder<'_> {
    fn variables(&mut self, budget: i64) -> Option<()> {
        let (instance, graph) = (&self.setting.instance, &self.setting.graph);
        self.layout.count_edges(graph);
        let mut outputs = 0;
        for stage in 0..self.nodes {
            let frees = self.layout.frees(stage + 1);
            self.layout
                .begin_stage(self.program.cost.len(), [stage + 1, stage, frees]);
            for node in 0..=stage {
                let pages = self.setting.pages.as_ref();
                let price = pages.map_or_else(|| instance.duration(NodeId::new(node)), |pages| pages.price.run[node]);
                self.program.variable(if node == stage { 0 } else { price });
            }
            for _ in 0..stage + frees {
                self.program.variable(0);
            }
            for node in 0..=stage {
                let first = instance.kept(NodeId::new(node)) + instance.workspace(NodeId::new(node));
                let most = budget - outputs - if node == stage { first } else { 0 };
                if most < 0 {
                    return None;
                }
                self.program.bounded(most);
            }
            outputs += instance.kept(NodeId::new(stage));
            if let Some(pages) = self.setting.pages.as_ref().filter(|pages| pages.moves) {
                self.layout.begin_pages(self.program.cost.len(), stage);
                let free = std::iter::repeat_n(&0, stage);
                let prices = free.chain(&pages.price.back[..stage]).chain(&pages.price.out[..stage]);
                for &price in prices {
                    self.program.variable(price);
                }
            }
        }
        Some(())
    }

    /// Constraint 3, how often a node may run, and the stages that it must not run in any more.
    fn cover(&mut self) {
        let instance = &self.setting.instance;
        for node in 0..self.nodes {
            let runs = |from: usize| (from..self.nodes).filter_map(|stage| self.layout.computed(stage, node));
            let first = self.layout.computed(node, node).map(Literal::is);
            self.program.clauses.push(first.into_iter().collect());
            let last = instance.last_stage(NodeId::new(node)).map_or(self.nodes, NodeId::index);
            let late = runs(last + 1).map(|run| vec![Literal::not(run)]);
            self.program.clauses.extend(late);
            let again: Vec<Variable> = runs(node + 1).collect();
            let most = instance.max_computes(NodeId::new(node)) - 1;
            if again.len() > most as usize {
                self.program.rows.push(Row {
                    terms: again.into_iter().map(|run| (run, 1)).collect(),
                    most: i64::from(most),
                });
            }
        }
    }

    /// Constraint 1.
    fn operands(&mut self, stage: usize) {
        for node in 0..=stage {
            for &parent in self.setting.graph.parents(node) {
                let run = self.layout.computed(stage, node).map(Literal::not);
                let found = [self.layout.computed(stage, parent), self.layout.held(stage, parent)];
                let found = found.into_iter().flatten().map(Literal::is);
                self.program.clauses.push(run.into_iter().chain(found).collect());
            }
        }
    }

    /// Constraint 2; part of [`Freeing::Packed`].
    fn retention(&mut self, stage: usize) {
        if self.freeing == Freeing::Packed {
            return;
        }
        for node in 0..=stage {
            if let Some(held) = self.layout.held(stage + 1, node) {
                let before = [
                    self.layout.held(stage, node),
                    self.layout.computed(stage, node),
                    self.layout.back(stage, node),
                ];
                let before = before.into_iter().flatten().map(Literal::is);
                self.program
                    .clauses
                    .push([Literal::not(held)].into_iter().chain(before).collect());
            }
        }
    }

    /// What lies in the second memory was there or is moved out; only that comes back, and only what is held is moved out.
    fn pages(&mut self, stage: usize) {
        if !self.setting.pages.as_ref().is_some_and(|pages| pages.moves) {
            return;
        }
        for node in 0..=stage {
            if let Some(second) = self.layout.second(stage + 1, node) {
                let before = [self.layout.second(stage, node), self.layout.out(stage, node)];
                let before = before.into_iter().flatten().map(Literal::is);
                self.program
                    .clauses
                    .push([Literal::not(second)].into_iter().chain(before).collect());
            }
            let back = self.layout.back(stage, node).zip(self.layout.second(stage, node));
            let out = self.layout.out(stage, node).zip(self.layout.held(stage, node));
            for (moved, from) in back.into_iter().chain(out) {
                self.program.clauses.push(vec![Literal::not(moved), Literal::is(from)]);
            }
        }
    }

    /// The times of further runs and of transfers together fit what the first runs leave of the deadline.
    fn deadline(&mut self) {
        let Some((times, left)) = self.setting.pages.as_ref().and_then(|pages| pages.deadline.as_ref()) else {
            return;
        };
        let mut terms = Vec::new();
        for stage in 0..self.nodes {
            for node in 0..stage {
                let timed = [
                    (self.layout.computed(stage, node), times.run[node]),
                    (self.layout.back(stage, node), times.back[node]),
                    (self.layout.out(stage, node), times.out[node]),
                ];
                terms.extend(timed.into_iter().filter_map(|(variable, time)| Some((variable?, time))));
            }
        }
        self.program.rows.push(Row { terms, most: *left });
    }

    /// Constraint 4.
    fn memory(&mut self, stage: usize, budget: i64) {
        let instance = &self.setting.instance;
        let outputs: i64 = (0..stage).map(|node| instance.kept(NodeId::new(node))).sum();
        for node in 0..=stage {
            let mut terms: Vec<(Variable, i64)> = Vec::new();
            match node.checked_sub(1) {
                None => terms.extend(
                    (0..stage).filter_map(|held| Some((self.layout.held(stage, held)?, self.setting.bytes(held)))),
                ),
                Some(last) => {
                    terms.push((self.layout.memory(stage, last), 1));
                    let parents = self.setting.graph.parents(last).iter().enumerate();
                    terms
                        .extend(parents.map(|(rank, &parent)| {
                            (self.layout.freed(stage, last, rank), -self.setting.bytes(parent))
                        }));
                }
            }
            let run = self.layout.computed(stage, node);
            terms.extend(run.map(|run| (run, self.setting.bytes(node))));
            let here = self.layout.memory(stage, node);
            terms.push((here, -1));
            self.program.rows.push(Row { terms, most: 0 });
            let on_top = instance.workspace(NodeId::new(node)) + instance.kept(NodeId::new(node));
            if let Some(run) = run.filter(|_| on_top > 0 && node != stage) {
                self.program.rows.push(Row {
                    terms: vec![(here, 1), (run, on_top)],
                    most: budget - outputs,
                });
            }
        }
    }

    /// Constraint 5.
    fn freeing(&mut self, stage: usize) {
        for node in 0..=stage {
            let users = self.setting.graph.children(node).iter();
            let users: Vec<Variable> = users.filter_map(|&user| self.layout.computed(stage, user)).collect();
            let frees: Vec<Variable> = (0..users.len())
                .filter_map(|rank| self.free_after(stage, node, rank))
                .collect();
            match self.freeing {
                Freeing::Hazards => self.hazards(stage, node, &users, &frees),
                Freeing::Packed => self.packed(stage, node, &users, &frees),
            }
        }
    }

    /// `FREE` of a node after its user of that rank.
    fn free_after(&self, stage: usize, node: Node, rank: usize) -> Option<Variable> {
        let user = *self.setting.graph.children(node).get(rank)?;
        let parent = self.setting.graph.parents(user).binary_search(&node).ok()?;
        Some(self.layout.freed(stage, user, parent))
    }

    fn hazards(&mut self, stage: usize, node: Node, users: &[Variable], frees: &[Variable]) {
        let held_on = self.layout.held(stage + 1, node);
        for (rank, (&user, &free)) in users.iter().zip(frees).enumerate() {
            let reasons: Vec<Variable> = users[rank + 1..].iter().copied().chain(held_on).collect();
            let all = 1 + i64::from(offset(reasons.len()));
            let clause = [Literal::not(user), Literal::is(free)].into_iter();
            self.program
                .clauses
                .push(clause.chain(reasons.iter().copied().map(Literal::is)).collect());
            let terms = reasons.into_iter().map(|reason| (reason, 1));
            self.program.rows.push(Row {
                terms: terms.chain([(user, -1), (free, all)]).collect(),
                most: all - 1,
            });
        }
    }

    fn packed(&mut self, stage: usize, node: Node, users: &[Variable], frees: &[Variable]) {
        let there = [self.layout.held(stage, node), self.layout.computed(stage, node)];
        let there = there.into_iter().flatten().map(|variable| (variable, -1));
        let gone = frees
            .iter()
            .copied()
            .chain(self.layout.held(stage + 1, node))
            .map(|variable| (variable, 1));
        self.program.rows.push(Row {
            terms: gone.chain(there).collect(),
            most: 0,
        });
        for (rank, &user) in users.iter().enumerate().skip(1) {
            let before = frees[..rank].iter().map(|&free| (free, 1));
            self.program.rows.push(Row {
                terms: before.chain([(user, 1)]).collect(),
                most: 1,
            });
        }
    }
}
