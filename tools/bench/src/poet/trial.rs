//! One solver on one problem.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use remat::plan::{Objective, OrderMode, PagingMode, Problem, Structure, baseline};
use remat::profile::Device;
use remat::solver::SolveControl;
use remat::verify::Replay;
use remat::{LoadOptions, Model, SecondMemory};
use remat_testing::TrainingNet;

/// A training step on a device.
pub(super) struct Setting {
    /// Of the network or model, and of the device.
    pub(super) names: [String; 2],
    problem: Problem,
    /// Peak of running every op once.
    peak: u64,
}

impl Setting {
    /// A network of the POET paper.
    pub(super) fn net(net: TrainingNet, device: &Device, mode: Option<PagingMode>) -> Self {
        Self::of(net.name(), device, net.problem(device), mode)
    }

    /// A model from a file, with the times and energies that the cost model gives it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn model(path: &Path, device: &Device, mode: Option<PagingMode>) -> anyhow::Result<Self> {
        let second = device.second_memory.map(|second| SecondMemory::Used {
            mode: second.mode,
            capacity: None,
        });
        let options = LoadOptions {
            device: Some(device.name.clone()),
            order: Some(OrderMode::Fixed),
            second_memory: second,
            ..LoadOptions::default()
        };
        let model = Model::open(path, &options).with_context(|| format!("cannot open `{}`", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self::of(&name, device, model.problem().clone(), mode))
    }

    fn of(name: &str, device: &Device, mut problem: Problem, mode: Option<PagingMode>) -> Self {
        if let (Some(paging), Some(mode)) = (&mut problem.paging, mode) {
            paging.mode = mode;
        }
        let peak = remat::verify::replay(&problem, &baseline(&problem)).map_or(0, |replay| replay.peak);
        Self {
            names: [name.to_owned(), device.name.clone()],
            problem,
            peak,
        }
    }

    /// The problem within a share of the peak, or what the largest op needs where that is more, and a share of the time.
    pub(super) fn problem(&self, objective: Objective, budget: u64, deadline: Option<u64>) -> Problem {
        let mut problem = self.problem.clone();
        let least = problem
            .bottleneck(&Structure::of(&problem))
            .map_or(0, |most| most.bytes);
        problem.budget = Some(least.max(share(self.peak, budget)));
        problem.objective = objective;
        problem.deadline = deadline.map(|percent| share(problem.total_duration(), percent));
        problem
    }
}

fn share(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// What came of it.
#[derive(Default)]
pub(super) struct Trial {
    /// What the checker found of the plan; absent where there is none.
    pub(super) replay: Option<Replay>,
    /// How far the bound is off, of the objective; absent where there is no plan.
    gap: Option<f64>,
}

impl Trial {
    /// Runs the solver of that name, if it can be used, for so long.
    ///
    /// # Errors
    /// If the checker rejects the plan. A plan that misses the deadline is none: some solvers know no deadline.
    pub(super) fn of(name: &str, problem: &Problem, time: Duration) -> anyhow::Result<Self> {
        let Ok(solver) = remat::solver_named(name) else {
            return Ok(Self::default());
        };
        let control = SolveControl::new().time_limit(time);
        let outcome = solver.solve(problem, &control);
        let Some(plan) = outcome.plan else {
            return Ok(Self::default());
        };
        let mut timeless = problem.clone();
        timeless.deadline = None;
        let found = remat::verify::replay(&timeless, &plan);
        let found = found.with_context(|| format!("the plan of `{name}` for `{}` was rejected", problem.name))?;
        if problem.deadline.is_some_and(|deadline| found.duration > deadline) {
            return Ok(Self::default());
        }
        Ok(Self {
            replay: Some(found),
            gap: outcome.certificate.gap,
        })
    }

    /// Energy beyond that of running every op once, in per cent.
    pub(super) fn extra_energy(&self, problem: &Problem) -> String {
        self.extra(|replay| replay.energy, problem.total_energy())
    }

    /// Time beyond that of running every op once, in per cent.
    pub(super) fn extra_time(&self, problem: &Problem) -> String {
        self.extra(|replay| replay.duration, problem.total_duration())
    }

    pub(super) fn gap(&self) -> String {
        self.gap
            .map_or_else(|| "-".to_owned(), |gap| format!("{:.4}", 100.0 * gap))
    }

    fn extra(&self, figure: impl Fn(&Replay) -> u64, base: u64) -> String {
        let percent = |replay: &Replay| 100.0 * (figure(replay) as f64 / base.max(1) as f64 - 1.0);
        self.replay
            .as_ref()
            .map_or_else(|| "-".to_owned(), |replay| format!("{:.4}", percent(replay)))
    }
}
