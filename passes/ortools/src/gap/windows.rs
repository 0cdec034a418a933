//! Better plans near one that is known: the gap model over one stretch of stages after another.

use std::time::Duration;

use remat_plan::{Evidence, NodeId, Problem, ValueId};
use remat_solve::{External, Outcome, Proves, Rng, SolveControl, Solver};
use typed_index_collections::{TiVec, ti_vec};

use super::candidates::{Candidates, Stages, keep_shorter, last_stages, recomputes};
use super::model::{Event, GapModel};
use crate::clock::Ended;
use crate::library::OrTools;
use crate::program::cp;
use crate::run::{self, Claim, Early, Incumbent, Run, terms_within};
use crate::scaled::{Refusal, Scaled};

/// Candidates of a window to begin with.
const FEWEST_CANDIDATES: usize = 250;
/// What the number of candidates is multiplied by after a pass that found nothing, and after one that was too much for the solver.
const GROWTH: (f64, f64) = (1.6, 0.7);
/// Where passes allow recomputes, in turns.
const KINDS: [Kind; 5] = [
    Kind::BeforeUses(2),
    Kind::WithOperands,
    Kind::BeforeUses(1),
    Kind::Anywhere,
    Kind::BeforeUses(3),
];
/// The most time for one window.
const SLICE: Duration = Duration::from_secs(4);
/// After so many passes in a row that find nothing the search ends.
const MOST_IDLE_PASSES: usize = 20;
/// Where more than this share of the windows of a pass was not solved, windows become smaller.
const MOST_UNSOLVED: f64 = 0.25;

/// Large neighbourhood search with an exact method: in one stretch of stages after another, all recomputes are chosen anew by CP-SAT, as
/// the gap model says, while those of the other stages stay as they are.
///
/// First computes keep the reference order, in free order that of the plan to start from. Windows of neighbours overlap by half; a pass goes
/// over all of them in random order. Where a pass finds nothing, windows become longer, until one holds all stages and is solved.
/// Starts from the warm start, or else a plan of the local search; finds nothing where there is none. The bound is the trivial one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows;

impl Solver for Windows {
    fn name(&self) -> &'static str {
        "gap:windows"
    }

    fn describe(&self) -> &'static str {
        "the model of `gap` over one stretch of a known plan after another, on CP-SAT; finds plans, proves nothing"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        run::call(self.name(), problem, control, attempt)
    }

    fn proves(&self) -> Proves {
        Proves::Trivial
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }

    fn refines(&self) -> bool {
        true
    }
}

fn attempt(run: &Run<'_>) -> Result<Outcome, Early> {
    let (instance, best) = run.started()?;
    let mut claim = Claim {
        ended: Ended::StepLimit,
        bound: instance.total_duration(),
        covers: instance.fixed_order(),
        evidence: Evidence::Combinatorial,
        steps: 0,
    };
    let Some(best) = best else {
        return Ok(run.outcome(&instance, None, claim));
    };
    let mut search = Passes {
        run,
        instance: &instance,
        budget: instance.scaled_budget(run.problem.budget),
        best,
        random: Rng::new(run.clock.control.seed, 0),
        steps: 0,
    };
    let before = search.best.duration;
    claim.ended = match search.all() {
        // What was found before the first refusal counts.
        Err(_) if search.best.duration < before => Ended::StepLimit,
        ended => ended?,
    };
    claim.steps = search.steps;
    Ok(run.outcome(&instance, Some(&search.best), claim))
}

/// Where recomputes may happen.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Before uses, in chains of so many runs.
    BeforeUses(u32),
    /// Before uses, and wherever all that the node needs is resident anyway: later its operands may have to be recomputed, too.
    WithOperands,
    /// In every stage in which the result can be of use.
    Anywhere,
}

struct Passes<'a> {
    run: &'a Run<'a>,
    instance: &'a Scaled,
    budget: i64,
    best: Incumbent,
    random: Rng,
    /// Conflicts met.
    steps: u64,
}

