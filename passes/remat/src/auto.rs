//! The solver to use unless told otherwise: search, what is quick, and proof in turns, within one time limit.

use web_time::{Duration, Instant};

use remat_plan::{Certificate, Objective, OrderMode, Plan, Problem, Status, StopReason};
use remat_poet::PagingSearch;
use remat_solve::{Domain, Outcome, Proves, Search, Small, SolveControl, Solver};

use crate::parts::parts;
use crate::solution::prune;

/// Quick solvers may take this long in any case, which is enough for most graphs, but no more than a quarter of the time.
const QUICK_LEAST: Duration = Duration::from_millis(100);
/// Who works until which share of the time: a short search and a short proof, which is all that most small models need; then long
/// ones, the search ahead, because a proof closes sooner around a better plan. Refinement has what the search leaves of the first half and
/// of the end.
const STAGES: [(Stage, f64); 8] = [
    (Stage::Search, 0.04),
    (Stage::Quick, 0.08),
    (Stage::Proof, 0.14),
    (Stage::SearchAnew, 0.7),
    (Stage::Refine, 0.5),
    (Stage::Proof, 0.94),
    (Stage::Search, 1.0),
    (Stage::Refine, 1.0),
];
/// Graphs with more nodes than this are large: they are not refined, and a search of them never begins anew, since it gains more from the plan in hand in
/// the same time.
const LARGE: usize = 5_000;
/// Time for the proof where the caller sets no limit and the search was shorter.
const SHORTEST_PROOF: Duration = Duration::from_secs(2);
/// Share of the time that quick solvers get where there is a second memory.
const QUICK_SHARE_WITH_PAGES: f64 = 0.05;

/// Share of what is left of the time that goes into plans which move nothing, where there is a second memory and least time is asked for.
const SEARCH_SHARE_WITH_PAGES: f64 = 0.4;
/// With less time left than this nothing more is started.
const TOO_SHORT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Search,
    /// In fixed order not from the plan in hand where the search before it was cut short: it would end near where that one did.
    SearchAnew,
    Proof,
    Quick,
    /// Only where the search got no further.
    Refine,
}

/// The local search, the solvers that are [quick](Solver::is_quick) on the problem and the exact solver of `remat-ortools` in turns,
/// until the plan is proved optimal, nobody gets any further, or the time is up.
///
/// The best plan of all parts is the answer. So it is never worse than that of a quick solver that is done within its share of the
/// time, and where steps are limited and not time, never worse than that of the search under the same limit either: the first search
/// does not start from what the quick solvers found, and it is repeated from there where they found the better plan. Later turns
/// start from the best plan so far, but for the longest search in fixed order, which begins anew where the one before it was cut short.
/// Without OR-Tools what is proved is what the search proves: that no plan exists, or that nothing
/// has to be recomputed. Where there is a second memory, a deadline, or another objective than time, the search is that
/// with paging ([`PagingSearch`]), which starts from the best that the quick solvers, and for least time the search in one memory, find within all
/// limits: it is never worse than they are, nor than its own parts under the same limit on steps. The certificate names the part that found the plan, and its bound is the strongest one that covers the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn describe(&self) -> &'static str {
        "search, what is quick and, where OR-Tools is there, proof in turns, within one time limit"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        if !problem.is_time_within_budget() {
            return with_pages(problem, control);
        }
        let small: &dyn Solver = &Small;
        let parts = Parts {
            small: Some(small).filter(|small| small.is_quick(problem)),
            quick: quick(problem).collect(),
            search: &Search,
            // Proofs on OR-Tools count no steps of ours.
            exact: parts().find(|part| part.proves() == Proves::EveryPlan && !part.counts_steps()),
            refining: parts().find(|part| part.refines() && problem.ops.len() <= LARGE),
        };
        let started = Instant::now();
        named(parts.solve(problem, control), started)
    }

    fn domain(&self) -> Domain {
        Domain::Every
    }

    fn proves(&self) -> Proves {
        let most = parts().map(Solver::proves).max();
        most.unwrap_or(Proves::Trivial)
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn searches(&self) -> bool {
        true
    }
}

