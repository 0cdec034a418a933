//! Runs the corpus of plans: each file holds a problem, a plan file, and the codes of the rules that it breaks.

use std::path::Path;

use remat_plan::{PlanFile, Problem};
use remat_verify::{CheckError, Code, check_file};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    problem: Problem,
    plan: PlanFile,
    expect: Vec<String>,
}

fn check(path: &Path, text: &str) -> datatest_stable::Result<Vec<String>> {
    let case: Case = serde_json::from_str(text)?;
    case.problem.validate()?;
    let found = match check_file(&case.problem, &case.plan) {
        Ok(_) => Vec::new(),
        Err(CheckError::Rejected(rejection)) => rejection.codes().iter().map(Code::to_string).collect(),
        Err(CheckError::File(error)) => return Err(error.into()),
    };
    if found == case.expect {
        Ok(found)
    } else {
        Err(format!("{}: expected {:?}, found {found:?}", path.display(), case.expect).into())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the harness hands the text over")]
fn is_accepted(path: &Path, text: String) -> datatest_stable::Result<()> {
    match check(path, &text)?.as_slice() {
        [] => Ok(()),
        _ => Err("stands among the valid plans, but expects violations".into()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the harness hands the text over")]
fn is_rejected_for_its_codes(path: &Path, text: String) -> datatest_stable::Result<()> {
    match check(path, &text)?.as_slice() {
        [] => Err("stands among the invalid plans, but expects no violation".into()),
        _ => Ok(()),
    }
}

datatest_stable::harness! {
    { test = is_accepted, root = "../../test/plans/valid", pattern = r"\.json$" },
    { test = is_rejected_for_its_codes, root = "../../test/plans/invalid", pattern = r"\.json$" },
}
