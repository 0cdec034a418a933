//! Certificates: what a solver claims, held against the problem and against plans that are known.
//!
//! A bound cannot be proved here, but it can be refuted: by the plan that it comes with, by any other plan that it speaks about,
//! and by running every op once in reference order, which the checker tries itself. The rules, in order:
//! 1. [`Code::C001`]: the objective is that of the replay;
//! 2. [`Code::C002`], [`Code::C003`]: no plan that is known refutes the bound, or the claim that there is none;
//! 3. [`Code::C004`], [`Code::C005`]: status and stop reason follow from plan, objective and bound;
//! 4. [`Code::C006`]: what goes beyond the trivial bound rests on something;
//! 5. [`Code::C007`]: the gap is that of objective and bound.

use remat_plan::{
    BoundCovers, Certificate, Evidence, Objective, OpId, Plan, Problem, Status, Step, StopReason, StorageId,
    StorageRole,
};
use typed_index_collections::TiVec;

use crate::memory::roots;
use crate::rejection::Findings;
use crate::replay::replay;
use crate::{Code, Rejection, Replay};

/// The largest relative tolerance that a solver in floating point may be trusted with.
const MOST_TOLERANCE: f64 = 1e-4;
/// Gaps are stated in floating point; by so much they may differ.
const SAME_GAP: f64 = 1e-9;

/// Checks a certificate of a problem, and of the plan that it comes with, if there is one, whose replay is `found`.
///
/// # Errors
/// [`Rejection`] with all rules of the family `C` that the certificate breaks.
pub fn check_certificate(
    problem: &Problem,
    found: Option<(&Plan, &Replay)>,
    certificate: &Certificate,
) -> Result<(), Rejection> {
    let mut findings = Findings::default();
    judge_certificate(problem, found, certificate, &mut findings);
    findings.judge(())
}

/// Checks a certificate against a plan that is known from elsewhere. A plan that is not valid for the problem refutes nothing.
///
/// # Errors
/// [`Rejection`] where the plan is one that the certificate speaks about, and is better than its bound or should not exist.
pub fn check_against(problem: &Problem, certificate: &Certificate, known: &Plan) -> Result<(), Rejection> {
    let Ok(replay) = replay(problem, known) else {
        return Ok(());
    };
    let mut findings = Findings::default();
    let objective = replay.objective(problem.objective);
    refute(
        problem,
        certificate,
        known,
        objective,
        "a plan that is known",
        &mut findings,
    );
    findings.judge(())
}

/// Whether a bound on these plans speaks about the plan; `None` where only the solver knows.
#[must_use]
pub fn is_covered(problem: &Problem, plan: &Plan, covers: BoundCovers) -> Option<bool> {
    match covers {
        BoundCovers::AllPlans => Some(true),
        BoundCovers::FixedOrder => Some(keeps_order(problem, plan)),
        BoundCovers::StageForm => Some(keeps_order(problem, plan) && is_in_stages(problem, plan)),
        BoundCovers::CandidateSet => None,
    }
}

/// All rules, for the plan of a file or of a solver.
pub(crate) fn judge_certificate(
    problem: &Problem,
    found: Option<(&Plan, &Replay)>,
    certificate: &Certificate,
    findings: &mut Findings,
) {
    let objective = found.map(|(_, replay)| replay.objective(problem.objective));
    let mut denies_its_plan = false;
    if certificate.objective != objective {
        findings.add(Code::C001, None, || {
            let (claimed, found) = (text(certificate.objective), text(objective));
            format!("the objective is claimed as {claimed}, the replay finds {found}")
        });
    }
    if let Some((plan, replay)) = found {
        let objective = replay.objective(problem.objective);
        if certificate.bound > objective {
            findings.add(Code::C002, None, || {
                format!(
                    "the bound of {} lies above the {objective} of the plan that it comes with",
                    certificate.bound
                )
            });
        }
        denies_its_plan = certificate.status == Status::Infeasible
            && is_covered(problem, plan, certificate.bound_covers) != Some(false);
        if denies_its_plan {
            findings.add(Code::C003, None, || {
                "the certificate says that there is no plan, and comes with one".to_owned()
            });
        }
    }
    let goes_further = certificate.bound > trivial(problem) || certificate.status == Status::Infeasible;
    if goes_further {
        let once = every_op_once(problem);
        if let Ok(replay) = replay(problem, &once) {
            let objective = replay.objective(problem.objective);
            let what = "running every op once in reference order";
            refute(problem, certificate, &once, objective, what, findings);
        }
    }
    if !denies_its_plan {
        status(certificate, findings);
    }
    evidence(certificate, goes_further, findings);
    gap(certificate, findings);
}