/// The solvers that construct their plans in well below a second.
fn quick(problem: &Problem) -> impl Iterator<Item = &'static dyn Solver> {
    // What proves is asked before all others.
    parts().filter(|part| part.is_quick(problem) && part.proves() < Proves::EveryPlan)
}

/// The search with paging, from the best plan of the quick solvers that keeps all limits.
fn with_pages(problem: &Problem, control: &SolveControl<'_>) -> Outcome {
    let started = Instant::now();
    let first = Small.is_quick(problem).then(|| Small.solve(problem, control));
    if let Some(solved) = first.as_ref().filter(|first| first.certificate.is_final(problem.order)) {
        return solved.clone();
    }
    let search = PagingSearch::NEW;
    let quick: Vec<_> = quick(problem).collect();
    let mut starts: Vec<(u64, u64, Plan)> = Vec::new();
    let mut consider = |plan: &Plan| {
        if let Ok(found) = remat_verify::replay(problem, plan) {
            starts.push((found.objective(problem.objective), found.peak, plan.clone()));
        }
    };
    if let Some(given) = control.warm_start {
        consider(given);
    }
    let end = control.deadline.map(|deadline| {
        let whole = deadline.saturating_duration_since(started);
        started + whole.mul_f64(QUICK_SHARE_WITH_PAGES)
    });
    for (index, solver) in quick.iter().enumerate() {
        let mut own = *control;
        if let Some(end) = end {
            let to_come = u32::try_from(quick.len() - index).unwrap_or(u32::MAX);
            let now = Instant::now();
            own.deadline = Some(now + end.saturating_duration_since(now) / to_come);
        }
        // They tell the observer of plans that may miss the deadline.
        own.observer = None;
        if let Some(plan) = solver.solve(problem, &own).plan {
            consider(&plan);
        }
    }
    if problem.objective == Objective::Time {
        // A plan that moves nothing is one of them, and the search knows those better.
        let in_one_memory = Problem {
            paging: None,
            deadline: None,
            ..problem.clone()
        };
        let mut own = control.share_of_time(SEARCH_SHARE_WITH_PAGES);
        (own.observer, own.warm_start) = (None, None);
        if let Some(plan) = Search.solve(&in_one_memory, &own).plan {
            consider(&plan);
        }
    }
    let start = starts.into_iter().min_by_key(|(objective, ..)| *objective);
    let mut own = *control;
    own.warm_start = start.as_ref().map(|(.., plan)| plan).or(control.warm_start);
    let mut found = search.solve(problem, &own);
    // A plan in an order that the search cannot start from may still be the best.
    if let Some((objective, peak, plan)) = start
        && found.certificate.objective.is_none_or(|found| objective < found)
    {
        found.parts = answers(&mut found);
        (found.plan, found.lowest_peak) = (Some(plan), Some(peak));
        found.certificate.status = Status::Feasible;
        let digest = found.certificate.problem.clone();
        found.certificate.restate(objective, digest);
    }
    found
}

/// What the portfolio is made of.
struct Parts<'a> {
    /// What solves small problems, where this is one.
    small: Option<&'a dyn Solver>,
    quick: Vec<&'a dyn Solver>,
    search: &'a dyn Solver,
    exact: Option<&'a dyn Solver>,
    refining: Option<&'a dyn Solver>,
}

