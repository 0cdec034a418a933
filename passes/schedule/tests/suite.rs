//! Schedules against the plans that they come from; what must be rejected, by both readers.
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "suite/c_reader.rs"]
mod c_reader;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/networks.rs"]
mod networks;
#[path = "suite/static_block.rs"]
mod static_block;

use proptest::prelude::*;
use remat_cost::Device;
use remat_plan::{Block, BlockPlacement, Blocks, Buffer, BufferId, PlacedInterval, Plan, Problem};
use remat_schedule::{Numbering, PlanPeaks, Schedule, encode, placement_of, plan_of};
use remat_solve::{Registry, SolveControl};
use remat_testing::TrainingNet;
use typed_index_collections::TiVec;

/// A network on a device, planned within a share of its peak.
fn planned(net: TrainingNet, device: &str, percent: u64, solver: &str) -> (Problem, Plan, PlanPeaks) {
    let mut problem = net.problem(&Device::preset(device).expect("a device"));
    problem.objective = remat_plan::Objective::Energy;
    let replay = |problem: &Problem, plan: &Plan| {
        remat_verify::replay(problem, plan).unwrap_or_else(|rejection| panic!("{rejection}"))
    };
    problem.budget = Some(replay(&problem, &remat_plan::baseline(&problem)).peak * percent / 100);
    let registry = Registry::of(&[remat_solve::register, remat_poet::register]);
    let solver = registry.solvers().find(|known| known.name() == solver);
    let outcome = solver
        .expect("a solver")
        .solve(&problem, &SolveControl::new().step_limit(2_000));
    let plan = outcome.plan.expect("a plan");
    let found = replay(&problem, &plan);
    let figures = PlanPeaks {
        peak: found.peak,
        second_peak: found.second_peak,
    };
    (problem, plan, figures)
}

/// A small network with transfers and recomputes.
fn linear() -> (Problem, Plan, PlanPeaks) {
    planned(TrainingNet::Linear, "mkr1000", 50, "paging")
}

/// Offsets of a plan, as low as a short search finds them; the checker accepts them.
fn placement(problem: &Problem, plan: &Plan) -> BlockPlacement {
    const ALIGNMENT: u64 = 4;
    let replay = remat_verify::replay(problem, plan).unwrap_or_else(|rejection| panic!("{rejection}"));
    let needed = remat_verify::intervals(problem, plan, &replay);
    let buffers: TiVec<BufferId, Buffer> = needed
        .iter()
        .map(|interval| {
            let times = interval.steps.start as u64..interval.steps.end as u64;
            let mut buffer = Buffer::new(format!("{interval:?}"), interval.bytes, times);
            buffer.alignment = ALIGNMENT;
            buffer
        })
        .collect();
    let control = SolveControl::new().step_limit(20_000);
    let outcome = remat_place::place(&buffers, &Blocks::Lowest, None, &control).expect("they can be placed");
    let places = outcome.placement.expect("without capacity there always is one").places;
    let placed = |(interval, place): (&remat_verify::Interval, Option<remat_plan::Place>)| PlacedInterval {
        step: interval.steps.start,
        what: interval.what,
        offset: place.expect("everything has a place").offset,
    };
    let placement = BlockPlacement {
        block: Block {
            bytes: outcome.certificate.height.expect("there is a placement"),
            alignment: ALIGNMENT,
            outputs_bytes: None,
            certificate: None,
        },
        intervals: needed.iter().zip(places).map(placed).collect(),
    };
    if let Err(rejection) = remat_verify::check_block(problem, plan, &replay, &placement) {
        panic!("{rejection}");
    }
    placement
}

/// Any steps, valid or not, over the ids of the small network.
fn any_plan(problem: &Problem) -> impl Strategy<Value = Plan> + use<> {
    let numbering = Numbering::of(problem);
    let op = (0..problem.ops.len()).prop_map(remat_plan::OpId::new);
    let storage = prop::sample::select(numbering.storages().to_vec());
    let step = (0..5, op, storage).prop_map(|(kind, op, storage)| match kind {
        0 | 1 => remat_plan::Step::Compute(op),
        2 => remat_plan::Step::Free(storage),
        3 => remat_plan::Step::PageOut(storage),
        _ => remat_plan::Step::PageIn(storage),
    });
    let ops = problem.ops.len();
    prop::collection::vec(step, 0..200).prop_map(move |mut steps| {
        let mut ran = vec![false; ops];
        for step in &mut steps {
            if let remat_plan::Step::Compute(op) = *step
                && std::mem::replace(&mut ran[op.index()], true)
            {
                *step = remat_plan::Step::Recompute(op);
            }
        }
        Plan { steps }
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn what_is_written_reads_back(
        plan in any_plan(&TrainingNet::Linear.problem(&Device::default())),
        peak: u64,
        second_peak: u64,
    ) {
        let problem = TrainingNet::Linear.problem(&Device::default());
        let bytes = encode(&problem, &plan, PlanPeaks { peak, second_peak }, None).unwrap();
        let schedule = Schedule::open(&bytes).unwrap();
        prop_assert_eq!((schedule.peak(), schedule.second_peak()), (peak, second_peak));
        let sizes = Numbering::of(&problem).storages().iter().map(|&id| problem.storages[id].bytes).collect::<Vec<_>>();
        prop_assert_eq!(schedule.sizes().collect::<Vec<_>>(), sizes);
        prop_assert_eq!(plan_of(&problem, &schedule).unwrap(), plan);
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(16))]

    #[test]
    fn offsets_that_are_written_read_back(
        net in prop::sample::select(vec![TrainingNet::Linear, TrainingNet::Resnet18Cifar]),
        percent in 50u64..100,
        outputs in prop::option::of(1u64..1000),
    ) {
        let solver = if percent % 2 == 0 { "paging" } else { "capuchin" };
        let (problem, plan, figures) = planned(net, "mkr1000", percent, solver);
        let mut placement = placement(&problem, &plan);
        placement.block.outputs_bytes = outputs;
        let bytes = encode(&problem, &plan, figures, Some(&placement)).unwrap();
        let schedule = Schedule::open(&bytes).unwrap();
        prop_assert_eq!(plan_of(&problem, &schedule).unwrap(), plan.clone());
        prop_assert_eq!(placement_of(&problem, &plan, &schedule), Some(placement));
        let plain = encode(&problem, &plan, figures, None).unwrap();
        prop_assert_eq!(placement_of(&problem, &plan, &Schedule::open(&plain).unwrap()), None);
    }
}
