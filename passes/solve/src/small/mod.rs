//! Small problems, solved: a search through all states of memory that a plan can come to.
//!
//! It knows what the checker knows: several results and views of one storage, storages without bytes, second instances, workspace, results that
//! stay, anti-dependences, limits on computes, either order. So its proofs speak about every plan, and its plans say where storages leave
//! instead of leaving that to [`lower_sequence`](remat_plan::lower_sequence). Up to 20 ops it mostly ends within a second; where it
//! made as many states as it may, it says what it found and what it proved until then.
//!
//! 1. `rules`: the problem in sets of bits, and what the rest of a plan takes at least;
//! 2. `search`: A* (P. E. Hart, N. J. Nilsson, B. Raphael, *A Formal Basis for the Heuristic Determination of Minimum Cost Paths*, IEEE
//!    Trans. SSC 4(2), 1968) over states, with dominance;
//! 3. `least`: the same for the lowest peak, by halving.

mod least;
mod rules;
mod search;

use remat_plan::{
    BoundCovers, Evidence, Objective, OpId, OrderMode, Plan, Problem, Status, Step, StopReason, StorageId, Structure,
    baseline,
};
use typed_index_collections::TiVec;

pub(crate) use self::least::lowest_peak;
use self::rules::{Rules, Tensors, is_of_one_sum, is_small};
use self::search::{Effort, End, Search};
use crate::claim::Call;
use crate::measure::measure;
use crate::{Domain, Outcome, Phase, Proves, SolveControl, Solver};

/// States that are made at most: about a second.
const MOST_STATES: u64 = 600_000;
/// States for a plan where the proof did not end, as a divisor of those that were made.
const DIVE: u64 = 4;

/// A* over the states of memory of a small problem. Proves that its plan is the best one, or that there is none; refuses problems of more
/// than some 24 ops, or with a second memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Small;

impl Solver for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn describe(&self) -> &'static str {
        "every state of memory that plans can come to, for problems of some 20 ops: the best plan, with proof"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let least = match problem.objective {
            Objective::Energy => problem.total_energy(),
            Objective::Time | Objective::Peak => problem.total_duration(),
        };
        let mut call = Call {
            bound: least,
            ..Call::new(self.name(), problem, control)
        };
        if problem.paging.is_none() && problem.check(&Structure::of(problem)).is_err() {
            return none(&call, Status::Infeasible, StopReason::Proved, 0);
        }
        if !is_small(problem) {
            call.bound = 0;
            return none(&call, Status::Unknown, StopReason::Refused, 0);
        }
        let structure = Structure::of(problem);
        let unchanged = baseline(problem);
        let figures = measure(problem, &structure, &unchanged);
        let is_late = problem.deadline.is_some_and(|deadline| figures.duration > deadline);
        if problem.budget.is_none_or(|budget| figures.peak <= budget) && !is_late {
            // Nothing is better than every op once, and then nothing needs another order.
            call.tell(least, figures.peak, 0, Phase::Greedy, &|| Some(unchanged.clone()));
            return Outcome::new(
                Some(unchanged),
                call.found(least, StopReason::Proved, 0),
                Some(figures.peak),
            );
        }
        let rules = Rules::of(problem);
        let budget = problem.budget.unwrap_or(u64::MAX);
        let longest = problem.deadline.unwrap_or(u64::MAX - 1);
        let interruption = |steps| control.interruption(steps);
        let mut effort = Effort {
            steps: 0,
            most: MOST_STATES,
            interruption: &interruption,
        };
        let mut search = Search::new(&rules, budget, longest);
        let (end, stop, bound) = match search.run(&mut effort) {
            End::Found(end) => (Some(end), StopReason::Proved, search.nodes[end as usize].cost),
            End::None(_) => return none(&call, Status::Infeasible, StopReason::Proved, effort.steps),
            End::Stopped(stop, bound) => {
                effort.most = effort.steps + effort.steps / DIVE;
                (search.dive(&mut effort), stop, bound)
            }
        };
        call.bound = bound.max(least);
        let Some(end) = end else {
            return covered(none(&call, Status::Unknown, stop, effort.steps), problem, least);
        };
        let plan = plan(problem, &rules, &search.way(end));
        let peak = measure(problem, &structure, &plan).peak;
        let objective = search.nodes[end as usize].cost;
        call.tell(objective, peak, effort.steps, Phase::Greedy, &|| Some(plan.clone()));
        let outcome = Outcome::new(Some(plan), call.found(objective, stop, effort.steps), Some(peak));
        covered(outcome, problem, least)
    }

    fn domain(&self) -> Domain {
        Domain::Every
    }

    fn supports(&self, problem: &Problem) -> bool {
        is_of_one_sum(problem)
    }

    fn proves(&self) -> Proves {
        Proves::EveryPlan
    }

    fn is_quick(&self, problem: &Problem) -> bool {
        is_small(problem)
    }
}

