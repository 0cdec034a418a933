//! What is proved of a plan, in words.

use remat::Model;
use remat::plan::{BoundCovers, Certificate, Evidence, Objective, OrderMode, Problem, Status, StopReason};

use crate::floor::Plans;

/// How good the plan is (`verdict`), who found it, and why the search for a better one ended.
pub(super) fn line(verdict: &str, certificate: &Certificate) -> String {
    let found_by = format!("found by `{}`", certificate.solver);
    match ending(certificate.stop) {
        Some(ending) => format!("{verdict}; {found_by}, {ending}"),
        None => format!("{verdict}; {found_by}"),
    }
}

/// How good the plan for a model is.
pub(super) fn verdict(certificate: &Certificate, model: &Model, problem: &Problem) -> String {
    judged(certificate, Plans::of(model), problem.order, problem.objective)
}

fn judged(certificate: &Certificate, plans: Plans, order: OrderMode, objective: Objective) -> String {
    let covered = plans.covered(certificate.bound_covers);
    let is_optimal = certificate.status == Status::Optimal;
    if certificate.stop == StopReason::Cancelled {
        return "nothing is proved: the run was interrupted".to_owned();
    }
    if !certificate.bound_covers.is_every_plan(order) {
        return match certificate.bound_covers {
            BoundCovers::FixedOrder if is_optimal => {
                format!("the best {covered} ({}); others may be better", basis(certificate))
            }
            BoundCovers::StageForm if is_optimal => {
                format!("the best in stage form ({}); others may be better", basis(certificate))
            }
            BoundCovers::CandidateSet if is_optimal => {
                format!(
                    "the best of those that the model of `{}` covers; others may be better",
                    certificate.solver
                )
            }
            _ => NOT_PROVED.to_owned(),
        };
    }
    match (&certificate.evidence, certificate.objective) {
        (None, _) if is_optimal => match plans {
            Plans::OfWholeOps => "optimal: every op runs once".to_owned(),
            Plans::InTheseTiles => "every op runs once in these tiles; others may be better".to_owned(),
        },
        (Some(_), _) if is_optimal => {
            let better = match objective {
                Objective::Time => "adds less time",
                Objective::Energy => "takes less energy",
                Objective::Peak => "has a lower peak",
            };
            format!("optimal: no {covered} {better} ({})", basis(certificate))
        }
        (Some(_), Some(objective)) if certificate.bound > 0 => {
            let above = 100.0 * (objective as f64 / certificate.bound as f64 - 1.0);
            format!("at most {above:.2} % above the best {covered} ({})", basis(certificate))
        }
        _ => NOT_PROVED.to_owned(),
    }
}

const NOT_PROVED: &str = "a better plan may exist";

/// What a proof rests on.
fn basis(certificate: &Certificate) -> String {
    match &certificate.evidence {
        None | Some(Evidence::Combinatorial | Evidence::ExactIntegers) => "proved".to_owned(),
        Some(Evidence::Solver { name, tolerance }) if *tolerance > 0.0 => {
            format!("by {name}, within a tolerance of {tolerance:e}")
        }
        Some(Evidence::Solver { name, .. }) => format!("proved by {name}"),
    }
}

