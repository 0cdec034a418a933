//! Budgets that cannot be met, overheads and devices that are too small: what is said, and what works instead.

use std::path::{Path, PathBuf};

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{DeviceMemory, Error, ErrorKind, Goal, LoadOptions, Model, Refusal, Solution, SolveError, SolveRequest};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_budget_that_a_refusal_names_has_a_plan),
        trial!(a_refusal_names_the_op_the_lowest_peak_and_the_shares),
        trial!(an_overhead_beside_a_budget_is_kept_or_refused),
        trial!(min_with_an_overhead_is_auto_with_that_overhead),
        trial!(what_a_device_lacks_is_refused_with_its_figures),
        trial!(the_memory_of_a_device_becomes_the_budget_of_auto),
        trial!(weights_take_memory_unless_there_is_flash_for_them),
    ]
}

const UNET: &str = "models/unet_tiny_train.onnx";
const CHAIN: &str = "cli/training_chain.json";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test").join(name)
}

fn open(name: &str, options: &LoadOptions) -> Model {
    Model::open(&path(name), options).expect("the model opens")
}

fn request(budget: &str, max_overhead: Option<u64>) -> SolveRequest {
    SolveRequest {
        budget: budget.parse().expect("a budget"),
        max_overhead,
        solver: "search".to_owned(),
    }
}

fn solve(model: &Model, request: &SolveRequest) -> Result<Solution, Error> {
    remat::solve_or_explain(model, request, Goal::default(), &SolveControl::new().step_limit(20_000))
}

fn refusal(model: &Model, budget: &str) -> Option<Refusal> {
    match solve(model, &request(budget, None)) {
        Err(Error::Solve(SolveError::Refused(refusal))) => Some(*refusal),
        _ => None,
    }
}

/// Whatever is refused names a budget that works.
fn the_budget_that_a_refusal_names_has_a_plan() {
    for name in [UNET, CHAIN] {
        let model = open(name, &LoadOptions::default());
        for budget in ["1%", "1KiB", "30%"] {
            let Err(error) = solve(&model, &request(budget, None)) else {
                continue;
            };
            let Error::Solve(SolveError::Refused(refusal)) = error else {
                panic!("{error}")
            };
            let again = SolveRequest {
                budget: refusal.retry.expect("there is always a lowest peak"),
                ..request(budget, None)
            };
            let solution = solve(&model, &again).unwrap_or_else(|error| panic!("{name}: {error}"));
            let lowest = refusal.lowest.expect("it was looked for");
            assert!(solution.replay.peak <= lowest.bytes, "{name}");
        }
    }
}

fn a_refusal_names_the_op_the_lowest_peak_and_the_shares() {
    let model = open(UNET, &LoadOptions::default());
    let refusal = refusal(&model, "1KiB").expect("no plan is so small");
    assert_eq!((refusal.budget, refusal.baseline), (1_024, model.baseline_peak()));
    assert_eq!(refusal.cause.kind(), ErrorKind::Negative);
    let lowest = refusal.lowest.as_ref().expect("it was looked for");
    assert!(refusal.need > 1_024 && lowest.bytes >= refusal.need);
    assert_eq!(lowest.proved, lowest.bytes == refusal.need);
    let op = refusal.op.as_ref().expect("there are ops");
    assert!(model.problem().ops.iter().any(|known| known.name == *op));
    let text = refusal.to_string();
    for part in [
        format!("`{op}` alone needs"),
        format!("({} bytes)", lowest.bytes),
        "1.0 KiB (1024 bytes)".to_owned(),
        " %".to_owned(),
    ] {
        assert!(text.contains(&part), "`{part}` is not in: {text}");
    }
}

