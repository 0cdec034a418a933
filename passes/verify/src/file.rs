//! Plan files: the steps are replayed, the figures they claim are compared.

use remat_plan::{BlockPlacement, Bound, Plan, PlanFile, PlanFileError, Problem};
use thiserror::Error;

use crate::baseline::Baselines;
use crate::block::judge_block;
use crate::certificate::judge_file;
use crate::rejection::Findings;
use crate::replay::judge;
use crate::text::Bytes;
use crate::{Code, Rejection, Replay};

/// Why a plan file is not accepted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckError {
    /// It cannot be read as a plan.
    #[error(transparent)]
    File(PlanFileError),
    /// It can, and breaks rules.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

/// Replays a plan file. On top of [`crate::replay`], the plan must keep the budget that the file states, and the peak, the
/// durations and the energy that it claims must be the replayed ones, the peak of its baseline that of running every op once, its certificate
/// must keep the rules of certificates, and its block those of placements.
///
/// Claims are only compared where the figures of the replay are those of the plan: not after a violation that made the replay
/// assume something. Where the peak of the baseline depends on how views are run, both figures are right; one that does not fit 64 bits is not
/// compared.
///
/// # Errors
/// [`CheckError::Rejected`] with all violations (of steps that name nothing known only the first, alone, as [`Code::V017`]);
/// [`CheckError::File`] if a step lacks its name.
pub fn check_file(problem: &Problem, file: &PlanFile) -> Result<Replay, CheckError> {
    let read = file.plan(problem);
    let (plan, placement) = match read.and_then(|plan| Ok((plan, file.placement(problem)?))) {
        Ok(read) => read,
        Err(error) => return Err(refuse(error)),
    };
    let budget = match (problem.budget, file.budget_bytes) {
        (Some(problem), Some(file)) => Some(problem.min(file)),
        (budget, None) | (None, budget) => budget,
    };
    let (replay, mut findings) = judge(problem, &plan, budget);
    if findings.keep_figures() {
        compare(problem, file, &replay, &mut findings);
        if let Some(certificate) = &file.certificate {
            judge_file(problem, budget, (&plan, &replay), certificate, &mut findings);
        }
        block(problem, file, (&plan, &replay), placement.as_ref(), &mut findings);
    }
    Ok(findings.judge(replay)?)
}

/// Compares what a plan claims that its node takes for a subgraph with what was found.
///
/// # Errors
/// [`Code::V014`] if it is something else.
pub fn check_body_bytes(claimed: u64, found: u64) -> Result<(), Rejection> {
    let mut findings = Findings::default();
    if claimed != found {
        findings.add(Code::V014, None, || {
            format!("the bytes that the node takes for the subgraph are claimed as {claimed}, it takes {found}")
        });
    }
    findings.judge(())
}

/// The rules of the block, and that it keeps a budget that bounds it.
fn block(
    problem: &Problem,
    file: &PlanFile,
    (plan, replay): (&Plan, &Replay),
    placement: Option<&BlockPlacement>,
    findings: &mut Findings,
) {
    if let Some(placement) = placement {
        judge_block(problem, plan, replay, placement, findings);
    }
    let Some(budget) = file.budget_bytes.filter(|_| file.bound == Bound::Block) else {
        return;
    };
    match placement.map(|placement| placement.block.bytes) {
        None => findings.add(Code::P004, None, || {
            format!(
                "the budget of {} bounds the block, and nothing has a place",
                Bytes(budget)
            )
        }),
        Some(bytes) if bytes > budget => findings.add(Code::V006, None, || {
            let (bytes, budget) = (Bytes(bytes), Bytes(budget));
            format!("budget exceeded by the block: it takes {bytes}, budget {budget}")
        }),
        Some(_) => {}
    }
}

fn refuse(error: PlanFileError) -> CheckError {
    let (PlanFileError::UnknownNode { step, .. } | PlanFileError::UnknownTensor { step, .. }) = error else {
        return CheckError::File(error);
    };
    let mut findings = Findings::default();
    findings.add(Code::V017, Some(step), || error.to_string());
    findings
        .judge(())
        .map_or_else(CheckError::Rejected, |()| CheckError::File(error))
}

fn compare(problem: &Problem, file: &PlanFile, replay: &Replay, findings: &mut Findings) {
    let mut claim = |code: Code, what: &str, claimed: u64, found: u64| {
        if claimed != found {
            findings.add(code, None, || {
                format!("{what} is claimed as {claimed}, the replay finds {found}")
            });
        }
    };
    claim(Code::V014, "the peak in bytes", file.peak_bytes, replay.peak);
    claim(Code::V015, "the duration", file.duration, replay.duration);
    if let Some(energy) = file.energy_pj {
        claim(Code::V020, "the energy in picojoules", energy, replay.energy);
    }
    let baseline = problem
        .ops
        .iter()
        .try_fold(0u64, |sum, op| sum.checked_add(op.duration));
    if let Some(baseline) = baseline {
        let what = "the duration of running every op once";
        claim(Code::V015, what, file.baseline_duration, baseline);
    }
    let claimed = file.baseline_peak_bytes;
    if let Some(found) = Baselines::of(problem).filter(|found| !found.include(claimed)) {
        findings.add(Code::V022, None, || {
            let Baselines { on_demand, in_place } = found;
            let other = match on_demand == in_place {
                true => String::new(),
                false => format!(", or {in_place} with every view at its place"),
            };
            format!("the peak in bytes of running every op once is claimed as {claimed}, it is {on_demand}{other}")
        });
    }
}
