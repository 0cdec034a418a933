//! The corpus of plans: each file holds a problem, a plan file, and the codes of the rules that it breaks. It is complete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use remat_plan::{PlanFile, Problem};
use remat_verify::{CheckError, Code, check_file};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    problem: Problem,
    plan: PlanFile,
    expect: Vec<String>,
}

/// The files of a folder with their cases.
fn cases(folder: &str) -> Vec<(PathBuf, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../test/plans")
        .join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: PathBuf| {
        let case = serde_json::from_str(&std::fs::read_to_string(&path).unwrap());
        let case = case.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, case)
    };
    paths.map(read).collect()
}

#[test]
fn plans_break_the_rules_that_they_are_said_to_break_and_no_others() {
    let mut wrong = Vec::new();
    for (is_valid, (path, case)) in [("valid", true), ("invalid", false)]
        .into_iter()
        .flat_map(|(folder, is_valid)| cases(folder).into_iter().map(move |case| (is_valid, case)))
    {
        case.problem.validate().unwrap();
        let found = match check_file(&case.problem, &case.plan) {
            Ok(_) => Vec::new(),
            Err(CheckError::Rejected(rejection)) => rejection.codes().iter().map(Code::to_string).collect(),
            Err(CheckError::File(error)) => vec![error.to_string()],
        };
        if found != case.expect || found.is_empty() != is_valid {
            wrong.push(format!(
                "{}: expected {:?}, found {found:?}",
                path.display(),
                case.expect
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_plan_in_the_corpus_that_breaks_it() {
    let cases = cases("invalid");
    let codes = cases.iter().flat_map(|(_, case)| &case.expect);
    let broken: BTreeSet<Code> = codes.map(|code| code.parse().unwrap()).collect();
    let of_plans = Code::ALL.iter().filter(|code| !code.is_about_fission());
    let missing: Vec<_> = of_plans.filter(|code| !broken.contains(code)).collect();
    assert!(missing.is_empty(), "no plan in test/plans/invalid breaks {missing:?}");
}
