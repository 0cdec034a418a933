//! A plan as a solution of the program, to start from.
//!
//! A run stands in the stage that ends with the next first run. What is needed there is held from the stage behind the one that made it, or
//! from the stage in which it comes back; it comes back between that stage and the one before. What is moved out was held throughout a
//! stage, if need be one more than in the plan. Plans that fit no such stages, or exceed the budget there, have no start.

use remat_checkmate::{Layout, Setting, start};
use remat_ortools::program::{Program, Variable};
use remat_plan::{NodeId, OpId, Plan, Problem, Step};
use remat_solve::stages::{Node, StageMatrix};

/// Where results are from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// Computed in this stage.
    In(usize),
    /// Brought back before this stage.
    Before(usize),
}

struct Start<'a> {
    setting: &'a Setting,
    computed: StageMatrix,
    held: StageMatrix,
    second: StageMatrix,
    out: StageMatrix,
    back: StageMatrix,
    made: Vec<Option<Made>>,
}

/// The values of all variables, if the plan is a solution.
pub(super) fn solution(
    problem: &Problem,
    setting: &Setting,
    program: &Program,
    layout: &Layout,
    plan: &Plan,
) -> Option<Vec<i64>> {
    let nodes = setting.instance.len();
    let node_of = |op: OpId| setting.instance.node_of(op).map(NodeId::index);
    let empty = || StageMatrix::new(nodes);
    let mut start = Start {
        setting,
        computed: empty(),
        held: empty(),
        second: empty(),
        out: empty(),
        back: empty(),
        made: vec![None; nodes],
    };
    let mut stage = 0;
    for step in &plan.steps {
        match *step {
            Step::Compute(op) | Step::Recompute(op) => {
                let Some(node) = node_of(op) else { continue };
                start.run(stage, node)?;
                stage += usize::from(node == stage);
            }
            Step::PageIn(storage) => {
                let root = problem.storages[storage].root;
                let producer = problem.tensors[root].producer?;
                start.come_back(stage, node_of(producer)?)?;
            }
            Step::PageOut(_) | Step::Free(_) => {}
        }
    }
    let mut values = start::values(setting, program, layout, &start.computed, &start.held)?;
    let mut set = |variable: Option<Variable>, is_on: bool| {
        if let Some(variable) = variable.filter(|_| is_on) {
            values[variable as usize] = 1;
        }
    };
    for stage in 0..nodes {
        for node in 0..stage {
            set(layout.second(stage, node), start.second.get(stage, node));
            set(layout.out(stage, node), start.out.get(stage, node));
            set(layout.back(stage, node), start.back.get(stage, node));
        }
    }
    (stage == nodes && program.is_met(&values)).then_some(values)
}

impl Start<'_> {
    fn run(&mut self, stage: usize, node: Node) -> Option<()> {
        if node > stage || stage >= self.made.len() {
            return None;
        }
        for &parent in self.setting.graph.parents(node) {
            let from = match self.made[parent]? {
                Made::In(made) => made + 1,
                Made::Before(made) => made,
            };
            for held in from..=stage {
                self.held.set(held, parent);
            }
        }
        self.computed.set(stage, node);
        self.made[node] = Some(Made::In(stage));
        Some(())
    }

    fn come_back(&mut self, stage: usize, node: Node) -> Option<()> {
        if self.made[node] == Some(Made::Before(stage)) {
            // Another one of its results.
            return Some(());
        }
        let before = stage.checked_sub(1)?;
        let left = (0..before)
            .rev()
            .find(|&held| self.held.get(held, node) || self.second.get(held + 1, node));
        let left = match (left, self.made[node]?) {
            (Some(left), _) => left,
            (None, Made::In(made)) if made + 1 < before => {
                self.held.set(made + 1, node);
                made + 1
            }
            _ => return None,
        };
        if !self.second.get(left + 1, node) {
            self.out.set(left, node);
        }
        for second in left + 1..=before {
            self.second.set(second, node);
        }
        self.back.set(before, node);
        self.made[node] = Some(Made::Before(stage));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use remat_checkmate::{Freeing, model};
    use remat_cost::Device;
    use remat_ortools::run::Run;
    use remat_plan::Objective;
    use remat_solve::{SolveControl, Solver};
    use remat_testing::TrainingNet;

    use super::*;
    use crate::program::priced;
    use crate::{PagingSearch, Poet, simulate};

    /// Programs over the linear network, and the plans of a search that are solutions: with how many transfers, at what price.
    fn starts(percent: u64, solver: PagingSearch) -> Option<(usize, u64, u64)> {
        let mut problem = TrainingNet::Linear.problem(&Device::preset("mkr1000").unwrap());
        problem.objective = Objective::Energy;
        problem.budget = Some(7_416 * percent / 100);
        let control = SolveControl::new().step_limit(5_000);
        let run = Run::new(Poet.name(), &problem, &control);
        let (setting, prices) = priced(&run).unwrap();
        let budget = setting.instance.scaled_budget(problem.budget);
        let (program, layout) = model::build(&setting, budget, Freeing::Hazards).unwrap();
        let plan = solver.solve(&problem, &control).plan.unwrap();
        let values = solution(&problem, &setting, &program, &layout, &plan)?;
        let price: i64 = program.cost.iter().zip(&values).map(|(cost, value)| cost * value).sum();
        let moved = plan.steps.iter().filter(|step| matches!(step, Step::PageIn(_))).count();
        let exact = simulate(&problem, &run.structure, &plan).energy;
        Some((moved, prices.bound(price), exact))
    }

    #[test]
    fn plans_with_and_without_transfers_are_solutions_at_their_price() {
        let mut found = [0, 0];
        for percent in [90, 80, 70, 60, 50, 45] {
            for &solver in &[PagingSearch::TRANSFERS, PagingSearch::RECOMPUTES, PagingSearch::NEW] {
                let Some((moved, priced, exact)) = starts(percent, solver) else {
                    continue;
                };
                // Prices are rounded down.
                assert!(priced <= exact && exact - priced <= exact / 100_000, "{priced} {exact}");
                found[usize::from(moved > 0)] += 1;
            }
        }
        assert!(found[0] >= 3 && found[1] >= 3, "{found:?}");
    }
}
