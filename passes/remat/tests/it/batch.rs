//! The largest batch: against trying every size, and against what is known of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::support::open;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{
    BatchFinding, BatchRequest, Error, ErrorKind, LoadOptions, MaxBatch, Model, ReadError, SolveRequest, max_batch,
};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_answer_is_that_of_trying_every_size),
        trial!(the_sizes_of_a_chain_are_known),
        trial!(the_plan_of_the_answer_fits_and_takes_no_longer_than_allowed),
        trial!(the_limit_says_whether_it_is_proved),
        trial!(fixed_memory_is_taken_off),
        trial!(no_size_above_the_largest_allowed_is_tried),
        trial!(memory_that_no_size_fits_is_a_finding),
        trial!(a_size_that_cannot_be_read_is_no_size_and_the_first_one_must_be_readable),
        trial!(a_cancelled_search_ends_with_what_it_has),
        trial!(sizes_are_scaled_up_and_overflow_is_refused),
    ]
}

const CHAIN: &str = "cli/training_chain.json";

/// A model with a symbolic batch.
fn dynamic(batch: u64) -> Result<Model, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/features/dynamic_batch.onnx");
    let options = LoadOptions {
        dims: BTreeMap::from([("batch".to_owned(), batch)]),
        ..LoadOptions::default()
    };
    Model::open(&path, &options)
}

/// A chain whose sizes are those of a batch of 4.
fn chain(batch: u64) -> Result<Model, Error> {
    open(CHAIN).scaled(batch, 4)
}

fn request(memory: u64, max_overhead: u64) -> BatchRequest {
    BatchRequest {
        memory,
        fixed: 0,
        max_overhead,
        solver: "search".to_owned(),
        largest: 1_000,
    }
}

fn control() -> SolveControl<'static> {
    SolveControl::new().step_limit(8_000)
}

fn run(open: &dyn Fn(u64) -> Result<Model, Error>, request: &BatchRequest) -> MaxBatch {
    max_batch(open, None, request, &control()).expect("the search runs")
}

/// Tries every size up to `most`: the largest that fits without rematerialization, and the largest that fits with it.
fn by_brute_force(open: &dyn Fn(u64) -> Result<Model, Error>, request: &BatchRequest, most: u64) -> (u64, u64) {
    let (mut without, mut with) = (0, 0);
    for size in 1..=most {
        let model = open(size).expect("the model opens");
        if model.baseline().peak <= request.memory {
            (without, with) = (size, size);
            continue;
        }
        let asked = SolveRequest {
            budget: BudgetSpec::Bytes(request.memory),
            max_overhead: None,
            solver: request.solver.clone(),
        };
        if let Ok(solution) = remat::solve(&model, &asked, &control()) {
            let extra = u128::from(model.baseline().duration) * u128::from(request.max_overhead) / 1_000_000;
            if u128::from(solution.replay.duration - model.baseline().duration) <= extra {
                with = size;
            }
        }
    }
    (without, with)
}

fn the_answer_is_that_of_trying_every_size() {
    let memory = 40 << 20;
    for (open, memory) in [
        (&chain as &dyn Fn(u64) -> Result<Model, Error>, memory),
        (&chain, 3 * memory / 4),
        (&dynamic, 100 << 10),
        (&dynamic, 333_333),
    ] {
        for overhead in [0, 20_000, 100_000, 1_000_000] {
            let request = request(memory, overhead);
            let found = run(open, &request);
            let expected = by_brute_force(open, &request, 2 * found.with.unwrap_or(0) + 4);
            assert_eq!(
                (found.without.unwrap_or(0), found.with.unwrap_or(0)),
                expected,
                "{memory} bytes, {overhead} millionths"
            );
        }
    }
}

/// The chain of a batch of 4 has a peak of 7 MiB and a floor of 4 MiB, at 16 % of overhead.
fn the_sizes_of_a_chain_are_known() {
    let answer = |overhead| {
        let found = run(&chain, &request(28 << 20, overhead));
        (found.without, found.with)
    };
    assert_eq!(answer(0), (Some(16), Some(16)));
    assert_eq!(answer(1_000_000), (Some(16), Some(28)));
}