fn text(objective: Option<u64>) -> String {
    objective.map_or_else(|| "none".to_owned(), |objective| objective.to_string())
}

/// Whether a valid plan refutes a bound, or the claim that there is no plan.
fn refute(
    problem: &Problem,
    certificate: &Certificate,
    known: &Plan,
    objective: u64,
    what: &str,
    findings: &mut Findings,
) {
    let beats = objective < certificate.bound;
    let exists = certificate.status == Status::Infeasible;
    if !(beats || exists) || is_covered(problem, known, certificate.bound_covers) != Some(true) {
        return;
    }
    if beats {
        findings.add(Code::C002, None, || {
            format!(
                "the bound of {} lies above {what}, which comes to {objective}",
                certificate.bound
            )
        });
    }
    if exists {
        findings.add(Code::C003, None, || {
            format!("the certificate says that there is no plan, but {what} is one")
        });
    }
}

/// What no plan undercuts, as far as it needs no proof.
fn trivial(problem: &Problem) -> u64 {
    let sum = |what: fn(&remat_plan::ProblemOp) -> u64| problem.ops.iter().map(what).fold(0, u64::saturating_add);
    match problem.objective {
        Objective::Time => sum(|op| op.duration),
        Objective::Energy => sum(|op| op.energy_pj),
        Objective::Peak => 0,
    }
}

fn status(certificate: &Certificate, findings: &mut Findings) {
    let is_proof = matches!(certificate.status, Status::Optimal | Status::Infeasible);
    if is_proof && certificate.stop == StopReason::Cancelled {
        findings.add(Code::C005, None, || {
            format!(
                "the run was interrupted and still claims `{}`",
                name(certificate.status)
            )
        });
        return;
    }
    let has_plan = matches!(certificate.status, Status::Optimal | Status::Feasible);
    let why = if has_plan != certificate.objective.is_some() {
        Some(if has_plan {
            "there is no plan"
        } else {
            "there is a plan"
        })
    } else if certificate.status == Status::Optimal && certificate.objective > Some(certificate.bound) {
        Some("the bound leaves room for a better plan")
    } else if is_proof != (certificate.stop == StopReason::Proved) {
        Some(if is_proof {
            "the solver stopped before it was proved"
        } else {
            "the solver stopped because its claim was proved"
        })
    } else {
        None
    };
    if let Some(why) = why {
        findings.add(Code::C004, None, || {
            format!("the status is claimed as `{}`, but {why}", name(certificate.status))
        });
    }
}

pub(crate) fn name(status: Status) -> &'static str {
    match status {
        Status::Optimal => "OPTIMAL",
        Status::Feasible => "FEASIBLE",
        Status::Infeasible => "INFEASIBLE",
        Status::Unknown => "UNKNOWN",
    }
}

fn evidence(certificate: &Certificate, goes_further: bool, findings: &mut Findings) {
    let why = match &certificate.evidence {
        None if goes_further && certificate.status == Status::Infeasible => {
            "nothing is stated that the claim rests on".to_owned()
        }
        None if goes_further => format!("nothing is stated that the bound of {} rests on", certificate.bound),
        Some(Evidence::Solver { name, tolerance }) => match Evidence::SOLVERS.iter().find(|(known, _)| known == name) {
            None => format!("the claim rests on `{name}`, which is not a known solver"),
            Some((_, false)) if *tolerance != 0.0 => {
                format!("`{name}` counts in integers, its tolerance is claimed as {tolerance}")
            }
            Some((_, true)) if !(*tolerance > 0.0 && *tolerance <= MOST_TOLERANCE) => format!(
                "`{name}` counts in floating point, its tolerance of {tolerance} is not between 0 and {MOST_TOLERANCE}"
            ),
            Some(_) => return,
        },
        None | Some(Evidence::Combinatorial | Evidence::ExactIntegers) => return,
    };
    findings.add(Code::C006, None, || why);
}

