//! Plans in one block: whatever is planned and placed is accepted, a budget may bound the block, and wrong offsets are refused.

use crate::support::{graph, open, open_text};
use proptest::prelude::*;
use proptest::sample::Index;
use remat::plan::{Bound, BudgetSpec, PagingMode, PlanFile, parse_bytes};
use remat::solver::SolveControl;
use remat::{
    Error, ErrorKind, Goal, LoadOptions, Model, PlacementError, PlanError, SecondMemory, Solution, SolveRequest,
};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(what_is_planned_and_placed_is_accepted_and_moved_bytes_are_not),
        trial!(a_budget_for_the_block_is_kept_by_the_block),
        trial!(outputs_lie_first_unless_only_then_the_block_keeps_its_budget),
        trial!(where_no_block_is_small_enough_the_smallest_one_is_named),
        trial!(models_with_views_workspace_and_outputs_are_placed_under_a_budget_for_the_block),
        trial!(plans_that_move_results_are_placed_and_written_for_devices),
    ]
}

const STEPS: u64 = 2_000;

fn request(budget: BudgetSpec) -> SolveRequest {
    SolveRequest {
        budget,
        max_overhead: None,
        solver: "search".to_owned(),
    }
}

fn solved(model: &Model, budget: BudgetSpec, bound: Bound) -> Result<Solution, Error> {
    let control = SolveControl::new().step_limit(STEPS);
    remat::solve_in_block(model, &request(budget), Goal::default(), bound, &control)
}

/// The plan, as it is read back from its file.
fn file(model: &Model, solution: &Solution) -> PlanFile {
    PlanFile::from_json(&solution.plan_file(model).to_json()).expect("a plan")
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    fn what_is_planned_and_placed_is_accepted_and_moved_bytes_are_not(
        text in graph(),
        share in 500_000u64..1_000_000,
        which in any::<(Index, Index)>(),
    ) {
        let model = open_text(&text);
        let Ok(solution) = solved(&model, BudgetSpec::Share(share), Bound::Load) else { return Ok(()) };
        let placed = solution.placement.clone().expect("it was asked for");
        prop_assert!(placed.block() >= placed.load && placed.load == solution.replay.peak);
        let file = file(&model, &solution);
        let again = remat::check_plan(&model, &file).expect("the plan is right");
        prop_assert_eq!(again.placement, Some(placed.clone()));
        // One interval onto another one that is there at the same time.
        let places = &placed.placement.intervals;
        let (one, other) = (which.0.index(places.len()), which.1.index(places.len()));
        let mut wrong = placed.placement.clone();
        wrong.intervals[one].offset = places[other].offset;
        let mut solution = solution;
        solution.placement.as_mut().expect("it is there").placement = wrong.clone();
        let needed = remat::verify::intervals(&solution.problem, &solution.plan, &solution.replay);
        let steps = |at: usize| &needed[at].steps;
        let meet = one != other && steps(one).start < steps(other).end && steps(other).start < steps(one).end;
        let checked = remat::check_plan(&model, &self::file(&model, &solution));
        if meet {
            let is_rejected = matches!(checked, Err(Error::Plan(PlanError::Rejected(_))));
            prop_assert!(is_rejected, "{} and {}", one, other);
        }
        // An interval less.
        wrong.intervals.remove(one);
        solution.placement.as_mut().expect("it is there").placement = wrong;
        prop_assert!(remat::check_plan(&model, &self::file(&model, &solution)).is_err());
    }

    fn a_budget_for_the_block_is_kept_by_the_block(text in graph(), share in 500_000u64..1_000_000) {
        let model = open_text(&text);
        match solved(&model, BudgetSpec::Share(share), Bound::Block) {
            Ok(solution) => {
                let budget = solution.problem.budget.expect("there is one");
                prop_assert!(solution.placement.as_ref().expect("it has one").block() <= budget);
                let file = file(&model, &solution);
                prop_assert_eq!((file.budget_bytes, file.bound), (Some(budget), Bound::Block));
                remat::check_plan(&model, &file).expect("the plan is right");
            }
            Err(error) => prop_assert!(error.kind() != ErrorKind::Internal, "{error}"),
        }
    }
}

fn bytes(text: &str) -> BudgetSpec {
    BudgetSpec::Bytes(parse_bytes(text).expect("bytes"))
}

