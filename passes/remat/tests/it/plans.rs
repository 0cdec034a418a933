//! Plan files carry what their model was read with, so that they need nothing else to be checked.

use std::path::{Path, PathBuf};

use crate::support::profile_of;
use remat::plan::{BudgetSpec, Deadline, Objective, OrderMode, PLAN_FORMAT_1, PagingMode, PlanFile};
use remat::profile::Device;
use remat::solver::SolveControl;
use remat::{Error, ErrorKind, Goal, LoadOptions, Model, PlanError, SecondMemory, Solution, SolveRequest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_plan_that_moves_results_needs_no_options_to_be_checked),
        trial!(all_that_a_model_was_read_with_is_in_its_plan),
        trial!(an_option_that_the_plan_contradicts_is_named_with_both_values),
        trial!(a_goal_that_the_plan_contradicts_is_named),
        trial!(a_plan_of_the_first_format_that_moves_results_asks_for_the_device),
        trial!(a_schedule_that_moves_results_asks_for_the_device),
        trial!(a_plan_for_another_model_is_called_that),
    ]
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test").join(name)
}

const UNET: &str = "models/unet_tiny_train.onnx";

/// A plan for the model under these options, as it is read back from its file.
fn plan(options: &LoadOptions, goal: Goal) -> (PlanFile, Solution) {
    let model = Model::open(&path(UNET), options).expect("the model opens");
    let request = SolveRequest {
        budget: BudgetSpec::Share(700_000),
        max_overhead: None,
        solver: "auto".to_owned(),
    };
    let control = SolveControl::new().step_limit(2_000);
    let solution = remat::solve_for(&model, &request, goal, &control).expect("there is a plan");
    let text = solution.plan_file(&model).to_json();
    (PlanFile::from_json(&text).expect("a plan"), solution)
}

fn paged() -> LoadOptions {
    LoadOptions {
        device: Some("raspberry-pi-4".to_owned()),
        second_memory: Some(SecondMemory::Used {
            mode: PagingMode::Dma,
            capacity: None,
        }),
        ..LoadOptions::default()
    }
}

fn energy() -> Goal {
    Goal {
        objective: Objective::Energy,
        deadline: Some(Deadline::Factor(1_500_000)),
    }
}

/// The model as it was read when the plan was made.
fn open_for_plan(model: &Path, options: &LoadOptions, file: &PlanFile) -> Result<Model, Error> {
    Model::open(model, &options.for_plan(file)?)
}

/// Checks the plan against the model read with `options` and what the plan says.
fn check(options: &LoadOptions, file: &PlanFile) -> Result<Solution, Error> {
    remat::check_plan(&open_for_plan(&path(UNET), options, file)?, file)
}

fn a_plan_that_moves_results_needs_no_options_to_be_checked() {
    let (file, solution) = plan(&paged(), energy());
    let checked = check(&LoadOptions::default(), &file).expect("it holds");
    assert_eq!(checked.replay.peak, solution.replay.peak);
    assert_eq!(checked.problem, solution.problem);
    assert!(check(&paged(), &file).is_ok(), "options that agree may be repeated");
}

fn all_that_a_model_was_read_with_is_in_its_plan() {
    let board = Device {
        name: "board".to_owned(),
        launch_ns: 77,
        ..Device::default()
    };
    let first = Model::open(&path(UNET), &LoadOptions::default()).expect("the model opens");
    let node = first.problem().ops[remat::plan::OpId::new(0)].name.clone();
    let options = LoadOptions {
        device: Some("board".to_owned()),
        own_devices: vec![board],
        order: Some(OrderMode::Fixed),
        max_computes: Some(3),
        profile: Some(profile_of(node, 123_456, 4_096)),
        ..LoadOptions::default()
    };
    let (file, solution) = plan(&options, Goal::default());
    assert_eq!(
        check(&LoadOptions::default(), &file).expect("it holds").problem,
        solution.problem
    );
}

