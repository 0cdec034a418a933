//! `auto` with a second memory: never more energy than any other solver, on the networks and devices of the POET paper.

use remat::plan::{Objective, Problem, baseline};
use remat::profile::{Device, TrainingNet};
use remat::solver::{SolveControl, Solver};
use remat::verify::replay;

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

#[test]
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
        let others = remat::solvers().filter(|solver| {
            ["dtr", "chen", "checkpoint", "griewank"]
                .iter()
                .any(|name| solver.name().starts_with(name))
        });
        // Integer programs count no steps of ours.
        let with_pages = remat::paging_solvers().filter(|solver| !solver.name().starts_with("poet"));
        for other in others.chain(with_pages) {
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
