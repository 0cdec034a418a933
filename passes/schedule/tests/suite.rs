//! Schedules against the plans that they come from; what must be rejected, by both readers.
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "suite/c_reader.rs"]
mod c_reader;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/networks.rs"]
mod networks;

use proptest::prelude::*;
use remat_cost::Device;
use remat_plan::{Plan, Problem};
use remat_schedule::{Figures, Numbering, Schedule, encode, plan_of};
use remat_solve::{SolveControl, solvers};
use remat_testing::TrainingNet;

/// A network on a device, planned within a share of its peak.
fn planned(net: TrainingNet, device: &str, percent: u64, solver: &str) -> (Problem, Plan, Figures) {
    let mut problem = net.problem(&Device::preset(device).expect("a device"));
    problem.objective = remat_plan::Objective::Energy;
    let replay = |problem: &Problem, plan: &Plan| {
        remat_verify::replay(problem, plan).unwrap_or_else(|rejection| panic!("{rejection}"))
    };
    problem.budget = Some(replay(&problem, &remat_plan::baseline(&problem)).peak * percent / 100);
    let solver = solvers().find(|known| known.name() == solver);
    let outcome = solver
        .expect("a solver")
        .solve(&problem, &SolveControl::new().step_limit(2_000));
    let plan = outcome.plan.expect("a plan");
    let found = replay(&problem, &plan);
    let figures = Figures {
        peak: found.peak,
        second_peak: found.second_peak,
    };
    (problem, plan, figures)
}

/// A small network with transfers and recomputes.
fn linear() -> (Problem, Plan, Figures) {
    planned(TrainingNet::Linear, "mkr1000", 50, "paging")
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
    #[test]
    fn what_is_written_reads_back(
        plan in any_plan(&TrainingNet::Linear.problem(&Device::default())),
        peak: u64,
        second_peak: u64,
    ) {
        let problem = TrainingNet::Linear.problem(&Device::default());
        let bytes = encode(&problem, &plan, Figures { peak, second_peak }).unwrap();
        let schedule = Schedule::open(&bytes).unwrap();
        prop_assert_eq!((schedule.peak(), schedule.second_peak()), (peak, second_peak));
        let sizes = Numbering::of(&problem).storages().iter().map(|&id| problem.storages[id].bytes).collect::<Vec<_>>();
        prop_assert_eq!(schedule.sizes().collect::<Vec<_>>(), sizes);
        prop_assert_eq!(plan_of(&problem, &schedule).unwrap(), plan);
    }
}
