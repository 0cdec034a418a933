//! Plans in JSON, for a problem that stands beside them or for a sample.

use std::collections::BTreeSet;

use remat_plan::{PagingMode, Plan, PlanFile, Problem};
use remat_verify::{CheckError, Code, check_file, intervals, replay, resident_at};
use serde_json::Value;

use crate::{oracle, sample};

/// The oracle looks at every nanosecond and at the whole history of every step.
const MOST_TIME: u64 = 5_000;
const MOST_STEPS: usize = 60;

/// Reads a plan and replays it. The checker must not panic, and it must find what the oracle finds.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let (problem, plan) = match (document.get("problem"), document.get("plan")) {
        (Some(problem), Some(plan)) => (Problem::from_json(&problem.to_string()), plan.to_string()),
        _ => (Ok(sample::problem().clone()), text.to_owned()),
    };
    let (Ok(problem), Ok(file)) = (problem, PlanFile::from_json(&plan)) else {
        return false;
    };
    let written = PlanFile::from_json(&file.to_json()).expect("what was written is read");
    // A gap may be NaN, which JSON has no word for and which equals nothing; text does.
    assert_eq!(written.to_json(), file.to_json());
    let accepted = check_file(&problem, &file);
    let Ok(plan) = file.plan(&problem) else {
        assert!(accepted.is_err(), "a plan that names nothing known is accepted");
        return true;
    };
    for step in 0..plan.steps.len().min(MOST_STEPS) {
        let resident = resident_at(&problem, &plan, step);
        assert!(resident.len() <= problem.storages.len());
    }
    if let Err(CheckError::Rejected(rejection)) = &accepted {
        assert!(!rejection.violations.is_empty() && !rejection.to_string().is_empty());
    }
    agrees(&problem, &plan);
    true
}

/// The checker finds what the oracle finds, which is slow and therefore asked about small plans only.
fn agrees(problem: &Problem, plan: &Plan) {
    if !is_small(problem, plan) {
        return;
    }
    let verdict = oracle::judge(problem, plan);
    let found = replay(problem, plan);
    let codes: BTreeSet<Code> = match &found {
        Ok(_) => BTreeSet::new(),
        Err(rejection) => rejection.codes().into_iter().collect(),
    };
    assert_eq!(codes, verdict.codes, "checker and oracle disagree");
    if let Ok(replay) = found {
        let figures = [replay.peak, replay.duration, replay.energy, replay.second_peak].map(u128::from);
        let expected = [verdict.peak, verdict.duration, verdict.energy, verdict.second_peak];
        assert_eq!(figures, expected, "checker and oracle disagree");
        let is_dma = problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma);
        if !is_dma {
            let needed = intervals(problem, plan, &replay);
            for (step, mut residents) in oracle::residents(problem, plan).into_iter().enumerate() {
                let now = needed.iter().filter(|interval| interval.steps.contains(&step));
                let mut now: Vec<_> = now
                    .map(|interval| (interval.steps.start, interval.what, interval.bytes))
                    .collect();
                now.sort_unstable();
                residents.sort_unstable();
                assert_eq!(now, residents, "checker and oracle disagree at step {step}");
            }
        }
    }
}

fn is_small(problem: &Problem, plan: &Plan) -> bool {
    let longest_run = problem.ops.iter().map(|op| op.duration).max().unwrap_or(0);
    let ways = problem
        .paging
        .iter()
        .flat_map(|paging| [paging.page_out, paging.page_in]);
    let longest_move = ways
        .flat_map(|way| problem.storages.iter().map(move |storage| way.duration(storage.bytes)))
        .max()
        .unwrap_or(0);
    let steps = plan.steps.len();
    steps <= MOST_STEPS
        && problem.ops.len() <= MOST_STEPS
        && longest_run.max(longest_move).saturating_mul(steps as u64) <= MOST_TIME
}
