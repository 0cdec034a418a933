//! The pipeline on a model of ours: what it promises holds in what it writes.

use std::path::{Path, PathBuf};

use remat::ir::{Graph, OpKind};
use remat::plan::{Accounting, BudgetSpec, PlanFile};
use remat::solver::SolveControl;
use remat::{Error, ErrorKind, LoadOptions, Model, SaveError, Solution, SolveError, SolveRequest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_promised_peak_is_the_peak_of_the_file_that_is_written),
        trial!(the_text_of_a_rewritten_graph_parses_back),
        trial!(a_larger_budget_never_costs_more_time),
        trial!(auto_stays_within_the_allowed_overhead_and_min_goes_lower),
        trial!(the_same_request_gives_the_same_plan),
        trial!(a_budget_below_the_floor_is_negative_and_names_the_op),
        trial!(plans_are_checked_against_the_model_they_are_for),
        trial!(a_saved_problem_is_solved_like_the_model_it_came_from),
        trial!(paper_accounting_lets_outputs_die),
        trial!(graphs_of_researchers_are_read_and_drawn),
    ]
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test").join(name)
}

fn open(name: &str) -> Model {
    Model::open(&path(name), &LoadOptions::default()).expect("the model opens")
}

fn solve(model: &Model, budget: &str) -> Result<Solution, Error> {
    solve_within(model, budget, 20_000)
}

fn solve_within(model: &Model, budget: &str, steps: u64) -> Result<Solution, Error> {
    let budget: BudgetSpec = budget.parse().expect("a budget");
    let request = SolveRequest {
        budget,
        max_overhead: None,
        solver: "search".to_owned(),
    };
    remat::solve(model, &request, &SolveControl::new().step_limit(steps))
}

const UNET: &str = "models/unet_tiny_train.onnx";

fn the_promised_peak_is_the_peak_of_the_file_that_is_written() {
    let model = open(UNET);
    let solution = solve(&model, "60%").unwrap();
    assert!(solution.replay.peak <= model.baseline().peak * 6 / 10);
    assert!(solution.plan.recomputes() > 0);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.onnx");
    remat::save(&model, &solution, &remat::Target::Onnx, &out).unwrap();
    // The file order is the schedule: read as an ordinary model, it has the peak that was promised.
    let written = Model::open(&out, &LoadOptions::default()).unwrap();
    assert_eq!(written.baseline().peak, solution.replay.peak);
    assert_eq!(written.baseline().duration, solution.replay.duration);
}

fn the_text_of_a_rewritten_graph_parses_back() {
    let model = open(UNET);
    let solution = solve(&model, "70%").unwrap();
    let graph = remat::rewrite(&model, &solution).unwrap().unwrap();
    assert_eq!(Graph::parse(&graph.to_string()).unwrap(), graph);
    let recomputes = graph
        .ops
        .iter()
        .filter(|op| matches!(op.kind, OpKind::Recompute { .. }))
        .count();
    assert_eq!(recomputes, solution.plan.recomputes());
}

fn a_larger_budget_never_costs_more_time() {
    let model = open(UNET);
    let mut last = u64::MAX;
    for percent in [45, 50, 55, 60, 70, 80, 90, 100] {
        // Enough steps to converge on so small a model.
        if let Ok(solution) = solve_within(&model, &format!("{percent}%"), 800_000) {
            assert!(solution.replay.duration <= last, "{percent} %");
            last = solution.replay.duration;
        }
    }
    assert_eq!(last, model.baseline().duration);
}

fn auto_stays_within_the_allowed_overhead_and_min_goes_lower() {
    let model = open(UNET);
    let auto = solve(&model, "auto").unwrap();
    assert!(auto.overhead.percent() <= 5.0, "{}", auto.overhead.percent());
    assert!(auto.replay.peak < model.baseline().peak);
    let min = solve(&model, "min").unwrap();
    assert!(min.replay.peak <= auto.replay.peak);
    assert!(min.replay.peak <= min.problem.budget.unwrap());
}

fn the_same_request_gives_the_same_plan() {
    let model = open(UNET);
    for budget in ["60%", "auto", "min"] {
        assert_eq!(
            solve(&model, budget).unwrap().plan,
            solve(&model, budget).unwrap().plan,
            "{budget}"
        );
    }
}

fn a_budget_below_the_floor_is_negative_and_names_the_op() {
    let error = solve(&open(UNET), "1KiB").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Negative);
    let Error::Solve(SolveError::Infeasible(infeasible)) = error else {
        panic!("{error}")
    };
    assert!(open(UNET).problem().ops.iter().any(|op| op.name == infeasible.op));
}

fn plans_are_checked_against_the_model_they_are_for() {
    let (unet, mlp) = (open(UNET), open("models/mlp_tiny_train.onnx"));
    let file = solve(&unet, "80%").unwrap().plan_file(&unet);
    let read = PlanFile::from_json(&file.to_json()).unwrap();
    assert_eq!(read, file);
    assert_eq!(remat::check_plan(&unet, &read).unwrap().replay.peak, file.peak_bytes);
    assert_eq!(remat::check_plan(&mlp, &read).unwrap_err().kind(), ErrorKind::Negative);
}

fn a_saved_problem_is_solved_like_the_model_it_came_from() {
    let model = open(UNET);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("problem.json");
    std::fs::write(&saved, model.problem().to_json()).unwrap();
    let problem = Model::open(&saved, &LoadOptions::default()).unwrap();
    assert_eq!(problem.problem(), model.problem());
    assert_eq!(solve(&problem, "60%").unwrap().plan, solve(&model, "60%").unwrap().plan);
    let error = remat::save(
        &problem,
        &solve(&problem, "80%").unwrap(),
        &remat::Target::Onnx,
        &folder.path().join("out.onnx"),
    )
    .unwrap_err();
    assert!(
        matches!(error, Error::Save(SaveError::NothingToRewrite { .. })),
        "{error}"
    );
}

fn paper_accounting_lets_outputs_die() {
    let options = LoadOptions {
        accounting: Some(Accounting::Paper),
        ..LoadOptions::default()
    };
    let paper = Model::open(&path(UNET), &options).unwrap();
    assert!(paper.baseline().peak <= open(UNET).baseline().peak);
    assert!(solve(&paper, "70%").is_ok());
}

fn graphs_of_researchers_are_read_and_drawn() {
    let model = open("cli/training_chain.json");
    let solution = solve(&model, "75%").unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["plan.json", "graph.remat", "graph.dot"] {
        remat::save(&model, &solution, &remat::Target::Onnx, &folder.path().join(name)).unwrap();
        assert!(std::fs::metadata(folder.path().join(name)).unwrap().len() > 0);
    }
}
