//! Bounds on all plans in fixed order, and proofs that a plan is the best of them.

mod blocks;

use std::collections::BTreeSet;

use remat_plan::{Evidence, NodeId, OrderMode, Problem};
use remat_solve::{External, Outcome, Proves, SolveControl, Solver};

use crate::clock::Ended;
use crate::library::OrTools;
use crate::milp::Rows;
use crate::milp::relaxation::Relaxation;
use crate::program::proof::Proof;
use crate::program::{Reduced, Row, cp, linear, mip};
use crate::run::{self, Claim, Early, Incumbent, Run, terms_within};
use crate::scaled::{Refusal, Scaled};
use blocks::Blocks;

/// Terms of a relaxation for which there is time, for each second that is left, and at most.
const TERMS_PER_SECOND: f64 = 150_000.0;
const MAX_TERMS: u64 = 4_000_000;
/// Terms that are built and handed to HiGHS in a second, at least. It cannot be interrupted meanwhile.
const TERMS_BUILT_PER_SECOND: f64 = 1_000_000.0;
/// Relaxations that are larger even with the fewest ends are not built: solvers count terms in `i32`.
const TOO_MANY_TERMS: u64 = 1 << 30;
/// How many ends to begin with. The fewer, the easier the relaxation, and often the stronger its linear relaxation.
const FEWEST_ENDS: usize = 2;
/// A violation of a row by less than this share of its right side is none.
const TOLERANCE: f64 = 1e-6;

/// Proves that a plan is the best in fixed order, or how far from that it may be.
///
/// Works on a relaxation (module `blocks`) in which memory is looked at where chosen nodes run first, and at reruns. Its linear
/// relaxation gives the first bound, proved in integers, and settles most of what a better plan could do; CP-SAT
/// searches the rest for one. Where the graph is too large for the time that is left, fewer nodes are chosen: the bound is weaker but
/// covers the same plans, [`FixedOrder`](remat_plan::BoundCovers::FixedOrder), with as many computes as the problem allows.
///
/// In free order only nodes are chosen of which each other node is an ancestor or a descendant, as along the chain of a network, and the
/// bound covers [`AllPlans`](remat_plan::BoundCovers::AllPlans); where there are none, nothing but the trivial bound is found.
///
/// Needs a plan to start from to be of use: a warm start or else one of the local search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact;

impl Solver for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn describe(&self) -> &'static str {
        "proves how good a plan is among all plans in fixed order, on HiGHS and CP-SAT"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        run::call(self.name(), problem, control, attempt)
    }

    fn proves(&self) -> Proves {
        Proves::EveryPlan
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }
}

fn attempt(run: &Run<'_>) -> Result<Outcome, Early> {
    let (instance, best) = run.started()?;
    let mut search = Proving {
        run,
        instance: &instance,
        budget: instance.scaled_budget(run.problem.budget),
        may: match run.problem.order {
            OrderMode::Fixed => instance.nodes().collect(),
            OrderMode::Free => blocks::forced(&instance),
        },
        best,
        bound: 0,
        evidence: Evidence::ExactIntegers,
        steps: 0,
    };
    let ended = search.prove()?;
    let claim = Claim {
        ended,
        bound: instance.total_duration() + search.bound,
        covers: match run.problem.order {
            OrderMode::Fixed => instance.fixed_order(),
            OrderMode::Free => instance.any_order(),
        },
        evidence: search.evidence,
        steps: search.steps,
    };
    Ok(run.outcome(&instance, search.best.as_ref(), claim))
}

struct Proving<'a> {
    run: &'a Run<'a>,
    instance: &'a Scaled,
    budget: i64,
    /// The nodes that may be ends.
    may: Vec<NodeId>,
    best: Option<Incumbent>,
    /// On the time of recomputes of every plan that the bound covers.
    bound: i64,
    /// What the bound rests on, or that there is no plan.
    evidence: Evidence,
    steps: u64,
}

