//! The variables and rows of the integer program.

use remat_plan::{OrderMode, Problem};
use remat_solve::stages::{StageGraph, StageMatrix, Stages};

use super::Setting;
use crate::ModelSize;
use crate::instance::{Instance, Node, Refusal};
use crate::program::{Literal, Program, Row, Variable};

/// How stages and nodes belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// Stage `t` ends with the first run of node `t` (section 4.6 of the paper): matrices are triangular, and the linear relaxation
    /// is strong.
    #[default]
    Frontier,
    /// Every node runs in some stage, which allows first runs in other orders and takes full matrices. For small graphs in free
    /// order without graph outputs.
    EveryNode,
    /// As before, but only the last node has to run: enough where it needs all others, refused elsewhere.
    LastNode,
}

impl Partition {
    pub(super) fn check(self, problem: &Problem, instance: &Instance, graph: &StageGraph) -> Result<(), Refusal> {
        if self == Self::Frontier {
            return Ok(());
        }
        let nodes = instance.len();
        if problem.order == OrderMode::Fixed {
            return Err(Refusal::Partition("the problem fixes the order"));
        }
        if (0..nodes).any(|node| instance.kept(node) > 0 || instance.before(node) != graph.parents(node)) {
            return Err(Refusal::Partition(
                "the problem has graph outputs or results without memory",
            ));
        }
        if self == Self::LastNode && (0..nodes.saturating_sub(1)).any(|node| graph.children(node).is_empty()) {
            return Err(Refusal::Partition("the last node does not need all others"));
        }
        Ok(())
    }

    /// How many nodes may run in a stage: those before this one.
    pub(super) fn width(self, stage: usize, nodes: usize) -> usize {
        match self {
            Self::Frontier => stage + 1,
            Self::EveryNode | Self::LastNode => nodes,
        }
    }

    /// How many nodes may be held into a stage: those before this one.
    pub(super) fn held(self, stage: usize, nodes: usize) -> usize {
        match self {
            Self::Frontier => stage,
            Self::EveryNode | Self::LastNode if stage == 0 => 0,
            Self::EveryNode | Self::LastNode => nodes,
        }
    }
}

/// How `FREE` is tied to `R` and `S`. Both have the same integer solutions, but for frees of what is no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freeing {
    /// Section 4.8 of the paper and its artifact: with `h` the number of reasons not to free, `1 - FREE <= h <= K (1 - FREE)`.
    #[default]
    Hazards,
    /// In each stage, what is freed and what is held on is at most what was held or made; and where a node runs that needs `i`, `i`
    /// was not freed before. The rows of the artifact's linear program, pairs there, summed up: a far stronger relaxation.
    Packed,
}

/// Which variable is which.
pub(super) struct Layout {
    partition: Partition,
    nodes: usize,
    /// Where `R`, `S` and `U` of each stage start; they are consecutive.
    computed: Vec<Variable>,
    held: Vec<Variable>,
    memory: Vec<Variable>,
    /// Where `FREE` of each stage starts; for each node that may run the parents in order.
    freed: Vec<Variable>,
    /// For each node how many edges lead to the nodes before it.
    edges_before: Vec<u32>,
}

impl Layout {
    pub(super) fn computed(&self, stage: usize, node: Node) -> Option<Variable> {
        (node < self.partition.width(stage, self.nodes)).then(|| self.computed[stage] + offset(node))
    }

    pub(super) fn held(&self, stage: usize, node: Node) -> Option<Variable> {
        let inside = stage < self.nodes && node < self.partition.held(stage, self.nodes);
        inside.then(|| self.held[stage] + offset(node))
    }

    pub(super) fn memory(&self, stage: usize, node: Node) -> Variable {
        self.memory[stage] + offset(node)
    }

    pub(super) fn freed(&self, stage: usize, node: Node, rank: usize) -> Variable {
        self.freed[stage] + self.edges_before[node] + offset(rank)
    }

    /// The value of an `S` in a solution; `None` where there is no such variable.
    pub(super) fn held_value<T: Copy>(&self, values: &[T], stage: usize, node: Node) -> Option<T> {
        values.get(self.held(stage, node)? as usize).copied()
    }

    /// The runs of a solution in order: `R` completes `S` in the cheapest way where the matrices are triangular, else it is that of
    /// the solution.
    pub(super) fn sequence(&self, graph: &StageGraph, values: &[i64]) -> Vec<Node> {
        if self.partition == Partition::Frontier {
            let held = |stage, node| self.held_value(values, stage, node).is_some_and(|value| value != 0);
            return complete(graph, held);
        }
        let runs = |stage: usize, node: Node| {
            let variable = self.computed(stage, node);
            variable
                .and_then(|variable| values.get(variable as usize))
                .is_some_and(|&value| value != 0)
        };
        let stages = (0..self.nodes).flat_map(|stage| (0..self.nodes).map(move |node| (stage, node)));
        stages
            .filter(|&(stage, node)| runs(stage, node))
            .map(|(_, node)| node)
            .collect()
    }
}

