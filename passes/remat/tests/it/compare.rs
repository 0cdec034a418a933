//! Comparisons: fair, under one accounting, and won by `auto`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::rivals::{assert_auto_wins, field, request};
use crate::support::{graph, open, open_text};
use proptest::prelude::*;
use remat::plan::BudgetSpec;
use remat::solver::{Domain, SolveControl, Solver};
use remat::{
    CompareError, Comparison, ComparisonFile, Error, ErrorKind, Finding, LoadOptions, Model, SolveError, SolveRequest,
    compare,
};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(every_solver_runs_under_every_budget_loose_ones_first),
        trial!(with_a_second_memory_the_solvers_that_use_it_take_part),
        trial!(a_run_finds_what_the_solver_finds_alone),
        trial!(other_solvers_beside_it_change_nothing),
        trial!(names_that_are_no_solvers_are_skipped_unless_all_are),
        trial!(budgets_without_bytes_are_refused),
        trial!(what_was_not_started_is_not_tried),
        trial!(a_comparison_without_any_plan_says_whether_that_is_proved),
        trial!(the_file_has_a_record_for_every_run_and_reads_back),
        trial!(the_bound_is_never_above_the_best_plan),
        trial!(auto_is_never_worse_than_a_rival_on_our_own_models),
        trial!(auto_is_never_worse_than_a_rival),
        trial!(nobody_is_beaten_by_a_longer_plan),
        trial!(a_budget_of_the_baseline_is_met_without_recomputes),
    ]
}

const CHAIN: &str = "cli/training_chain.json";
const BUDGETS: [&str; 4] = ["60%", "90%", "1%", "75%"];

fn control() -> SolveControl<'static> {
    SolveControl::new().step_limit(5_000)
}

fn figures(comparison: &Comparison) -> Vec<Vec<Option<(u64, u64)>>> {
    let figures = |run: &remat::ComparedRun| Some((run.solution()?.replay.peak, run.solution()?.replay.duration));
    let solvers = comparison.solvers.iter();
    solvers
        .map(|solver| solver.runs.iter().map(figures).collect())
        .collect()
}

fn every_solver_runs_under_every_budget_loose_ones_first() {
    let model = open(CHAIN);
    let comparison = compare(&model, &request(&BUDGETS, &[]), &control()).unwrap();
    let budgets: Vec<_> = comparison
        .budgets
        .iter()
        .map(|(budget, _)| budget.to_string())
        .collect();
    assert_eq!(budgets, ["90%", "75%", "60%", "1%"]);
    let names: Vec<_> = comparison.solvers.iter().map(|solver| solver.name).collect();
    let meant = remat::solvers().filter(|solver| solver.domain() != Domain::Goals && solver.missing().is_none());
    let expected: Vec<_> = meant.map(Solver::name).collect();
    assert_eq!(names, expected);
    for solver in &comparison.solvers {
        assert_eq!(solver.runs.len(), 4);
        assert!(
            matches!(solver.runs[3].finding, Finding::Impossible { .. }),
            "no op fits 1 %"
        );
        for (run, &(_, bytes)) in solver.runs.iter().zip(&comparison.budgets) {
            assert!(run.solution().is_none_or(|solution| solution.replay.peak <= bytes));
        }
    }
}

fn with_a_second_memory_the_solvers_that_use_it_take_part() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/mlp_tiny_train.onnx");
    let options = LoadOptions {
        device: Some("raspberry-pi-4".to_owned()),
        second_memory: Some(remat::SecondMemory::Used {
            mode: remat::plan::PagingMode::Dma,
            capacity: None,
        }),
        ..LoadOptions::default()
    };
    let model = Model::open(&path, &options).unwrap();
    // Exact ones know no steps.
    let wanted = ["search", "paging", "paging:transfers", "paging:recomputes", "capuchin"];
    let comparison = compare(
        &model,
        &request(&["80%"], &wanted),
        &SolveControl::new().step_limit(500),
    )
    .unwrap();
    let names: Vec<_> = comparison.solvers.iter().map(|solver| solver.name).collect();
    assert_eq!(names, wanted);
    let paging = comparison
        .solvers
        .iter()
        .find(|solver| solver.name == "paging")
        .unwrap();
    let found = paging.runs[0].solution().unwrap();
    assert!(found.replay.peak <= comparison.budgets[0].1);
}

fn a_run_finds_what_the_solver_finds_alone() {
    let model = open(CHAIN);
    let comparison = compare(&model, &request(&BUDGETS, &["search"]), &control()).unwrap();
    for (run, &(budget, _)) in comparison.solvers[0].runs.iter().zip(&comparison.budgets) {
        let alone = SolveRequest {
            budget,
            max_overhead: None,
            solver: "search".to_owned(),
        };
        let alone = remat::solve(&model, &alone, &control()).ok();
        assert_eq!(
            run.solution().map(|solution| &solution.plan),
            alone.as_ref().map(|solution| &solution.plan)
        );
    }
}

fn other_solvers_beside_it_change_nothing() {
    let model = open(CHAIN);
    let both = compare(&model, &request(&BUDGETS, &["auto", "search"]), &control()).unwrap();
    let alone = compare(&model, &request(&BUDGETS, &["search"]), &control()).unwrap();
    assert_eq!(figures(&both)[1..], figures(&alone));
}