impl Proving<'_> {
    /// Relaxation after relaxation, each with more ends than the one before, placed where its best solution exceeds the budget.
    fn prove(&mut self) -> Result<Ended, Refusal> {
        let Some(most) = self.most_ends()? else {
            return Ok(self.run.clock.ended().unwrap_or(Ended::TimeLimit));
        };
        if most == 0 {
            return Ok(self.run.clock.ended().unwrap_or(Ended::StepLimit));
        }
        let ends = |count| blocks::ends(self.instance, self.budget, count, &self.may);
        let first = ends(FEWEST_ENDS.min(most));
        let mut round = self.linear(first);
        loop {
            let mut missed = Vec::new();
            let ended = if round.is_open() && !self.is_closed() {
                self.integer(&round, &mut missed)
            } else {
                round.ended
            };
            let count = round.model.ends().len();
            if self.is_closed() {
                return Ok(Ended::Optimal);
            }
            if ended != Ended::Optimal {
                return Ok(ended);
            }
            if count >= most {
                // The relaxation is solved, the problem is not: there is nothing more to try.
                return Ok(Ended::StepLimit);
            }
            let ends = self.more_ends(round.model.ends(), &missed, most);
            round = self.linear(ends);
        }
    }

    /// Ends where the best solution of the last relaxation exceeds the budget, the worst first, or just more of them.
    fn more_ends(&self, ends: &[NodeId], missed: &[(i64, NodeId)], most: usize) -> Vec<NodeId> {
        let mut more: BTreeSet<NodeId> = ends.iter().copied().collect();
        let enough = (more.len() + (more.len() / 2).max(1)).min(most);
        let mut missed = missed.to_vec();
        missed.sort_unstable_by(|a, b| b.cmp(a));
        for (_, node) in missed {
            if more.len() < enough && self.may.binary_search(&node).is_ok() {
                more.insert(node);
            }
        }
        if more.len() == ends.len() {
            more.extend(blocks::ends(self.instance, self.budget, 2 * ends.len(), &self.may));
        }
        more.into_iter().collect()
    }

    /// Time of the recomputes of the best plan.
    fn cost(&self) -> Option<i64> {
        let best = self.best.as_ref()?;
        Some(best.duration - self.instance.total_duration())
    }

    fn is_closed(&self) -> bool {
        self.cost().is_some_and(|cost| self.bound >= cost)
    }

    /// For how many ends there is time and memory; `None` where there is no time for the fewest.
    fn most_ends(&self) -> Result<Option<usize>, Refusal> {
        let all = self.instance.len();
        let longest = self.cost().unwrap_or(i64::MAX);
        let control = self.run.clock.control;
        let left = self.run.clock.left().map(|left| left.as_secs_f64());
        let in_time = left.map_or(MAX_TERMS, |left| ((TERMS_PER_SECOND * left) as u64).min(MAX_TERMS));
        let fewest = FEWEST_ENDS.min(self.may.len());
        let least = Blocks::terms(self.instance, fewest, longest);
        self.run.allow(least)?;
        if least > TOO_MANY_TERMS {
            return Err(Refusal::TooLarge {
                terms: least,
                limit: TOO_MANY_TERMS,
            });
        }
        if left.is_some_and(|left| least as f64 > TERMS_BUILT_PER_SECOND * left) {
            tracing::info!(terms = least, left, "no time to build a relaxation");
            return Ok(None);
        }
        let in_memory = control.memory_limit.map_or(u64::MAX, terms_within);
        let one = Blocks::terms(self.instance, all, longest) / all.max(1) as u64;
        let most = in_time.min(in_memory) / one.max(1);
        let most = usize::try_from(most).unwrap_or(all).clamp(fewest, self.may.len());
        Ok(Some(most))
    }

    /// No solution of a relaxation costs less than `limit`.
    fn nothing_below(&mut self, limit: i64, evidence: Evidence) -> Ended {
        if self.best.is_none() {
            self.evidence = evidence;
            return Ended::Infeasible;
        }
        self.raise(limit, evidence);
        Ended::Optimal
    }

    /// Takes a bound if it is stronger.
    fn raise(&mut self, bound: i64, evidence: Evidence) {
        if bound > self.bound {
            (self.bound, self.evidence) = (bound, evidence);
        }
    }

    /// A linear relaxation, with rows of reruns as they are violated; its bound, and what every better plan has in common.
    fn linear(&mut self, ends: Vec<NodeId>) -> Round {
        let limit = self.cost().unwrap_or(i64::MAX);
        let count = ends.len();
        let model = Blocks::new(self.instance, ends, self.budget, limit);
        tracing::info!(ends = count, size = ?model.program.size(), reruns = model.reruns.len(), "relaxation over blocks");
        let mut round = Round {
            ended: Ended::Failed,
            bound: 0,
            limit,
            fixed: vec![None; model.program.cost.len()],
            model,
        };
        round.ended = if round.model.infeasible {
            self.nothing_below(limit, Evidence::Combinatorial)
        } else {
            self.cut(&mut round)
        };
        let linear = self.bound_with(round.bound);
        tracing::info!(linear, bound = self.bound_with(self.bound), "linear relaxation ended");
        round
    }

    /// Solves a linear relaxation until no row of a rerun is violated.
    fn cut(&mut self, round: &mut Round) -> Ended {
        let clock = &self.run.clock;
        let count = round.model.program.rows.len();
        let whole = round.model.whole();
        // Rounded with the rows to come, which share its sums.
        let mut program = whole.rounded().program.into_owned();
        let mut waiting = program.rows.split_off(count);
        let Some(mut relaxation) = Relaxation::new(&mip::program(&program)) else {
            return Ended::Failed;
        };
        loop {
            let (ended, solution) = relaxation.solve(clock);
            if ended == Ended::Infeasible {
                return match linear::refuted(&program, &mut relaxation, clock) {
                    Ended::Infeasible => self.nothing_below(round.limit, Evidence::ExactIntegers),
                    ended => ended,
                };
            }
            // Multipliers of a solve that was stopped prove something, too.
            if let Some(proof) = Proof::of(&program, &solution.multipliers) {
                round.bound = round.bound.max(proof.bound());
                for (fixed, new) in round.fixed.iter_mut().zip(proof.fixed(&program, round.limit)) {
                    *fixed = fixed.or(new);
                }
            }
            self.raise(round.bound.min(round.limit), Evidence::ExactIntegers);
            if ended != Ended::Optimal || self.is_closed() {
                return ended;
            }
            let new: Vec<Row> = waiting
                .extract_if(.., |row| {
                    row.excess(&solution.columns) > TOLERANCE * (row.most.max(1) as f64)
                })
                .collect();
            if new.is_empty() {
                return ended;
            }
            let mut rows = Rows::default();
            for row in &new {
                let terms = row.terms.iter();
                let terms = terms.map(|&(variable, coefficient)| (variable, coefficient as f64));
                rows.push(terms, f64::NEG_INFINITY, row.most as f64);
            }
            relaxation.add(&rows);
            program.rows.extend(new);
        }
    }

    /// What a linear relaxation left open, as far as time allows.
    fn integer(&mut self, round: &Round, missed: &mut Vec<(i64, NodeId)>) -> Ended {
        let ended = match round.model.whole().with(&round.fixed) {
            None => self.nothing_below(round.limit, Evidence::ExactIntegers),
            Some(left) => {
                tracing::info!(reruns = left.program.priced(), "left by the linear relaxation");
                self.search(round, &left, missed)
            }
        };
        tracing::info!(?ended, bound = self.bound_with(self.bound), "relaxation ended");
        ended
    }

    /// Duration of a plan whose recomputes take so many units.
    fn bound_with(&self, recomputes: i64) -> u64 {
        let total = self.instance.total_duration();
        self.instance.unscaled_duration(total + recomputes)
    }

    fn search(&mut self, round: &Round, left: &Reduced, missed: &mut Vec<(i64, NodeId)>) -> Ended {
        let run = self.run;
        let instance = self.instance;
        let total = instance.total_duration();
        let search = cp::Search {
            program: &left.program,
            parameters: cp::rerun_parameters(run.clock.control),
            hint: None,
            // What costs less than the bound is no plan, what costs as much as the best one is not better.
            lower: (self.bound - left.base).max(0),
            below: self.best.as_ref().map(|_| round.limit - left.base),
        };
        let mut best = self.best.take();
        let (known, steps, budget) = (self.bound, self.steps, self.budget);
        let mut improved = |solution: &[i64], _: i64, bound: i64| {
            // Where not each node is an end, or reruns would have to stand in another order, it is no plan.
            let sequence = round.model.sequence(&left.whole(solution));
            *missed = excess(instance, &sequence, budget);
            let Some(found) = run.incumbent(instance, sequence) else {
                return;
            };
            if best.as_ref().is_none_or(|best| found.duration < best.duration) {
                run.report(instance, &found, total + known.max(bound + left.base), steps);
                best = Some(found);
            }
        };
        let answer = search.minimize(&run.clock, &mut improved);
        self.best = best;
        self.steps += answer.conflicts;
        match answer.ended {
            Ended::Infeasible => return self.nothing_below(round.limit, answer.evidence),
            Ended::Failed => {}
            _ => self.raise((answer.bound + left.base).min(round.limit), answer.evidence),
        }
        answer.ended
    }
}