impl Passes<'_> {
    /// Pass after pass, until the time is up or one window is the whole problem.
    ///
    /// # Errors
    /// [`Refusal`] where no model of a pass may be built.
    fn all(&mut self) -> Result<Ended, Refusal> {
        let mut most = FEWEST_CANDIDATES;
        let mut found_nothing = 0;
        for kind in KINDS.into_iter().cycle() {
            let before = self.best.duration;
            let stages = self.candidates(kind);
            let mut windows = windows(&stages, most);
            let is_whole = windows.len() == 1;
            self.shuffle(&mut windows);
            let (count, mut unsolved, mut refused) = (windows.len(), 0, 0);
            for (from, to) in windows {
                if let Some(ended) = self.run.clock.ended() {
                    return Ok(ended);
                }
                match self.window(&stages, from, to) {
                    Ok(is_solved) => unsolved += usize::from(!is_solved),
                    Err(refusal) if refused + 1 == count => return Err(refusal),
                    Err(_) => refused += 1,
                }
            }
            unsolved += refused;
            tracing::debug!(
                ?kind,
                most,
                count,
                unsolved,
                before,
                after = self.best.duration,
                "pass over windows"
            );
            if self.best.duration < before {
                found_nothing = 0;
                continue;
            }
            found_nothing += 1;
            let is_settled = is_whole && unsolved == 0 && found_nothing >= KINDS.len();
            if is_settled || found_nothing >= MOST_IDLE_PASSES {
                return Ok(Ended::StepLimit);
            }
            let factor = if unsolved as f64 > MOST_UNSOLVED * count as f64 {
                GROWTH.1
            } else {
                GROWTH.0
            };
            most = ((most as f64 * factor) as usize).max(FEWEST_CANDIDATES / 4);
        }
        Ok(Ended::StepLimit)
    }

    /// Where recomputes may help, in the whole problem.
    fn candidates(&self, kind: Kind) -> Stages {
        let (instance, budget) = (self.instance, self.budget);
        let mut stages = match kind {
            Kind::BeforeUses(depth) => Candidates::Uses(depth).stages(instance, budget),
            Kind::Anywhere => Candidates::AllStages.stages(instance, budget),
            Kind::WithOperands => {
                let mut stages = Candidates::Uses(1).stages(instance, budget);
                self.add_where_operands_are(&mut stages);
                stages
            }
        };
        keep_shorter(
            &mut stages,
            self.instance,
            self.best.duration - self.instance.total_duration(),
        );
        stages
    }

    /// Adds each node to the stages at whose beginning the best plan holds all that it needs, and not all that it makes.
    fn add_where_operands_are(&self, stages: &mut Stages) {
        let instance = self.instance;
        let resident = self.resident();
        let last = last_stages(instance);
        for node in instance.nodes().filter(|&node| instance.max_computes(node) > 1) {
            for stage in node.index() + 1..=last[node].index() {
                let is_held = |value: ValueId| resident[value].iter().any(|&(from, to)| from < stage && stage <= to);
                let needs = instance.needs(node);
                if needs.iter().all(|&value| is_held(value)) && !instance.values(node).all(is_held) {
                    let stage = NodeId::new(stage);
                    if let Err(place) = stages[node].binary_search(&stage) {
                        stages[node].insert(place, stage);
                    }
                }
            }
        }
    }

    /// For each value the stages in which a run of the best plan makes it, with those of its last use before it is made again.
    fn resident(&self) -> TiVec<ValueId, Vec<(usize, usize)>> {
        let instance = self.instance;
        let mut resident: TiVec<ValueId, Vec<(usize, usize)>> = ti_vec![Vec::new(); instance.value_count()];
        let mut stage = 0;
        for &node in &self.best.sequence {
            for &value in instance.needs(node) {
                if let Some(range) = resident[value].last_mut() {
                    range.1 = stage;
                }
            }
            for value in instance.values(node) {
                resident[value].push((stage, stage));
            }
            stage += usize::from(node.index() == stage);
        }
        resident
    }

    fn shuffle(&mut self, windows: &mut [(usize, usize)]) {
        for index in (1..windows.len()).rev() {
            windows.swap(index, self.random.below(index + 1));
        }
    }

    /// Chooses the recomputes of the stages `from..to` anew. Returns whether the best choice is known now.
    fn window(&mut self, stages: &Stages, from: usize, to: usize) -> Result<bool, Refusal> {
        let (run, instance) = (self.run, self.instance);
        let most = run.clock.control.memory_limit.map(terms_within);
        let events = self.events(stages, from, to);
        let model = GapModel::new(instance, events, self.budget, most)?;
        let sure = model.sure_duration(instance);
        if model.is_infeasible() || self.best.duration <= sure {
            return Ok(true);
        }
        let search = cp::Search {
            program: &model.program,
            parameters: cp::parameters(run.clock.control),
            hint: None,
            lower: 0,
            below: Some(self.best.duration - sure),
        };
        let steps = self.steps;
        let best = &mut self.best;
        let answer = search.minimize(&run.clock.within(SLICE), &mut |solution: &[i64], _, _| {
            let on: Vec<bool> = solution.iter().map(|&value| value != 0).collect();
            let Some(found) = run.incumbent(instance, model.sequence(&on)) else {
                tracing::debug!("a solution of a window does not keep the budget");
                return;
            };
            if found.duration < best.duration {
                run.report(instance, &found, instance.total_duration(), steps);
                *best = found;
            }
        });
        self.steps += answer.conflicts;
        Ok(matches!(answer.ended, Ended::Optimal | Ended::Infeasible))
    }

    /// The runs of the best plan, for sure outside of the stages `from..to`; within, they and the candidates, if they are chosen. A
    /// candidate stands before the first run of its stage of a later node, so before all its readers.
    fn events(&self, stages: &Stages, from: usize, to: usize) -> Vec<Event> {
        let nodes = self.instance.len();
        let mut known: Stages = ti_vec![Vec::new(); nodes];
        for (stage, node) in recomputes(&self.best.sequence) {
            known[stage].push(node);
        }
        let mut more: Stages = ti_vec![Vec::new(); nodes];
        for (node, stages) in stages.iter_enumerated() {
            let first = stages.partition_point(|stage| stage.index() < from);
            for &stage in stages[first..].iter().take_while(|stage| stage.index() < to) {
                if !known[stage].contains(&node) {
                    more[stage].push(node);
                }
            }
        }
        let mut events = Vec::with_capacity(nodes);
        for stage in self.instance.nodes() {
            let is_sure = !(from..to).contains(&stage.index());
            let mut add = |node: NodeId, is_sure: bool| events.push(Event { stage, node, is_sure });
            let mut waiting = more[stage].iter().copied().peekable();
            for &node in &known[stage] {
                while let Some(candidate) = waiting.next_if(|&candidate| candidate < node) {
                    add(candidate, false);
                }
                add(node, is_sure);
            }
            for candidate in waiting {
                add(candidate, false);
            }
            events.push(Event::first(stage));
        }
        events
    }
}