fn outputs_lie_first_unless_only_then_the_block_keeps_its_budget() {
    let model = open("cli/outputs_first.json");
    let block = |budget, bound| {
        let solution = solved(&model, bytes(budget), bound).expect("that is enough");
        let placed = solution.placement.expect("it was asked for");
        (placed.load, placed.block(), placed.placement.block.outputs_bytes)
    };
    assert_eq!(block("500", Bound::Load), (500, 600, Some(300)));
    assert_eq!(block("600", Bound::Block), (500, 600, Some(300)));
    assert_eq!(block("500", Bound::Block), (500, 500, None));
}

fn where_no_block_is_small_enough_the_smallest_one_is_named() {
    let model = open("cli/fragmented.json");
    let load = solved(&model, bytes("256"), Bound::Load).expect("the load keeps it");
    let placed = load.placement.as_ref().expect("it was asked for");
    assert_eq!((placed.load, placed.block()), (256, 320));
    let error = solved(&model, bytes("256"), Bound::Block).expect_err("no plan takes less");
    assert_eq!(error.kind(), ErrorKind::Limit);
    let is_named = matches!(
        error,
        Error::Placement(PlacementError::NoBlock {
            budget: 256,
            block: 320,
            load: 256
        })
    );
    assert!(is_named, "{error}");
    let block = solved(&model, bytes("320"), Bound::Block).expect("that is enough");
    assert_eq!(block.bound, Bound::Block);
}

fn models_with_views_workspace_and_outputs_are_placed_under_a_budget_for_the_block() {
    for (name, share) in [
        ("unet_tiny_train", 650_000),
        ("mlp_tiny_train", 800_000),
        ("features/overwritten", 1_000_000),
    ] {
        let model = open(&format!("models/{name}.onnx"));
        let solution =
            solved(&model, BudgetSpec::Share(share), Bound::Block).unwrap_or_else(|error| panic!("{name}: {error}"));
        let placed = solution.placement.as_ref().expect("it has a block");
        let budget = solution.problem.budget.expect("there is one");
        assert!(placed.block() <= budget, "{name}: {} of {budget}", placed.block());
        assert_eq!(placed.placement.block.alignment, model.alignment());
        assert!(placed.placement.block.outputs_bytes.is_some(), "{name} has outputs");
        remat::check_plan(&model, &file(&model, &solution)).unwrap_or_else(|error| panic!("{name}: {error}"));
        // The graph says the same.
        let rewritten = remat::rewrite(&model, &solution)
            .expect("the plan is right")
            .expect("there is a graph");
        assert_eq!(rewritten.block.map(|block| block.bytes), Some(placed.block()));
    }
}

fn plans_that_move_results_are_placed_and_written_for_devices() {
    for mode in [PagingMode::Sync, PagingMode::Dma] {
        let options = LoadOptions {
            device: Some("raspberry-pi-4".to_owned()),
            second_memory: Some(SecondMemory::Used { mode, capacity: None }),
            ..LoadOptions::default()
        };
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/unet_tiny_train.onnx");
        let model = Model::open(&path, &options).expect("the model opens");
        let asked = SolveRequest {
            solver: "auto".to_owned(),
            ..request(BudgetSpec::Share(600_000))
        };
        let control = SolveControl::new().step_limit(STEPS);
        for bound in [Bound::Load, Bound::Block] {
            let solution = remat::solve_in_block(&model, &asked, Goal::default(), bound, &control);
            let solution = solution.unwrap_or_else(|error| panic!("{mode:?}, {bound:?}: {error}"));
            remat::check_plan(&model, &file(&model, &solution)).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
            let folder = tempfile::tempdir().expect("a temporary folder");
            let out = folder.path().join("out.sched");
            remat::save(&model, &solution, &remat::Target::Onnx, &out).expect("it is written");
            let bytes = std::fs::read(&out).expect("it was written");
            let read = remat::check_schedule(&model, &bytes);
            // What waits for memory under the budget of the plan may not wait under its own peak.
            if mode == PagingMode::Sync {
                let read = read.unwrap_or_else(|error| panic!("{error}"));
                let block = |solution: &Solution| {
                    solution
                        .placement
                        .as_ref()
                        .map(|placed| placed.placement.intervals.clone())
                };
                assert_eq!(block(&read), block(&solution));
            }
        }
    }
}