/// By how much a sequence exceeds the budget, and the nodes that run first next at these places.
fn excess(instance: &Scaled, sequence: &[NodeId], budget: i64) -> Vec<(i64, NodeId)> {
    let memory = instance.memory(sequence).unwrap_or_default();
    let mut stage = 0;
    let mut excess = Vec::new();
    for (&node, memory) in sequence.iter().zip(memory) {
        if memory > budget {
            excess.push((memory - budget, NodeId::new(stage)));
            // A rerun counts fully where its block is that stage alone.
            if node.index() != stage && stage > 0 {
                excess.push((memory - budget, NodeId::new(stage - 1)));
            }
        }
        stage += usize::from(node.index() == stage);
    }
    excess
}

/// A relaxation and what its linear relaxation said.
struct Round {
    model: Blocks,
    ended: Ended,
    /// The bound of the linear relaxation.
    bound: i64,
    /// Plans that cost as much or more do not count.
    limit: i64,
    /// What all others have in common.
    fixed: Vec<Option<bool>>,
}

impl Round {
    /// Whether the linear relaxation is solved and does not settle everything. What it does not settle for sure is left to CP-SAT.
    fn is_open(&self) -> bool {
        matches!(self.ended, Ended::Optimal | Ended::Unproved) && !self.model.infeasible
    }
}