fn ending(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Proved | StopReason::Cancelled => None,
        StopReason::TimeLimit => Some("stopped at the time limit"),
        StopReason::StepLimit => Some("stopped at the step limit"),
        StopReason::Converged => Some("stopped when nothing more was gained"),
        StopReason::MemoryLimit => Some("stopped at the memory limit"),
        StopReason::Refused => Some("which takes no problem like this one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(bound: u64, covers: BoundCovers, evidence: Option<Evidence>, stop: StopReason) -> Certificate {
        let mut certificate = Certificate {
            status: Status::Optimal,
            objective: Some(1_000),
            bound,
            bound_covers: covers,
            evidence,
            gap: None,
            stop,
            solver: "auto/exact".to_owned(),
            seed: 0,
            threads: 1,
            steps: 0,
            elapsed_ms: 0,
            problem: String::new(),
        };
        certificate.settle();
        certificate
    }

    fn said(bound: u64, covers: BoundCovers, evidence: Option<Evidence>, stop: StopReason) -> String {
        let certificate = certificate(bound, covers, evidence, stop);
        let verdict = judged(&certificate, Plans::OfWholeOps, OrderMode::Fixed, Objective::Time);
        line(&verdict, &certificate)
    }

    #[test]
    fn a_proof_is_said_with_its_plans_and_what_it_rests_on() {
        let by = |evidence| said(1_000, BoundCovers::FixedOrder, Some(evidence), StopReason::Proved);
        insta::assert_snapshot!(by(Evidence::ExactIntegers), @"optimal: no plan of whole ops in this order adds less time (proved); found by `auto/exact`");
        insta::assert_snapshot!(by(Evidence::solver("CP-SAT", 0.0)), @"optimal: no plan of whole ops in this order adds less time (proved by CP-SAT); found by `auto/exact`");
        insta::assert_snapshot!(by(Evidence::solver("HiGHS", 1e-6)), @"optimal: no plan of whole ops in this order adds less time (by HiGHS, within a tolerance of 1e-6); found by `auto/exact`");
        insta::assert_snapshot!(said(1_000, BoundCovers::AllPlans, None, StopReason::Converged), @"optimal: every op runs once; found by `auto/exact`");
    }

    #[test]
    fn a_plan_without_recomputes_is_optimal_for_its_tiles_alone() {
        let certificate = certificate(1_000, BoundCovers::AllPlans, None, StopReason::Converged);
        let judged = |plans| judged(&certificate, plans, OrderMode::Fixed, Objective::Time);
        assert_eq!(judged(Plans::OfWholeOps), "optimal: every op runs once");
        assert_eq!(
            judged(Plans::InTheseTiles),
            "every op runs once in these tiles; others may be better"
        );
    }

    #[test]
    fn a_bound_is_said_as_how_much_better_a_plan_could_be_and_a_trivial_one_is_none() {
        let stopped = |bound, evidence| said(bound, BoundCovers::AllPlans, evidence, StopReason::TimeLimit);
        insta::assert_snapshot!(stopped(980, Some(Evidence::ExactIntegers)), @"at most 2.04 % above the best plan of whole ops in any order (proved); found by `auto/exact`, stopped at the time limit");
        insta::assert_snapshot!(stopped(980, None), @"a better plan may exist; found by `auto/exact`, stopped at the time limit");
    }

    #[test]
    fn what_holds_for_fewer_plans_is_not_said_of_all() {
        let best = |covers| said(1_000, covers, Some(Evidence::solver("CP-SAT", 0.0)), StopReason::Proved);
        insta::assert_snapshot!(best(BoundCovers::StageForm), @"the best in stage form (proved by CP-SAT); others may be better; found by `auto/exact`");
        insta::assert_snapshot!(best(BoundCovers::CandidateSet), @"the best of those that the model of `auto/exact` covers; others may be better; found by `auto/exact`");
        let free = certificate(
            1_000,
            BoundCovers::FixedOrder,
            Some(Evidence::Combinatorial),
            StopReason::Proved,
        );
        insta::assert_snapshot!(judged(&free, Plans::InTheseTiles, OrderMode::Free, Objective::Time), @"the best plan with these tiles in this order (proved); others may be better");
    }

    #[test]
    fn an_interrupted_run_proves_nothing() {
        let mut certificate = certificate(
            1_000,
            BoundCovers::AllPlans,
            Some(Evidence::Combinatorial),
            StopReason::Proved,
        );
        certificate.interrupt();
        let said = judged(&certificate, Plans::OfWholeOps, OrderMode::Free, Objective::Time);
        insta::assert_snapshot!(said, @"nothing is proved: the run was interrupted");
    }
}
