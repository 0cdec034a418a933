//! The models of `test/models/features` at the tightest budget that can be met: what each is about is recomputed, what must
//! not be is not, and the bits are the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use remat::plan::{BudgetSpec, OrderMode, Plan, Problem, Step};
use remat::solver::SolveControl;
use remat::{ErrorKind, Model, Solution, SolveRequest, Target};

use remat_onnxruntime_run::Runtime;

use crate::common::{Facts, assert_same, models, original, runtime};

/// The plan for the lowest of a few shares of the peak that has one.
fn tightest(model: &Model) -> Option<Solution> {
    let control = SolveControl::new().step_limit(2_000).time_limit(Duration::from_secs(5));
    [60, 70, 80, 90].into_iter().find_map(|percent: u32| {
        let budget: BudgetSpec = format!("{percent}%").parse().expect("a share is a budget");
        let request = SolveRequest {
            budget,
            max_overhead: None,
            solver: "search".to_owned(),
        };
        match remat::solve(model, &request, &control) {
            Ok(solution) => Some(solution),
            Err(error) if matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit) => None,
            Err(error) => panic!("{percent}%: {error}"),
        }
    })
}

fn recomputed<'p>(problem: &'p Problem, plan: &Plan) -> BTreeSet<&'p str> {
    let again = plan.steps.iter().filter_map(|step| {
        if let Step::Recompute(op) = step {
            Some(*op)
        } else {
            None
        }
    });
    again.map(|op| problem.ops[op].name.as_str()).collect()
}

/// What the facts of a model say and the plan does not.
fn unmet(facts: &Facts, solution: &Solution) -> Vec<String> {
    let again = recomputed(&solution.problem, &solution.plan);
    let missing = facts.recomputed.iter().filter(|node| !again.contains(node.as_str()));
    let mut unmet: Vec<String> = missing
        .map(|node| format!("`{node}` is not recomputed, {again:?} are"))
        .collect();
    for node in &facts.never {
        let op = solution.problem.ops.iter().find(|op| op.name == *node);
        if op.is_none_or(|op| op.recomputable) {
            unmet.push(format!("`{node}` may be recomputed"));
        }
    }
    if facts.recomputed.is_empty() {
        unmet.push("the model does not say what it is about".to_owned());
    }
    unmet
}

/// Checks one model; returns what its facts say and its plan in the model's own order does not. In free order there may be no need to
/// recompute anything; what is written must compute the same all the same.
fn check(path: &Path, out: &Path, runtime: Option<&Runtime>) -> Vec<String> {
    let mut facts = Facts::of(path);
    let name = path.display();
    let mut findings = Vec::new();
    for order in [OrderMode::Fixed, OrderMode::Free] {
        facts.options.order = Some(order);
        let model = Model::open(path, &facts.options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Some(solution) = tightest(&model) else {
            findings.push(format!("no budget can be met in {order:?} order"));
            continue;
        };
        if order == OrderMode::Fixed {
            findings.extend(unmet(&facts, &solution));
        }
        remat::save(&model, &solution, &Target::Onnx, out).unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Some(runtime) = runtime {
            let before = original(runtime, path, &facts.options);
            assert_same(runtime, &before, out, &facts.options, &name.to_string());
        }
    }
    findings
}

pub(crate) fn each_feature_is_recomputed() {
    check_all(None);
}

pub(crate) fn each_feature_survives_the_recompute_of_what_it_touches() {
    check_all(Some(runtime()));
}

fn check_all(runtime: Option<&Runtime>) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let paths = models("test/models/features");
    assert!(paths.len() > 40, "only {} models", paths.len());
    let out = temporary.path().join("out.onnx");
    let mut unmet = Vec::new();
    for path in paths {
        unmet.extend(
            check(&path, &out, runtime)
                .into_iter()
                .map(|fact| format!("{}: {fact}", path.display())),
        );
    }
    assert!(unmet.is_empty(), "{unmet:#?}");
}
