//! `auto` with a second memory: never more energy than any other solver, on the networks and devices of the POET paper; limits hold on
//! networks and models.

use std::path::Path;

use crate::training_steps::{assert_planned, training_steps};
use remat::plan::{Objective, PagingMode, Problem, baseline};
use remat::profile::Device;
use remat::solver::{Domain, SolveControl, Solver};
use remat::verify::replay;
use remat_testing::TrainingNet;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(auto_never_takes_more_energy_than_another_solver),
        trial!(a_batch_of_the_linear_network_trains_within_the_memory_of_the_smallest_board),
        trial!(deadlines_hold_with_the_time_of_transfers_in_them),
        trial!(our_training_steps_are_planned_within_budget_and_deadline),
    ]
}

const STEPS: u64 = 1_500;

/// A network on a device within a share of its peak, with a deadline in per cent of running every op once.
fn problem(net: TrainingNet, device: &str, percent: u64, deadline: Option<u64>) -> Problem {
    let mut problem = net.problem(&Device::preset(device).expect("a device"));
    problem.objective = Objective::Energy;
    let peak = replay(&problem, &baseline(&problem)).expect("every op runs once").peak;
    problem.budget = Some(peak * percent / 100);
    problem.deadline = deadline.map(|percent| problem.total_duration() * percent / 100);
    problem
}

/// The energy of the plan of a solver, if it found one within all limits.
fn energy(solver: &dyn Solver, problem: &Problem) -> Option<u64> {
    let outcome = solver.solve(problem, &SolveControl::new().step_limit(STEPS));
    let found = replay(problem, &outcome.plan?);
    // Some solvers know no deadline.
    found.ok().map(|found| found.energy)
}

fn auto_never_takes_more_energy_than_another_solver() {
    let mut compared = 0;
    for (net, device, percent, deadline) in [
        (TrainingNet::Linear, "mkr1000", 80, None),
        (TrainingNet::Linear, "mkr1000", 45, Some(102)),
        (TrainingNet::Linear, "raspberry-pi-4", 60, Some(101)),
        (TrainingNet::Vgg16Cifar, "nrf52840", 60, None),
        (TrainingNet::Vgg16Cifar, "raspberry-pi-4", 55, Some(101)),
        (TrainingNet::Resnet18Cifar, "raspberry-pi-4", 60, None),
        (TrainingNet::Resnet18Cifar, "jetson-tx2", 50, Some(105)),
        (TrainingNet::Resnet18Cifar, "h200", 50, None),
        (TrainingNet::Transformer, "desktop", 90, None),
    ] {
        let problem = problem(net, device, percent, deadline);
        let ours = energy(&remat::Auto, &problem).unwrap_or(u64::MAX);
        // What counts no steps has time as its limit, and what is neither quick nor made for goals knows nothing of energy.
        let is_rival = |solver: &&dyn Solver| {
            solver.counts_steps() && (solver.is_quick(&problem) || solver.domain() == Domain::Goals)
        };
        for other in remat::solvers().filter(is_rival) {
            let Some(theirs) = energy(other, &problem) else {
                continue;
            };
            compared += 1;
            let name = other.name();
            assert!(
                ours <= theirs,
                "{ours} is more than {theirs} of `{name}` on {} at {percent} %",
                net.name()
            );
        }
    }
    assert!(compared > 60, "only {compared} comparisons");
}

/// Everything the linear network keeps is eight times as large with a batch of eight, and takes eight times as long.
fn a_batch_of_the_linear_network_trains_within_the_memory_of_the_smallest_board() {
    let device = Device::preset("mkr1000").expect("a device");
    let mut problem = TrainingNet::Linear.problem(&device);
    for storage in &mut problem.storages {
        storage.bytes *= 8;
    }
    for op in &mut problem.ops {
        (op.duration, op.energy_pj) = (op.duration * 8, op.energy_pj * 8);
    }
    problem.objective = Objective::Energy;
    let peak = replay(&problem, &baseline(&problem)).expect("every op runs once").peak;
    assert!(peak > 32_768);
    problem.budget = Some(32_768);
    let found = energy(&remat::Auto, &problem).expect("a plan");
    assert!(found < problem.total_energy() * 1_005 / 1_000);
}

fn deadlines_hold_with_the_time_of_transfers_in_them() {
    let mut moved = 0;
    for (device, mode) in [("mkr1000", PagingMode::Sync), ("raspberry-pi-4", PagingMode::Dma)] {
        for net in [TrainingNet::Linear, TrainingNet::Vgg16Cifar, TrainingNet::Resnet18Cifar] {
            let mut problem = problem(net, device, 45, Some(102));
            problem.paging.as_mut().expect("a second memory").mode = mode;
            let outcome = remat::Auto.solve(&problem, &SolveControl::new().step_limit(STEPS));
            let Some(plan) = outcome.plan else { continue };
            let found = replay(&problem, &plan).expect("a valid plan");
            assert!(
                found.duration <= problem.deadline.expect("it was set"),
                "{}",
                net.name()
            );
            let runs: u64 = plan.runs().map(|op| problem.ops[op].duration).sum();
            if mode == PagingMode::Sync {
                assert_eq!(found.duration, runs + found.paging_duration);
            }
            assert!(found.duration >= runs);
            moved += u64::from(found.paging_duration > 0);
        }
    }
    assert!(moved >= 3, "transfers in {moved} plans");
}

fn our_training_steps_are_planned_within_budget_and_deadline() {
    let paths = training_steps(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models"));
    assert!(paths.len() >= 2);
    for path in paths {
        assert_planned(&path);
    }
}
