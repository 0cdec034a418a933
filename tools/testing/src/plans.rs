//! Plans of small problems, as short texts.

use remat_plan::{Plan, PlanFile, Problem, Step};

use crate::net::{baseline_peak, op, storage};

/// The valid plan for [`example`](crate::net::example) with a recompute: peak 300, duration 52.
pub const RECOMPUTING: &str = "compute conv, compute flat, compute gemm, free a, compute relu, free b, recompute conv, \
     recompute flat, compute add, free a, free c";

/// The valid plan for [`example`](crate::net::example) without one: peak 400, duration 41.
pub const PLAIN: &str = "compute conv, compute flat, compute gemm, compute relu, free b, compute add, free a, free c";

/// A plan from `compute a, recompute b, free c, page_out d, page_in d`.
///
/// # Panics
/// If a step or a name is unknown.
#[must_use]
pub fn plan(problem: &Problem, text: &str) -> Plan {
    let step = |step: &str| {
        let (kind, name) = step.trim().split_once(' ').expect("a step and a name");
        match kind {
            "compute" => Step::Compute(op(problem, name)),
            "recompute" => Step::Recompute(op(problem, name)),
            "free" => Step::Free(storage(problem, name)),
            "page_out" => Step::PageOut(storage(problem, name)),
            "page_in" => Step::PageIn(storage(problem, name)),
            _ => panic!("no step `{step}`"),
        }
    };
    Plan {
        steps: text.split(',').map(step).collect(),
    }
}

/// A plan file with these claims and without certificate; what it says of running every op once is right.
///
/// # Panics
/// If the problem is not valid.
#[must_use]
pub fn file(problem: &Problem, plan: &Plan, peak_bytes: u64, duration: u64) -> PlanFile {
    PlanFile {
        format: remat_plan::PLAN_FORMAT.into(),
        model: problem.name.clone(),
        accounting: problem.accounting,
        order: problem.order,
        budget_bytes: problem.budget,
        bound: remat_plan::Bound::Load,
        peak_bytes,
        duration,
        energy_pj: None,
        objective: problem.objective,
        deadline: problem.deadline,
        baseline_peak_bytes: baseline_peak(problem),
        baseline_duration: problem.total_duration(),
        setup: None,
        certificate: None,
        bodies: Vec::new(),
        block: None,
        steps: PlanFile::records(problem, plan),
    }
}