impl<'a> Parts<'a> {
    /// The exact solver, where it lacks nothing. Asked for when its turn comes: it may look for a library then, which small problems do
    /// without.
    fn exact(&self) -> Option<&'a dyn Solver> {
        self.exact.filter(|exact| exact.missing().is_none())
    }

    /// The solver that refines, where it lacks nothing.
    fn refining(&self) -> Option<&'a dyn Solver> {
        self.refining.filter(|refining| refining.missing().is_none())
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let first = match self.small.map(|small| small.solve(problem, control)) {
            Some(first) if first.certificate.is_final(problem.order) => return first,
            first => first,
        };
        let others = match control.deadline {
            Some(deadline) if control.step_limit.is_none() => self.in_turns(problem, control, deadline),
            _ => self.one_after_the_other(problem, control),
        };
        match first {
            Some(first) => {
                // That it made as many states as it may is not why the whole ended.
                let stop = others.certificate.stop;
                let mut best = better(problem, others, first);
                if best.certificate.stop != StopReason::Proved {
                    best.certificate.stop = stop;
                    best.certificate.settle();
                }
                best
            }
            None => others,
        }
    }

    /// The best plan of the quick solvers, where one of them finds any. What one of them leaves of its time is for the others.
    fn construct(&self, problem: &Problem, control: &SolveControl<'_>, end: Option<Instant>) -> Option<Outcome> {
        let mut best: Option<Outcome> = None;
        for (index, solver) in self.quick.iter().enumerate() {
            let mut own = *control;
            if let Some(end) = end {
                let now = Instant::now();
                let to_come = u32::try_from(self.quick.len() - index).unwrap_or(u32::MAX);
                own.deadline = Some(now + end.saturating_duration_since(now) / to_come);
            }
            let outcome = solver.solve(problem, &own);
            let is_settled = is_settled(problem, &outcome);
            // What they do not find, and why they stopped, says nothing about the others.
            if outcome.plan.is_some() {
                best = Some(match best {
                    Some(best) => better(problem, best, outcome),
                    None => outcome,
                });
            }
            if is_settled {
                break;
            }
        }
        best
    }

    fn in_turns(&self, problem: &Problem, control: &SolveControl<'_>, deadline: Instant) -> Outcome {
        let started = Instant::now();
        let whole = deadline.saturating_duration_since(started);
        let mut best: Option<Outcome> = None;
        // What the proof, the search and the refinement had in hand when they last gave up before their time.
        let mut gave_up = [None, None, None];
        for (round, (turn, share)) in (0..).zip(STAGES) {
            let end = started + whole.mul_f64(share);
            if turn == Stage::Quick {
                let end = end.max(Instant::now() + QUICK_LEAST.min(whole / 4));
                let quick = self.construct(problem, control, Some(end));
                best = best.into_iter().chain(quick).reduce(|a, b| better(problem, a, b));
            } else {
                let proof_gave_up = round > 0 && (self.exact().is_none() || gave_up[0].is_some());
                let in_hand = best.as_ref().map(|best| best.certificate.objective);
                let (solver, before) = match turn {
                    Stage::Proof => {
                        let Some(exact) = self.exact() else { continue };
                        (exact, &mut gave_up[0])
                    }
                    Stage::Refine => {
                        // The objective in hand is that of a plan, not of none.
                        let has_converged = in_hand.flatten().is_some() && gave_up[1] == in_hand;
                        let is_in_time = has_converged && Instant::now() < end;
                        let Some(refining) = self.refining().filter(|_| is_in_time) else {
                            continue;
                        };
                        (refining, &mut gave_up[2])
                    }
                    Stage::Search | Stage::SearchAnew | Stage::Quick => (self.search, &mut gave_up[1]),
                };
                if in_hand.is_some() && *before == in_hand {
                    continue;
                }
                let mut own = *control;
                // The time of those that have nothing more to do is the search's.
                let is_idle = |next: &&(Stage, f64)| match next.0 {
                    Stage::Proof => proof_gave_up,
                    Stage::Refine | Stage::Search | Stage::SearchAnew => true,
                    Stage::Quick => false,
                };
                let to_come = STAGES.iter().skip(round as usize + 1);
                let searches = matches!(turn, Stage::Search | Stage::SearchAnew);
                let after = to_come.take_while(is_idle).last().filter(|_| searches);
                own.deadline = Some(after.map_or(end, |(_, share)| end.max(started + whole.mul_f64(*share))));
                own.seed = control.seed.wrapping_add(round);
                let was_cut_short = turn == Stage::SearchAnew && before.is_none();
                let may_begin_anew = problem.order == OrderMode::Fixed && problem.ops.len() <= LARGE;
                let plan = best.as_ref().and_then(|best| best.plan.clone());
                let begins_anew = was_cut_short && may_begin_anew && plan.is_some();
                // Without a plan, the search goes on from the lowest peak that it reached.
                let lowest = || best.as_ref()?.lowest_plan.clone().filter(|_| searches);
                let hint = plan.filter(|_| !begins_anew).or_else(lowest);
                own.warm_start = hint.as_ref().or(control.warm_start);
                let found = solver.solve(problem, &own);
                let ended_early = found.certificate.stop != StopReason::TimeLimit;
                best = best.into_iter().chain([found]).reduce(|a, b| better(problem, a, b));
                if ended_early {
                    *before = best.as_ref().map(|best| best.certificate.objective);
                }
            }
            if best.as_ref().is_some_and(|best| is_over(problem, best, control)) {
                break;
            }
        }
        let mut best = best.expect("the first turn is the search's and always taken, and a search has an outcome");
        let stop = &mut best.certificate.stop;
        if !matches!(stop, StopReason::Proved | StopReason::Cancelled) {
            let in_time = deadline.saturating_duration_since(Instant::now()) >= TOO_SHORT;
            *stop = if in_time {
                StopReason::Converged
            } else {
                StopReason::TimeLimit
            };
        }
        best
    }

    /// The search as far as it goes, again from what is quick where that is better, then the proof.
    fn one_after_the_other(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let started = Instant::now();
        let mut best = self.search.solve(problem, control);
        if is_over(problem, &best, control) {
            return best;
        }
        if let Some(constructed) = self.construct(problem, control, control.deadline) {
            let is_gain = is_better(problem, &constructed, &best);
            best = better(problem, best, constructed);
            if is_gain && !is_over(problem, &best, control) {
                let own = best.plan.clone();
                let mut from_there = *control;
                from_there.warm_start = own.as_ref();
                best = better(problem, best, self.search.solve(problem, &from_there));
            }
        }
        // A proof counts no steps of ours: where they alone are limited, it would not end, and not end alike.
        let may_prove = control.step_limit.is_none() || control.deadline.is_some();
        if !may_prove || is_over(problem, &best, control) {
            return best;
        }
        let Some(exact) = self.exact() else { return best };
        let mut second = *control;
        if control.step_limit.is_none() {
            // The search has converged; a proof may take for ever.
            second.deadline = Instant::now().checked_add((started.elapsed() * 4).max(SHORTEST_PROOF));
        }
        let hint = best.plan.clone();
        second.warm_start = hint.as_ref().or(control.warm_start);
        better(problem, best, exact.solve(problem, &second))
    }
}