fn gap(certificate: &Certificate, findings: &mut Findings) {
    let found = certificate.objective.map(|objective| {
        let above = objective.saturating_sub(certificate.bound);
        if objective == 0 {
            0.0
        } else {
            above as f64 / objective as f64
        }
    });
    let is_same = match (certificate.gap, found) {
        (Some(claimed), Some(found)) => (claimed - found).abs() <= SAME_GAP,
        (claimed, found) => claimed.is_none() && found.is_none(),
    };
    if !is_same {
        findings.add(Code::C007, None, || {
            let text = |gap: Option<f64>| gap.map_or_else(|| "none".to_owned(), |gap| gap.to_string());
            format!(
                "the gap is claimed as {}, objective and bound come to {}",
                text(certificate.gap),
                text(found)
            )
        });
    }
}

/// The runs of ops that create memory, in order, and whether each is the first.
fn runs<'a>(problem: &'a Problem, plan: &'a Plan) -> impl Iterator<Item = (OpId, bool)> + 'a {
    let mut ran: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    plan.steps.iter().filter_map(move |step| match *step {
        Step::Compute(op) | Step::Recompute(op) if op.index() < ran.len() && roots(problem, op).next().is_some() => {
            Some((op, !std::mem::replace(&mut ran[op], true)))
        }
        _ => None,
    })
}

fn keeps_order(problem: &Problem, plan: &Plan) -> bool {
    let first = runs(problem, plan).filter(|&(_, first)| first).map(|(op, _)| op);
    first.is_sorted()
}

/// Whether the reruns between two first runs follow the reference order, each op at most once, and nothing runs after the last.
fn is_in_stages(problem: &Problem, plan: &Plan) -> bool {
    let mut latest: Option<OpId> = None;
    for (op, first) in runs(problem, plan) {
        if first {
            latest = None;
        } else if latest.is_some_and(|latest| latest >= op) {
            return false;
        } else {
            latest = Some(op);
        }
    }
    latest.is_none()
}

/// Every op once in reference order, each storage freed after its last reader.
fn every_op_once(problem: &Problem) -> Plan {
    let mut last: TiVec<StorageId, Option<OpId>> = TiVec::from(vec![None; problem.storages.len()]);
    for (id, op) in problem.ops.iter_enumerated() {
        for &tensor in op.reads.iter().chain(&op.defines) {
            last[problem.tensors[tensor].storage] = Some(id);
        }
    }
    let mut ends: TiVec<OpId, Vec<StorageId>> = TiVec::from(vec![Vec::new(); problem.ops.len()]);
    for (id, storage) in problem.storages.iter_enumerated() {
        let created = problem.tensors[storage.root].producer.is_some();
        if let Some(op) = last[id].filter(|_| created && storage.role == StorageRole::Transient) {
            ends[op].push(id);
        }
    }
    let steps = problem.ops.keys().flat_map(|op| {
        let frees = ends[op].iter().map(|&storage| Step::Free(storage));
        std::iter::once(Step::Compute(op)).chain(frees)
    });
    Plan { steps: steps.collect() }
}

/// As [`judge_certificate`], for a budget other than that of the problem.
pub(crate) fn judge_file(
    problem: &Problem,
    budget: Option<u64>,
    found: (&Plan, &Replay),
    certificate: &Certificate,
    findings: &mut Findings,
) {
    if budget == problem.budget {
        judge_certificate(problem, Some(found), certificate, findings);
    } else {
        let asked = Problem {
            budget,
            ..problem.clone()
        };
        judge_certificate(&asked, Some(found), certificate, findings);
    }
}