fn the_plan_of_the_answer_fits_and_takes_no_longer_than_allowed() {
    let request = request(28 << 20, 100_000);
    let found = run(&chain, &request);
    let plan = found.plan.as_ref().expect("more than without");
    assert!(found.with > found.without);
    assert!(plan.replay.peak <= request.memory);
    assert!(plan.overhead.percent() <= 10.0);
    let model = chain(found.with.expect("a size")).expect("the size opens");
    assert_eq!(plan.problem.digest(), {
        let mut problem = model.problem().clone();
        problem.budget = Some(request.memory);
        problem.digest()
    });
}

fn the_limit_says_whether_it_is_proved() {
    let found = run(&chain, &request(28 << 20, 1_000_000));
    let limit = found.limit().expect("a limit");
    assert_eq!(limit.size, 29);
    assert!(
        matches!(limit.finding, BatchFinding::Impossible { .. }),
        "one op needs more"
    );
    let found = run(&chain, &request(28 << 20, 20_000));
    let limit = found.limit().expect("a limit");
    assert_eq!(Some(limit.size), found.with.map(|size| size + 1));
    assert!(matches!(limit.finding, BatchFinding::NotFound { .. }), "{limit:?}");
}

fn fixed_memory_is_taken_off() {
    let fixed = BatchRequest {
        fixed: 8 << 20,
        ..request(36 << 20, 1_000_000)
    };
    let (with_fixed, less) = (run(&chain, &fixed), run(&chain, &request(28 << 20, 1_000_000)));
    assert_eq!(with_fixed.budget, 28 << 20);
    assert_eq!((with_fixed.without, with_fixed.with), (less.without, less.with));
}

fn no_size_above_the_largest_allowed_is_tried() {
    let request = BatchRequest {
        largest: 10,
        ..request(28 << 20, 1_000_000)
    };
    let found = run(&chain, &request);
    assert_eq!((found.without, found.with), (Some(10), Some(10)));
    assert!(found.limit().is_none());
    assert!(found.plan.is_none(), "the baseline fits");
}

fn memory_that_no_size_fits_is_a_finding() {
    let found = run(&chain, &request(1_000, 1_000_000));
    assert_eq!((found.without, found.with), (None, None));
    assert_eq!(found.require_size().unwrap_err().kind(), ErrorKind::Negative);
}

fn a_size_that_cannot_be_read_is_no_size_and_the_first_one_must_be_readable() {
    let refused = || {
        let (path, why) = ("model".into(), "too large".to_owned());
        Error::from(ReadError::UnknownFormat { path, why })
    };
    let up_to_5 = |size: u64| if size > 5 { Err(refused()) } else { chain(size) };
    let found = run(&up_to_5, &request(1 << 40, 0));
    assert_eq!((found.without, found.with), (Some(5), Some(5)));
    let limit = found.limit().expect("a limit");
    assert!(matches!(limit.finding, BatchFinding::Unreadable { .. }));
    let never = |_: u64| Err(refused());
    assert!(max_batch(&never, None, &request(1 << 40, 0), &control()).is_err());
}

fn a_cancelled_search_ends_with_what_it_has() {
    let stop = AtomicBool::new(true);
    let found = max_batch(&chain, None, &request(28 << 20, 1_000_000), &control().cancel(&stop)).unwrap();
    assert!(found.with >= found.without);
    assert_eq!(found.without, Some(16));
}

fn sizes_are_scaled_up_and_overflow_is_refused() {
    let model = open(CHAIN);
    let peak = |factor, divisor| model.scaled(factor, divisor).unwrap().baseline().peak;
    assert_eq!(peak(4, 4), model.baseline().peak);
    assert_eq!(peak(12, 4), 3 * model.baseline().peak);
    assert!(
        model
            .scaled(1, u64::MAX)
            .unwrap()
            .problem()
            .storages
            .iter()
            .all(|storage| storage.bytes <= 1)
    );
    assert_eq!(model.scaled(u64::MAX, 1).unwrap_err().kind(), ErrorKind::Input);
}