fn an_option_that_the_plan_contradicts_is_named_with_both_values() {
    let (file, _) = plan(&paged(), Goal::default());
    type Change = fn(&mut LoadOptions);
    let wrong: [(&str, Change); 7] = [
        (
            "the device `mkr1000` contradicts the plan, which was made with raspberry-pi-4",
            |load| {
                load.device = Some("mkr1000".to_owned());
            },
        ),
        ("paging `off` contradicts the plan, which was made with dma", |load| {
            load.second_memory = Some(SecondMemory::Unused);
        }),
        ("paging `sync` contradicts the plan, which was made with dma", |load| {
            load.second_memory = Some(SecondMemory::Used {
                mode: PagingMode::Sync,
                capacity: None,
            });
        }),
        (
            "the order `fixed` contradicts the plan, which was made with free",
            |load| {
                load.order = Some(OrderMode::Fixed);
            },
        ),
        (
            "the accounting `paper` contradicts the plan, which was made with runtime",
            |load| {
                load.accounting = Some(remat::plan::Accounting::Paper);
            },
        ),
        (
            "the limit on runs of one op `2` contradicts the plan, which was made with none",
            |load| {
                load.max_computes = Some(2);
            },
        ),
        (
            "the dimension `batch=2` contradicts the plan, which was made with no value for `batch`",
            |load| {
                load.dims.insert("batch".to_owned(), 2);
            },
        ),
    ];
    for (message, change) in wrong {
        let mut options = LoadOptions::default();
        change(&mut options);
        let error = check(&options, &file).expect_err(message);
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

fn a_goal_that_the_plan_contradicts_is_named() {
    let (file, solution) = plan(&paged(), energy());
    let baseline = solution.overhead.baseline;
    let deadline = Some(Deadline::Factor(1_500_000));
    assert!(Goal::check_plan((Some(Objective::Energy), deadline), &file, baseline).is_ok());
    assert!(Goal::check_plan((None, None), &file, baseline).is_ok());
    for given in [(Some(Objective::Time), None), (None, Some(Deadline::Factor(1_400_000)))] {
        let error = Goal::check_plan(given, &file, baseline).expect_err("it differs");
        assert!(matches!(error, Error::Plan(PlanError::Contradiction { .. })), "{error}");
    }
}

fn a_plan_of_the_first_format_that_moves_results_asks_for_the_device() {
    let (mut file, solution) = plan(&paged(), Goal::default());
    file.format = PLAN_FORMAT_1.to_owned();
    file.setup = None;
    let error = check(&LoadOptions::default(), &file).expect_err("nothing says where results go");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(matches!(error, Error::Plan(PlanError::Pages { .. })), "{error}");
    assert_eq!(
        check(&paged(), &file).expect("it holds").replay.peak,
        solution.replay.peak
    );
}

fn a_schedule_that_moves_results_asks_for_the_device() {
    let model = Model::open(&path(UNET), &paged()).expect("the model opens");
    let (_, solution) = plan(&paged(), Goal::default());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.sched");
    remat::save(&model, &solution, &remat::Target::Onnx, &out).expect("it can be written");
    let bytes = std::fs::read(&out).expect("it was written");
    assert!(remat::check_schedule(&model, &bytes).is_ok());
    let plain = Model::open(&path(UNET), &LoadOptions::default()).expect("the model opens");
    let error = remat::check_schedule(&plain, &bytes).expect_err("nothing says where results go");
    assert!(matches!(error, Error::Plan(PlanError::Pages { .. })), "{error}");
}

fn a_plan_for_another_model_is_called_that() {
    let (file, _) = plan(&LoadOptions::default(), Goal::default());
    let other = path("models/mlp_tiny_train.onnx");
    let model = open_for_plan(&other, &LoadOptions::default(), &file).expect("the model opens");
    let error = remat::check_plan(&model, &file).expect_err("it is for another model");
    assert_eq!(error.kind(), ErrorKind::Negative);
    assert!(
        error.to_string().starts_with("the plan is for another model, `"),
        "{error}"
    );
}