/// Whether nothing is left to do, or no time to do it.
fn is_over(problem: &Problem, outcome: &Outcome, control: &SolveControl<'_>) -> bool {
    let too_late = |deadline: Instant| deadline.saturating_duration_since(Instant::now()) < TOO_SHORT;
    is_settled(problem, outcome) || control.deadline.is_some_and(too_late)
}

/// Whether the answer is final, or the caller wants no other.
fn is_settled(problem: &Problem, outcome: &Outcome) -> bool {
    outcome.certificate.is_final(problem.order) || outcome.certificate.stop == StopReason::Cancelled
}

/// Whether `a` has the shorter plan once what nobody profits from is dropped, as it will be in the end.
fn is_better(problem: &Problem, a: &Outcome, b: &Outcome) -> bool {
    let duration = |outcome: &Outcome| match &outcome.plan {
        Some(plan) if problem.order == OrderMode::Free => {
            let (_, pruned) = prune(problem.clone(), plan.clone());
            pruned.runs().map(|op| u128::from(problem.ops[op].duration)).sum()
        }
        _ => u128::from(outcome.certificate.objective.unwrap_or(u64::MAX)),
    };
    duration(a) < duration(b)
}

/// The better plan of two answers under the stronger bound. Whether their claims agree is for [`crate::claims`] to say, which finds the
/// answers among the parts.
fn better(problem: &Problem, mut a: Outcome, mut b: Outcome) -> Outcome {
    let order = problem.order;
    let mut parts = answers(&mut a);
    parts.extend(answers(&mut b));
    // Nothing is a proof without a plan but a proof that there is none.
    let by_proof = |outcome: &Outcome| {
        let certificate = &outcome.certificate;
        certificate.status == Status::Infeasible && certificate.is_final(order)
    };
    let lowest_peak = a.lowest_peak.into_iter().chain(b.lowest_peak).min();
    // The part that reached the lowest peak may not hand on how.
    let reached = [&mut a, &mut b].map(|outcome| Some((outcome.lowest_peak, outcome.lowest_plan.take()?)));
    let lowest = reached.into_iter().flatten().min_by_key(|(peak, _)| *peak);
    let steps = a.certificate.steps.saturating_add(b.certificate.steps);
    let (mut best, other) = match (a.certificate.objective, b.certificate.objective) {
        (Some(_), Some(_)) if is_better(problem, &b, &a) => (b, a.certificate),
        (Some(_), _) => (a, b.certificate),
        (None, Some(_)) => (b, a.certificate),
        (None, None) if by_proof(&a) || !by_proof(&b) && b.certificate.status == Status::Infeasible => {
            (a, b.certificate)
        }
        (None, None) => (b, a.certificate),
    };
    best.parts = parts;
    let own = &mut best.certificate;
    own.steps = steps;
    if own.objective.is_none() {
        best.lowest_peak = lowest_peak;
        best.lowest_plan = lowest.map(|(_, plan)| plan);
        return best;
    }
    // A refusal, or having stopped early, is not how the whole ended.
    if !own.is_final(order) && (other.stop == StopReason::Cancelled || own.stop == StopReason::Refused) {
        own.stop = other.stop;
    }
    let strength = |certificate: &Certificate| (certificate.bound_covers.is_every_plan(order), certificate.bound);
    if strength(&other) > strength(own) {
        own.take_bound(&other);
        if own.stop != StopReason::Cancelled {
            own.stop = other.stop;
        }
    }
    own.settle();
    best
}

