//! Subgraphs of If, Loop and Scan with plans of their own: what is predicted is what is measured, and the bits stay.

use std::path::PathBuf;
use std::time::Duration;

use remat::plan::{BodyPlan, PlanFile, StepKind};
use remat::solver::{SolveControl, least_peak};
use remat::{LoadOptions, Model, SolveRequest};
use remat_onnxruntime_deploy::{Deployment, OrderHint, open_for_plan, with_planned_bodies, with_simulated_baseline};

use remat_testing::workspace;

use crate::deploy::{deployed_within, host};

fn model(name: &str) -> PathBuf {
    workspace().join(format!("test/models/bodies/{name}.onnx"))
}

fn control<'a>() -> SolveControl<'a> {
    SolveControl::new()
        .step_limit(50_000)
        .time_limit(Duration::from_secs(600))
}

/// The names of all subgraphs that have plans, and whether any of their ops runs again.
fn names(plans: &[BodyPlan]) -> (Vec<String>, bool) {
    let (mut found, mut runs_again) = (Vec::new(), false);
    for plan in plans {
        found.push(format!("{}/{}", plan.node, plan.body));
        runs_again |= plan.plan.steps.iter().any(|step| step.op == StepKind::Recompute);
        let (inside, again) = names(&plan.plan.bodies);
        found.extend(inside);
        runs_again |= again;
    }
    (found, runs_again)
}

fn check(name: &str, budget: &str, expected: &[&str]) -> Deployment {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let found = deployed_within(&model(name), &out, budget, Some(&host), &control())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(out.exists(), "{name}");
    let (bodies, runs_again) = names(found.model.bodies());
    assert_eq!(
        (bodies.iter().map(String::as_str).collect::<Vec<_>>(), runs_again),
        (expected.to_vec(), true),
        "{name}"
    );
    let check = found.check.as_ref().expect("the runtime is here");
    assert!(found.exceeded_prediction().is_none(), "{name}");
    if let Some((before, after)) = check.before.arena_off.zip(check.after.arena_off) {
        let predicted = found.prediction.peak_bytes;
        // Tables of the runtime count in models as small as these.
        let off = after.abs_diff(predicted);
        assert!(
            off <= after * 3 / 100 + (48 << 10),
            "{name}: predicted {predicted}, measured {after}"
        );
        // Without plans of subgraphs, nothing is below what the node needs.
        let untouched = Model::open(&model(name), &LoadOptions::default()).expect("it opens");
        let least = least_peak(untouched.problem(), &SolveControl::new()).bytes;
        assert!(
            after < before && after < least,
            "{name}: {before} became {after}, untouched {least}"
        );
    }
    found
}

pub(crate) fn subgraphs_take_what_is_predicted_and_keep_their_bits() {
    check("loop", "50%", &["loop/body"]);
    check("scan", "50%", &["scan/body"]);
    check("conditional", "50%", &["if/then_branch"]);
    let found = check("nested", "50%", &["if/then_branch", "t.loop/body"]);
    // The predicted overhead counts every iteration.
    assert!(found.solution.overhead.percent() > 0.0);
}

fn planned(name: &str, budget: &str) -> Model {
    let load = LoadOptions::default();
    let model = with_simulated_baseline(Model::open(&model(name), &load).expect("it opens"));
    let solve = SolveRequest {
        budget: budget.parse().expect("a budget"),
        max_overhead: None,
        solver: "search".to_owned(),
    };
    with_planned_bodies(model, &load, OrderHint::Any, &solve, &control()).unwrap_or_else(|error| panic!("{error}"))
}

fn plan_of(model: &Model) -> PlanFile {
    let solve = SolveRequest {
        budget: "min".parse().expect("a budget"),
        max_overhead: None,
        solver: "search".to_owned(),
    };
    let solution = remat::solve(model, &solve, &control()).unwrap_or_else(|error| panic!("{error}"));
    solution.plan_file(model)
}

pub(crate) fn a_subgraph_that_fits_stays_as_it_came() {
    for name in ["loop", "scan", "conditional", "nested"] {
        assert!(planned(name, "100%").bodies().is_empty(), "{name}");
    }
}

pub(crate) fn plans_of_subgraphs_replay_and_wrong_ones_are_rejected() {
    let load = LoadOptions::default();
    let file = plan_of(&planned("nested", "min"));
    let text = file.to_json();
    let file = PlanFile::from_json(&text).expect("it is a plan");
    let replayed = |file: &PlanFile| -> Result<u64, String> {
        let model = open_for_plan(&model("nested"), &load, file, None).map_err(|error| error.to_string())?;
        let solution = remat::check_plan(&model, file).map_err(|error| error.to_string())?;
        Ok(solution.replay.peak)
    };
    assert_eq!(replayed(&file), Ok(file.peak_bytes));

    let changed = |change: &dyn Fn(&mut BodyPlan)| {
        let mut file = file.clone();
        change(&mut file.bodies[0]);
        replayed(&file).expect_err("it is wrong")
    };
    let innermost = |change: &dyn Fn(&mut BodyPlan)| changed(&|plan| change(&mut plan.plan.bodies[0]));
    let missing = innermost(&|plan| plan.body = "nowhere".to_owned());
    assert!(missing.contains("no such subgraph"), "{missing}");
    // A result is freed before its last reader: the rule of the checker says so.
    let early = innermost(&|plan| {
        let steps = &mut plan.plan.steps;
        let free = steps
            .iter()
            .position(|step| step.op == StepKind::Free)
            .expect("something is freed");
        let step = steps.remove(free);
        steps.insert(free - 1, step);
    });
    assert!(early.contains("V0"), "{early}");
    let over = innermost(&|plan| plan.plan.budget_bytes = Some(plan.plan.peak_bytes - 1));
    assert!(over.contains("V006"), "{over}");
    let claimed = changed(&|plan| plan.bytes -= 1);
    assert!(claimed.contains("V014"), "{claimed}");
    // Without the plans of its subgraphs, the plan around them does not keep its peak.
    let mut bare = file.clone();
    bare.bodies.clear();
    bare.budget_bytes = Some(file.peak_bytes);
    let bare = replayed(&bare).expect_err("it takes more");
    assert!(bare.contains("V006"), "{bare}");
}
