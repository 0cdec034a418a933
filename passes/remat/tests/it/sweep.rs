//! Sweeps over budgets: monotone, resumable, and never without the checker.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{graph, open, open_text};
use proptest::prelude::*;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{Error, ErrorKind, Finding, Front, FrontFile, Model, PlanError, SweepError, SweepRequest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(budgets_stand_from_loose_to_tight_with_the_lowest_peak_last),
        trial!(a_budget_that_cannot_be_met_is_a_finding_and_the_others_have_plans),
        trial!(a_sweep_without_any_plan_says_whether_that_is_proved),
        trial!(a_killed_sweep_continues_to_what_it_would_have_found),
        trial!(finished_points_are_taken_as_they_are),
        trial!(with_other_limits_the_plans_are_starts_and_nothing_gets_worse),
        trial!(the_front_of_another_model_is_refused),
        trial!(a_plan_that_was_tampered_with_is_refused),
        trial!(what_is_no_front_is_refused),
        trial!(budgets_without_bytes_are_refused),
        trial!(a_larger_budget_is_never_worse),
    ]
}

fn request(budgets: &[&str]) -> SweepRequest {
    SweepRequest {
        budgets: budgets.iter().map(|text| text.parse().expect("a budget")).collect(),
        solver: "search".to_owned(),
        time_per_budget: None,
    }
}

fn control() -> SolveControl<'static> {
    SolveControl::new().step_limit(10_000)
}

const UNET: &str = "models/unet_tiny_train.onnx";
const CHAIN: &str = "cli/training_chain.json";
const BUDGETS: [&str; 5] = ["90%", "60%", "75%", "1%", "min"];

fn run(model: &Model, resume: Option<&FrontFile>) -> Front {
    remat::sweep(model, &request(&BUDGETS), &control(), resume, &mut |_| Ok(())).expect("the sweep runs")
}

/// What must not depend on the clock.
fn figures(front: &Front) -> Vec<(String, Option<(u64, u64)>)> {
    let figures = |solution: &remat::Solution| (solution.replay.peak, solution.replay.duration);
    let points = front.points.iter();
    points
        .map(|point| (point.spec.to_string(), point.solution().map(figures)))
        .collect()
}

fn file(model: &Model, front: &Front) -> FrontFile {
    FrontFile::new(model, front, &request(&BUDGETS), &control())
}

/// Saves after the visit of this number, then stops the sweep as if it had been killed.
fn killed_after(model: &Model, visits: usize) -> FrontFile {
    let killed = AtomicBool::new(false);
    let control = control().cancel(&killed);
    let (mut saved, mut count) = (None, 0);
    remat::sweep(model, &request(&BUDGETS), &control, None, &mut |front| {
        count += 1;
        if count == visits {
            saved = Some(FrontFile::from_json(&file(model, front).to_json()).expect("a front"));
            killed.store(true, Ordering::Relaxed);
        }
        Ok(())
    })
    .expect("the sweep runs");
    saved.expect("so many visits are made")
}

fn budgets_stand_from_loose_to_tight_with_the_lowest_peak_last() {
    let model = open(CHAIN);
    let front = run(&model, None);
    let specs: Vec<_> = front.points.iter().map(|point| point.spec.to_string()).collect();
    assert_eq!(specs, ["90%", "75%", "60%", "1%", "min"]);
    assert!(front.is_finished());
}

fn a_budget_that_cannot_be_met_is_a_finding_and_the_others_have_plans() {
    let model = open(CHAIN);
    let front = run(&model, None);
    for point in &front.points {
        match &point.finding {
            Finding::Plan(solution) => {
                assert!(point.budget.is_none_or(|budget| solution.replay.peak <= budget));
                assert!(solution.replay.peak >= front.floor);
                assert_eq!(solution.problem.budget, point.budget.or(Some(solution.replay.peak)));
            }
            Finding::Impossible { reason } => {
                assert_eq!(point.spec.to_string(), "1%");
                assert!(reason.contains("op `"), "{reason}");
            }
            other => panic!("{}: {other:?}", point.spec),
        }
    }
}

fn a_sweep_without_any_plan_says_whether_that_is_proved() {
    let model = open(CHAIN);
    let sweep = |budgets: &[&str]| {
        remat::sweep(&model, &request(budgets), &control(), None, &mut |_| Ok(()))
            .unwrap()
            .require_plan()
    };
    assert_eq!(sweep(&["1%", "2%"]).unwrap_err().kind(), ErrorKind::Negative);
    assert!(sweep(&["1%", "90%"]).is_ok());
    assert_eq!(sweep(&[]).unwrap_err().kind(), ErrorKind::Negative);
}