fn names_that_are_no_solvers_are_skipped_unless_all_are() {
    let model = open(CHAIN);
    let comparison = compare(&model, &request(&["90%"], &["oracle", "search", "search"]), &control()).unwrap();
    assert_eq!(comparison.skipped, ["oracle"]);
    assert_eq!(comparison.solvers.len(), 1);
    let error = compare(&model, &request(&["90%"], &["oracle"]), &control()).unwrap_err();
    assert!(matches!(error, Error::Solve(SolveError::UnknownSolver { .. })));
}

fn budgets_without_bytes_are_refused() {
    let model = open(CHAIN);
    for budget in ["min", "auto", "none"] {
        let error = compare(&model, &request(&[budget], &[]), &control()).unwrap_err();
        assert!(matches!(error, Error::Compare(CompareError::Budget { .. })), "{budget}");
    }
}

fn what_was_not_started_is_not_tried() {
    let model = open(CHAIN);
    let stop = AtomicBool::new(true);
    let comparison = compare(&model, &request(&["90%"], &["search"]), &control().cancel(&stop)).unwrap();
    assert!(matches!(comparison.solvers[0].runs[0].finding, Finding::Untried));
    assert_eq!(comparison.require_plan().unwrap_err().kind(), ErrorKind::Limit);
}

fn a_comparison_without_any_plan_says_whether_that_is_proved() {
    let model = open(CHAIN);
    let comparison = compare(&model, &request(&["1%", "90%"], &[]), &control()).unwrap();
    let is_impossible = |budget: usize| {
        let mut runs = comparison.solvers.iter().map(|solver| &solver.runs[budget].finding);
        runs.all(|finding| matches!(finding, Finding::Impossible { .. }))
    };
    assert!(is_impossible(1) && !is_impossible(0));
    let plan = |budgets: &[&str]| {
        compare(&model, &request(budgets, &["search"]), &control())
            .unwrap()
            .require_plan()
    };
    assert_eq!(plan(&["1%", "2%"]).unwrap_err().kind(), ErrorKind::Negative);
    assert!(plan(&["1%", "90%"]).is_ok());
}

fn the_file_has_a_record_for_every_run_and_reads_back() {
    let model = open(CHAIN);
    let request = request(&BUDGETS, &["search", "auto"]);
    let comparison = compare(&model, &request, &control()).unwrap();
    let file = ComparisonFile::new(&model, &comparison, &request, &control());
    assert_eq!(file.runs.len(), 8);
    let found = file.runs.iter().filter(|run| run.duration.is_some()).count();
    assert_eq!(found, 6);
    assert_eq!(
        serde_json::from_str::<ComparisonFile>(&file.to_json()).unwrap().runs,
        file.runs
    );
}

/// The bound is the strongest that holds for all plans, and the ratio of the best plan to it is at least one.
fn the_bound_is_never_above_the_best_plan() {
    let model = open(CHAIN);
    let comparison = compare(&model, &request(&BUDGETS, &[]), &control()).unwrap();
    for budget in 0..3 {
        let bound = comparison.bound(&model, budget);
        assert!(bound >= model.baseline().duration);
        assert!(comparison.best(budget).is_some_and(|best| best >= bound));
    }
    assert_eq!(comparison.best(3), None);
}

fn auto_is_never_worse_than_a_rival_on_our_own_models() {
    for name in [CHAIN, "models/mlp_tiny_train.onnx", "models/unet_tiny_train.onnx"] {
        assert_auto_wins(&open(name), &["90%", "75%", "60%", "50%"], 2_000, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..remat_testing::cases(24) })]

    fn auto_is_never_worse_than_a_rival(text in graph(), seed in 0u64..4) {
        assert_auto_wins(&open_text(&text), &["95%", "80%", "65%", "50%"], 300, seed);
    }

    fn nobody_is_beaten_by_a_longer_plan(text in graph()) {
        let (model, request) = (open_text(&text), request(&["90%", "70%"], &field()));
        let comparison = compare(&model, &request, &control()).unwrap();
        let figures = ComparisonFile::new(&model, &comparison, &request, &control());
        for solver in &comparison.solvers {
            for beaten in figures.beaten(solver.name) {
                let budget = comparison.budgets.iter().position(|&(_, bytes)| bytes == beaten.budget_bytes).unwrap();
                let own = solver.runs[budget].solution().map_or(u64::MAX, |own| own.replay.duration);
                prop_assert!(beaten.duration < Some(own));
                prop_assert_eq!(comparison.best(budget), beaten.duration);
            }
        }
    }

    fn a_budget_of_the_baseline_is_met_without_recomputes(text in graph()) {
        let model = open_text(&text);
        let comparison = compare(&model, &request(&["100%"], &["auto", "search"]), &control()).unwrap();
        prop_assert_eq!(comparison.budgets[0].0, BudgetSpec::Share(1_000_000));
        for solver in &comparison.solvers {
            prop_assert_eq!(solver.runs[0].solution().map(|own| own.replay.duration), Some(model.baseline().duration));
        }
    }
}