/// What the solvers answered of which this is made.
fn answers(outcome: &mut Outcome) -> Vec<Outcome> {
    if outcome.parts.is_empty() {
        vec![outcome.clone()]
    } else {
        std::mem::take(&mut outcome.parts)
    }
}

/// The answer under the name of the portfolio and of its part.
fn named(mut outcome: Outcome, started: Instant) -> Outcome {
    let certificate = &mut outcome.certificate;
    certificate.solver = format!("{}/{}", Auto.name(), certificate.solver);
    certificate.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use remat_plan::BoundCovers;

    use super::*;
    use crate::{LoadOptions, Model};

    /// Answers what it was told to, and remembers what it started from.
    struct Told {
        answer: Outcome,
        starts: Mutex<Vec<bool>>,
    }

    impl Told {
        fn new(answer: Outcome) -> Self {
            Self {
                answer,
                starts: Mutex::default(),
            }
        }

        /// Of each call, whether it had a plan to start from.
        fn starts(&self) -> Vec<bool> {
            self.starts.lock().unwrap().clone()
        }
    }

    impl Solver for Told {
        fn name(&self) -> &'static str {
            "told"
        }

        fn describe(&self) -> &'static str {
            "for tests"
        }

        fn solve(&self, _: &Problem, control: &SolveControl<'_>) -> Outcome {
            self.starts.lock().unwrap().push(control.warm_start.is_some());
            self.answer.clone()
        }
    }

    fn problem() -> Problem {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/mlp_tiny_train.onnx");
        let model = Model::open(&path, &LoadOptions::default()).unwrap();
        // Answers count as they are told: in free order the plans themselves would.
        let mut problem = model.problem().clone();
        problem.order = OrderMode::Fixed;
        problem
    }

    fn answer(objective: Option<u64>, bound: u64, covers: BoundCovers, stop: StopReason) -> Outcome {
        Outcome::new(
            objective.map(|_| Plan { steps: Vec::new() }),
            Certificate {
                status: if objective.is_some() {
                    Status::Feasible
                } else {
                    Status::Unknown
                },
                objective,
                bound,
                bound_covers: covers,
                evidence: None,
                gap: None,
                stop,
                solver: format!("by {bound}"),
                seed: 0,
                threads: 1,
                steps: 1,
                elapsed_ms: 0,
                problem: String::new(),
            },
            Some(bound),
        )
    }

    fn run(search: &Told, exact: &Told) -> Certificate {
        run_with(&[], search, Some(exact))
    }

    fn run_with(quick: &[&Told], search: &Told, exact: Option<&Told>) -> Certificate {
        run_refined(quick, search, exact, None)
    }

    fn run_refined(quick: &[&Told], search: &Told, exact: Option<&Told>, refining: Option<&Told>) -> Certificate {
        let parts = Parts {
            small: None,
            quick: quick.iter().map(|&told| told as &dyn Solver).collect(),
            search,
            exact: exact.map(|told| told as &dyn Solver),
            refining: refining.map(|told| told as &dyn Solver),
        };
        let control = SolveControl::new().time_limit(Duration::from_secs(60));
        named(parts.solve(&problem(), &control), Instant::now()).certificate
    }

    #[test]
    fn a_proof_of_the_searchs_plan_ends_the_run() {
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(12), 12, BoundCovers::FixedOrder, StopReason::Proved));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.status, certificate.stop),
            (Status::Optimal, StopReason::Proved)
        );
        assert_eq!(
            (certificate.bound, certificate.bound_covers),
            (12, BoundCovers::FixedOrder)
        );
        assert_eq!((search.starts(), exact.starts()), (vec![false], vec![true]));
    }

    #[test]
    fn without_a_proof_the_search_goes_on_from_the_best_plan_under_the_stronger_bound() {
        let search = Told::new(answer(Some(14), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(13), 11, BoundCovers::StageForm, StopReason::Refused));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.status, certificate.objective),
            (Status::Feasible, Some(13))
        );
        assert_eq!((certificate.bound, certificate.stop), (10, StopReason::Converged));
        assert_eq!(
            certificate.bound_covers,
            BoundCovers::AllPlans,
            "not the higher one on fewer plans"
        );
        assert_eq!(certificate.solver, "auto/by 11");
        assert_eq!(search.starts(), [false, true]);
    }

    #[test]
    fn a_search_that_was_cut_short_begins_anew_and_the_last_one_goes_on_from_the_best_plan() {
        let search = Told::new(answer(Some(14), 10, BoundCovers::AllPlans, StopReason::TimeLimit));
        let exact = Told::new(answer(Some(13), 11, BoundCovers::AllPlans, StopReason::TimeLimit));
        assert_eq!(run(&search, &exact).objective, Some(13));
        assert_eq!(
            (search.starts(), exact.starts()),
            (vec![false, false, true], vec![true, true])
        );
    }

    #[test]
    fn without_a_plan_the_search_goes_on_from_the_lowest_peak_and_the_proof_has_none() {
        let reached = |peak: u64| Outcome {
            lowest_peak: Some(peak),
            lowest_plan: Some(Plan { steps: Vec::new() }),
            ..answer(None, 10, BoundCovers::AllPlans, StopReason::TimeLimit)
        };
        let search = Told::new(reached(20));
        let exact = Told::new(answer(None, 11, BoundCovers::AllPlans, StopReason::TimeLimit));
        run(&search, &exact);
        assert_eq!(
            (search.starts(), exact.starts()),
            (vec![false, true, true], vec![false, false])
        );
    }

    #[test]
    fn a_plan_with_which_the_search_gets_no_further_is_refined_and_the_search_goes_on_from_there() {
        let search = Told::new(answer(Some(14), 10, BoundCovers::AllPlans, StopReason::Converged));
        let refining = Told::new(answer(Some(13), 10, BoundCovers::AllPlans, StopReason::Converged));
        let certificate = run_refined(&[], &search, None, Some(&refining));
        assert_eq!(certificate.objective, Some(13));
        assert_eq!(refining.starts(), [true], "once, from the plan of the search");
        assert_eq!(search.starts(), [false, true]);
    }

    #[test]
    fn a_search_that_found_nothing_leaves_nothing_to_refine() {
        let search = Told::new(answer(None, 10, BoundCovers::AllPlans, StopReason::Converged));
        let refining = Told::new(answer(Some(13), 10, BoundCovers::AllPlans, StopReason::Converged));
        let certificate = run_refined(&[], &search, None, Some(&refining));
        assert_eq!(certificate.objective, None);
        assert!(refining.starts().is_empty());
    }

    #[test]
    fn a_bound_over_other_plans_is_not_claimed_for_a_better_one() {
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(15), 13, BoundCovers::CandidateSet, StopReason::Proved));
        let certificate = run(&search, &exact);
        assert_eq!(
            (certificate.bound, certificate.bound_covers),
            (10, BoundCovers::AllPlans)
        );
        assert_eq!(certificate.status, Status::Feasible);
    }

    #[test]
    fn a_proof_that_there_is_no_plan_is_kept() {
        let mut none = answer(None, 10, BoundCovers::FixedOrder, StopReason::Proved);
        none.certificate.status = Status::Infeasible;
        let search = Told::new(answer(None, 10, BoundCovers::AllPlans, StopReason::TimeLimit));
        let certificate = run(&search, &Told::new(none));
        assert_eq!((certificate.status, certificate.objective), (Status::Infeasible, None));
    }

    #[test]
    fn the_best_plan_of_the_quick_solvers_is_the_answer_where_no_search_finds_a_better_one() {
        let quick = [15, 13, 14].map(|objective| {
            Told::new(answer(
                Some(objective),
                10,
                BoundCovers::AllPlans,
                StopReason::Converged,
            ))
        });
        let search = Told::new(answer(Some(16), 10, BoundCovers::AllPlans, StopReason::Converged));
        let certificate = run_with(&quick.each_ref(), &search, None);
        assert_eq!(certificate.objective, Some(13));
        assert_eq!(search.starts(), [false, true], "searched anew from the better plan");
    }

    #[test]
    fn a_search_that_finds_the_better_plan_is_not_repeated() {
        let quick = Told::new(answer(Some(16), 10, BoundCovers::AllPlans, StopReason::Converged));
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let certificate = run_with(&[&quick], &search, None);
        assert_eq!(certificate.objective, Some(12));
        assert_eq!(search.starts(), [false]);
    }

    #[test]
    fn a_quick_solver_that_is_cut_short_or_refuses_does_not_end_the_run() {
        let quick = Told::new(answer(None, 10, BoundCovers::AllPlans, StopReason::Refused));
        let search = Told::new(answer(Some(12), 10, BoundCovers::AllPlans, StopReason::Converged));
        let certificate = run_with(&[&quick], &search, None);
        assert_eq!(
            (certificate.objective, certificate.stop),
            (Some(12), StopReason::Converged)
        );
    }

    #[test]
    fn between_search_and_proof_the_quick_solvers_plan_counts_from_the_first_turn_on() {
        let quick = Told::new(answer(Some(13), 10, BoundCovers::AllPlans, StopReason::Converged));
        let search = Told::new(answer(Some(16), 10, BoundCovers::AllPlans, StopReason::Converged));
        let exact = Told::new(answer(Some(13), 13, BoundCovers::AllPlans, StopReason::Proved));
        let certificate = run_with(&[&quick], &search, Some(&exact));
        assert_eq!((certificate.status, certificate.objective), (Status::Optimal, Some(13)));
        assert_eq!((search.starts(), exact.starts()), (vec![false], vec![true]));
    }
}