/// Ranges of stages with about that many candidates each, overlapping by half; one, if all of them are no more.
fn windows(stages: &Stages, most: usize) -> Vec<(usize, usize)> {
    let mut counts = vec![0; stages.len()];
    for stage in stages.iter().flatten() {
        counts[stage.index()] += 1;
    }
    let all: usize = counts.iter().sum();
    if all <= most {
        return vec![(0, counts.len())];
    }
    let half = (most / 2).max(1);
    // Ends of stretches with half of that each.
    let mut ends = vec![0];
    let mut sum = 0;
    for (stage, count) in counts.iter().enumerate() {
        sum += count;
        if sum >= half {
            ends.push(stage + 1);
            sum = 0;
        }
    }
    if ends.last() != Some(&counts.len()) {
        ends.push(counts.len());
    }
    let overlapping = ends.windows(3).map(|ends| (ends[0], ends[2]));
    overlapping.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use remat_testing::{Trial, trial};

    use super::*;

    pub(crate) fn trials() -> Vec<Trial> {
        vec![trial!(windows_cover_every_stage_and_overlap)]
    }

    fn windows_cover_every_stage_and_overlap() {
        let mut stages: Stages = (0..40)
            .map(|node| (node..node + 5).map(NodeId::new).collect())
            .collect();
        stages.extend((0..5).map(|_| Vec::new()));
        let found = windows(&stages, 20);
        assert_eq!(found.first().map(|window| window.0), Some(0));
        assert_eq!(found.last().map(|window| window.1), Some(45));
        for pair in found.windows(2) {
            assert!(pair[1].0 > pair[0].0 && pair[1].0 < pair[0].1, "{pair:?}");
        }
        assert_eq!(windows(&stages, 1000), [(0, 45)]);
    }
}