/// The runs of the cheapest `R` for the `S` that `held` describes.
pub(super) fn complete(graph: &StageGraph, held: impl Fn(usize, Node) -> bool) -> Vec<Node> {
    let mut retained = StageMatrix::new(graph.len());
    for stage in 0..graph.len() {
        for node in (0..stage).filter(|&node| held(stage, node)) {
            retained.set(stage, node);
        }
    }
    let stages = Stages::complete(graph, retained);
    (0..graph.len())
        .flat_map(|stage| stages.computed().row(stage))
        .collect()
}

fn offset(count: usize) -> u32 {
    u32::try_from(count).expect("the number of terms is limited below 2^32")
}

/// The program within a budget in units; `None` where no stage can hold the graph outputs and its own node.
pub(super) fn build(setting: &Setting, budget: i64, freeing: Freeing) -> Option<(Program, Layout)> {
    let mut builder = Builder {
        setting,
        freeing,
        nodes: setting.instance.len(),
        program: Program::default(),
        layout: Layout {
            partition: setting.partition,
            nodes: setting.instance.len(),
            computed: Vec::new(),
            held: Vec::new(),
            memory: Vec::new(),
            freed: Vec::new(),
            edges_before: Vec::new(),
        },
    };
    builder.variables(budget)?;
    builder.cover();
    for stage in 0..builder.nodes {
        builder.operands(stage);
        builder.retention(stage);
        builder.memory(stage, budget);
        builder.freeing(stage);
    }
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
    fn width(&self, stage: usize) -> usize {
        self.setting.partition.width(stage, self.nodes)
    }

    fn variables(&mut self, budget: i64) -> Option<()> {
        let (instance, graph) = (&self.setting.instance, &self.setting.graph);
        let mut edges = 0;
        for node in 0..self.nodes {
            self.layout.edges_before.push(edges);
            edges += offset(graph.parents(node).len());
        }
        let mut outputs = 0;
        for stage in 0..self.nodes {
            let width = self.width(stage);
            let at = |program: &Program| offset(program.cost.len());
            self.layout.computed.push(at(&self.program));
            for node in 0..width {
                let first = self.setting.partition == Partition::Frontier && node == stage;
                self.program.variable(if first { 0 } else { instance.duration(node) });
            }
            self.layout.held.push(at(&self.program));
            for _ in 0..self.setting.partition.held(stage, self.nodes) {
                self.program.variable(0);
            }
            self.layout.freed.push(at(&self.program));
            for _ in (0..width).flat_map(|node| graph.parents(node)) {
                self.program.variable(0);
            }
            self.layout.memory.push(at(&self.program));
            for node in 0..width {
                let frontier = self.setting.partition == Partition::Frontier && node == stage;
                let own = if frontier {
                    instance.kept(node) + instance.workspace(node)
                } else {
                    0
                };
                let most = budget - outputs - own;
                if most < 0 {
                    return None;
                }
                self.program.bounded(most);
            }
            outputs += instance.kept(stage);
        }
        Some(())
    }

    /// Constraint 3, and how often a node may run.
    fn cover(&mut self) {
        let instance = &self.setting.instance;
        for node in 0..self.nodes {
            let runs = |from: usize| (from..self.nodes).filter_map(|stage| self.layout.computed(stage, node));
            let (again, most) = match self.setting.partition {
                Partition::Frontier => {
                    let first = self.layout.computed(node, node).map(Literal::is);
                    self.program.clauses.push(first.into_iter().collect());
                    (runs(node + 1).collect::<Vec<_>>(), instance.max_computes(node) - 1)
                }
                Partition::EveryNode | Partition::LastNode => {
                    if self.setting.partition == Partition::EveryNode || node + 1 == self.nodes {
                        self.program.clauses.push(runs(0).map(Literal::is).collect());
                    }
                    (runs(0).collect(), instance.max_computes(node))
                }
            };
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
        for node in 0..self.width(stage) {
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
        for node in 0..self.setting.partition.held(stage + 1, self.nodes) {
            if let Some(held) = self.layout.held(stage + 1, node) {
                let before = [self.layout.held(stage, node), self.layout.computed(stage, node)];
                let before = before.into_iter().flatten().map(Literal::is);
                self.program
                    .clauses
                    .push([Literal::not(held)].into_iter().chain(before).collect());
            }
        }
    }

    /// Constraint 4.
    fn memory(&mut self, stage: usize, budget: i64) {
        let instance = &self.setting.instance;
        let frontier = self.setting.partition == Partition::Frontier;
        let outputs: i64 = if frontier {
            (0..stage).map(|node| instance.kept(node)).sum()
        } else {
            0
        };
        for node in 0..self.width(stage) {
            let mut terms: Vec<(Variable, i64)> = Vec::new();
            match node.checked_sub(1) {
                None => terms.extend(
                    (0..self.setting.partition.held(stage, self.nodes))
                        .filter_map(|held| Some((self.layout.held(stage, held)?, self.setting.bytes(held)))),
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
            let on_top = instance.workspace(node) + instance.kept(node);
            if let Some(run) = run.filter(|_| on_top > 0 && !(frontier && node == stage)) {
                self.program.rows.push(Row {
                    terms: vec![(here, 1), (run, on_top)],
                    most: budget - outputs,
                });
            }
        }
    }

    /// Constraint 5.
    fn freeing(&mut self, stage: usize) {
        for node in 0..self.width(stage) {
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