fn a_killed_sweep_continues_to_what_it_would_have_found() {
    for name in [CHAIN, UNET] {
        let model = open(name);
        let whole = run(&model, None);
        for visits in [1, 3, 5] {
            let resumed = run(&model, Some(&killed_after(&model, visits)));
            assert_eq!(
                figures(&resumed),
                figures(&whole),
                "{name}, killed after {visits} visits"
            );
            assert!(resumed.is_finished());
        }
    }
}

fn finished_points_are_taken_as_they_are() {
    let model = open(UNET);
    let whole = file(&model, &run(&model, None));
    let mut visits = 0;
    let again = remat::sweep(&model, &request(&BUDGETS), &control(), Some(&whole), &mut |_| {
        visits += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(visits, 0);
    assert_eq!(file(&model, &again), whole);
}

fn with_other_limits_the_plans_are_starts_and_nothing_gets_worse() {
    let model = open(UNET);
    let whole = run(&model, None);
    let more = SolveControl::new().step_limit(20_000);
    let mut visits = 0;
    let again = remat::sweep(
        &model,
        &request(&BUDGETS),
        &more,
        Some(&file(&model, &whole)),
        &mut |_| {
            visits += 1;
            Ok(())
        },
    )
    .unwrap();
    assert!(visits > 0);
    for (before, after) in whole.points.iter().zip(&again.points) {
        if let (Some(before), Some(after)) = (before.solution(), after.solution()) {
            assert!(after.replay.duration <= before.replay.duration || after.replay.peak < before.replay.peak);
        }
    }
}

fn the_front_of_another_model_is_refused() {
    let (chain, unet) = (open(CHAIN), open(UNET));
    let other = file(&chain, &run(&chain, None));
    let result = remat::sweep(&unet, &request(&BUDGETS), &control(), Some(&other), &mut |_| Ok(()));
    assert!(matches!(&result, Err(Error::Sweep(SweepError::File(_)))), "{result:?}");
}

fn a_plan_that_was_tampered_with_is_refused() {
    let model = open(CHAIN);
    let mut other = file(&model, &run(&model, None));
    let plan = other.points[1].plan.as_mut().expect("a plan");
    plan.steps.remove(0);
    let result = remat::sweep(&model, &request(&BUDGETS), &control(), Some(&other), &mut |_| Ok(()));
    assert!(
        matches!(&result, Err(Error::Plan(PlanError::Rejected(_)))),
        "{result:?}"
    );
}

fn what_is_no_front_is_refused() {
    assert!(FrontFile::from_json("{}").is_err());
    let model = open(CHAIN);
    let text = file(&model, &run(&model, None)).to_json();
    assert!(FrontFile::from_json(&text).is_ok());
    assert!(FrontFile::from_json(&text.replace("remat-front/1", "remat-front/9")).is_err());
}

fn budgets_without_bytes_are_refused() {
    let model = open(CHAIN);
    for budget in [BudgetSpec::Auto, BudgetSpec::None] {
        let request = SweepRequest {
            budgets: vec![budget],
            ..request(&[])
        };
        let result = remat::sweep(&model, &request, &control(), None, &mut |_| Ok(()));
        assert!(matches!(result, Err(Error::Sweep(SweepError::Budget { .. }))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..remat_testing::cases(24) })]

    fn a_larger_budget_is_never_worse(text in graph(), seed in 0u64..4) {
        let model = open_text(&text);
        let request = request(&["95%", "85%", "75%", "65%", "55%", "min", "100%"]);
        let control = SolveControl::new().step_limit(300).seed(seed);
        let front = remat::sweep(&model, &request, &control, None, &mut |_| Ok(())).unwrap();
        let budgets = front.points.iter().filter(|point| point.budget.is_some());
        let durations: Vec<_> = budgets
            .map(|point| point.solution().map_or(u64::MAX, |solution| solution.replay.duration))
            .collect();
        prop_assert!(durations.is_sorted(), "{durations:?}");
        prop_assert_eq!(durations[0], model.baseline().duration);
        let peaks: Vec<_> = front.points.iter().filter_map(|point| Some(point.solution()?.replay.peak)).collect();
        let lowest = front.points.last().and_then(|point| Some(point.solution()?.replay.peak));
        let lowest_duration = front.points.last().and_then(|point| Some(point.solution()?.replay.duration));
        prop_assert!(durations.iter().filter(|&&known| known < u64::MAX).all(|&known| Some(known) <= lowest_duration));
        prop_assert_eq!(lowest, peaks.iter().copied().min());
    }
}