/// No plan.
fn none(call: &Call<'_>, status: Status, stop: StopReason, steps: u64) -> Outcome {
    Outcome::new(None, call.not_found(status, stop, steps), None)
}

/// The outcome with what its bound speaks about, where that is above what every plan takes.
fn covered(mut outcome: Outcome, problem: &Problem, least: u64) -> Outcome {
    let certificate = &mut outcome.certificate;
    if certificate.bound > least {
        certificate.evidence = Some(Evidence::Combinatorial);
        certificate.bound_covers = match problem.order {
            OrderMode::Fixed => BoundCovers::FixedOrder,
            OrderMode::Free => BoundCovers::AllPlans,
        };
    }
    outcome
}

/// The plan that goes a way: before each run some storages leave, after it all that nobody awaits any more. Each leaves at its last use already.
fn plan(problem: &Problem, rules: &Rules, way: &[(usize, Tensors)]) -> Plan {
    let mut state = rules.start();
    let mut steps = Vec::new();
    let leave = |set: Tensors, steps: &mut Vec<Step>| {
        let leaving = rules.storages.iter().filter(|storage| set & storage.root != 0);
        steps.extend(leaving.map(|storage| Step::Free(storage.id)));
    };
    for &(op, leaving) in way {
        leave(state.there & leaving, &mut steps);
        state.there &= !leaving;
        let is_again = state.ran >> op & 1 == 1;
        let id = OpId::new(op);
        steps.push(if is_again {
            Step::Recompute(id)
        } else {
            Step::Compute(id)
        });
        state = rules.after(&state, op);
        let awaited = rules.outlook(state.ran).awaited;
        let there = rules.without_unawaited(state.there, awaited);
        leave(state.there & !there, &mut steps);
        state.there = there;
    }
    debug_assert_eq!(state.ran.count_ones() as usize, problem.ops.len());
    freed_at_last_uses(problem, &steps)
}

/// The same plan in which every storage is freed right after the last run before that reads or makes a part of it.
fn freed_at_last_uses(problem: &Problem, steps: &[Step]) -> Plan {
    let mut last_use: TiVec<StorageId, Option<usize>> = vec![None; problem.storages.len()].into();
    let mut runs: Vec<(Step, Vec<Step>)> = Vec::with_capacity(problem.ops.len());
    for &step in steps {
        match step {
            Step::Compute(op) | Step::Recompute(op) => {
                let op = &problem.ops[op];
                for &tensor in op.reads.iter().chain(&op.defines) {
                    last_use[problem.tensors[tensor].storage] = Some(runs.len());
                }
                runs.push((step, Vec::new()));
            }
            Step::Free(storage) => {
                if let Some((_, freed)) = last_use[storage].and_then(|run| runs.get_mut(run)) {
                    freed.push(step);
                }
            }
            // There is no second memory.
            Step::PageOut(_) | Step::PageIn(_) => {}
        }
    }
    let steps = runs
        .into_iter()
        .flat_map(|(run, freed)| std::iter::once(run).chain(freed))
        .collect();
    Plan { steps }
}