fn an_overhead_beside_a_budget_is_kept_or_refused() {
    let model = open(UNET, &LoadOptions::default());
    let free = solve(&model, &request("60%", None)).expect("there is a plan");
    assert!(free.overhead.percent() > 0.0);
    let kept = solve(&model, &request("60%", Some(1_000_000))).expect("double the time is allowed");
    assert!(kept.overhead.duration <= 2 * kept.overhead.baseline);
    let error = solve(&model, &request("60%", Some(0))).expect_err("the plan needs time");
    let Error::Solve(SolveError::TooLong {
        found,
        baseline,
        allowed,
        ..
    }) = error
    else {
        panic!("{error}")
    };
    assert_eq!((allowed, baseline), (baseline, model.baseline().duration));
    assert!(found > allowed);
    // What was found is enough.
    let millionths = u128::from(found - baseline) * 1_000_000 / u128::from(baseline) + 1;
    let enough = u64::try_from(millionths).expect("it is small");
    assert!(solve(&model, &request("60%", Some(enough))).is_ok());
}

fn min_with_an_overhead_is_auto_with_that_overhead() {
    let model = open(UNET, &LoadOptions::default());
    let peak = |budget: &str| {
        let solution = solve(&model, &request(budget, Some(20_000))).expect("there is a plan");
        assert!(solution.overhead.percent() <= 2.0);
        solution.replay.peak
    };
    assert_eq!(peak("min"), peak("auto"));
}

fn with_memory(bytes: u64) -> Model {
    let options = LoadOptions {
        device_memory: Some(DeviceMemory::Bytes(bytes)),
        ..LoadOptions::default()
    };
    open(UNET, &options)
}

fn what_a_device_lacks_is_refused_with_its_figures() {
    let options = |device_memory| LoadOptions {
        device: Some("mkr1000".to_owned()),
        device_memory,
        ..LoadOptions::default()
    };
    let model = open(UNET, &options(None));
    let error = solve(&model, &request("80%", None)).expect_err("the board is small");
    assert_eq!(error.kind(), ErrorKind::Input);
    let text = error.to_string();
    for part in ["device `mkr1000` has 32.0 KiB (32768 bytes)", "the inputs take"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(
        solve(&model, &request("min", None)),
        Err(Error::Solve(SolveError::BeyondDevice { .. }))
    ));
    // The memory becomes the budget, and no plan meets it.
    assert!(matches!(
        solve(&model, &request("auto", None)),
        Err(Error::Solve(SolveError::Refused(_)))
    ));
    assert!(solve(&model, &request("none", None)).is_ok());
    let unlimited = open(UNET, &options(Some(DeviceMemory::Unlimited)));
    assert!(solve(&unlimited, &request("80%", None)).is_ok());
}

fn the_memory_of_a_device_becomes_the_budget_of_auto() {
    let baseline = open(UNET, &LoadOptions::default()).baseline().peak;
    let taken = with_memory(0)
        .capacity()
        .map_or(0, |capacity| capacity.inputs + capacity.weights);
    let model = with_memory(taken + baseline * 3 / 4);
    let solution = solve(&model, &request("auto", None)).expect("there is a plan");
    assert_eq!(solution.problem.budget, Some(baseline * 3 / 4));
    assert!(solution.replay.peak <= baseline * 3 / 4);
    // One with capacity for the model as it is changes nothing.
    let roomy = with_memory(taken + baseline);
    let auto = solve(&roomy, &request("auto", None)).expect("there is a plan");
    assert!(auto.overhead.percent() <= 5.0);
    assert_eq!(request("auto", None).budget, BudgetSpec::Auto);
}

fn weights_take_memory_unless_there_is_flash_for_them() {
    let capacity = |device: &str| {
        let options = LoadOptions {
            device: Some(device.to_owned()),
            ..LoadOptions::default()
        };
        open(UNET, &options).capacity().cloned()
    };
    let (board, computer) = (
        capacity("nrf52840").expect("it has memory"),
        capacity("raspberry-pi-4").expect("it has memory"),
    );
    assert_eq!(board.weights, 0);
    assert!(computer.weights > 0);
    assert_eq!(computer.bytes(), computer.memory - computer.inputs - computer.weights);
    assert_eq!(capacity("cpu"), None);
}
