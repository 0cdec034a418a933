//! `remat-bench poet`: energy, memory and time with a second memory, on the networks and devices of the POET paper.
//!
//! Five tables, in form the paper's Figures 3, 4 and 5 and its Table 3: extra energy by budget for all solvers; the two halves of the
//! search by deadline; Capuchin where the processor waits for transfers; memory and time; and the first one for models from files.
//! Every plan has passed the checker, with transfers in its time.

mod trial;

use std::path::PathBuf;
use std::time::Duration;

use remat::plan::{Objective, PagingMode, Problem, parse_duration};
use remat::profile::Device;
use remat::verify::Replay;
use remat_testing::TrainingNet;

use self::trial::{Setting, Trial};
use crate::files::any_files;
use crate::table::{Output, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Networks.
    #[arg(long, value_name = "NET,...", value_delimiter = ',', default_value = "linear,resnet18-cifar,vgg16-cifar,bert", value_parser = net)]
    nets: Vec<TrainingNet>,
    /// Training steps in ONNX: models, or folders with models whose names end in `_train`; folders that are not there are skipped.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', default_value = "test/models")]
    models: Vec<PathBuf>,
    /// Devices.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "mkr1000,nrf52840,raspberry-pi-4,jetson-tx2", value_parser = device)]
    devices: Vec<Device>,
    /// Budgets in per cent of the peak.
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_value = "80,60,40")]
    budgets: Vec<u64>,
    /// Deadlines in per cent of the time of running every op once.
    #[arg(
        long,
        value_name = "PERCENT,...",
        value_delimiter = ',',
        default_value = "100,101,105,150"
    )]
    deadlines: Vec<u64>,
    /// Deadline of the first table, in the same measure; none by default.
    #[arg(long, value_name = "PERCENT")]
    deadline: Option<u64>,
    /// Whether transfers overlap runs: `sync`, `dma`, or as the device does.
    #[arg(long, value_name = "MODE", value_parser = paging)]
    paging: Option<PagingMode>,
    /// Time for each solver; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    #[command(flatten)]
    output: Output,
}

/// The columns of a table: network, device and what is varied; then solvers, whose figures are extra energy in per cent, each followed by what else
/// is known of its plan.
const BY_BUDGET: &[&str] = &[
    "network",
    "device",
    "budget %",
    "auto",
    "time %",
    "poet",
    "gap %",
    "paging:transfers",
    "paging:recomputes",
    "capuchin",
    "pofo",
    "dtr",
];
const BY_DEADLINE: &[&str] = &[
    "network",
    "device",
    "deadline %",
    "auto",
    "paging:transfers",
    "paging:recomputes",
    "least energy %",
];
const BY_MEMORY: &[&str] = &["network", "device", "budget %", "memory kB", "time ms", "energy mJ"];

const BY_CAPUCHIN: &[&str] = &[
    "network",
    "device",
    "budget %",
    "capuchin",
    "paging:transfers",
    "paging:recomputes",
    "auto",
];

/// The budget of the table by deadline, in per cent of the peak.
const DEADLINE_BUDGET: u64 = 50;

/// Where the paper compares with Capuchin, and its budgets in per cent of the peak.
const CAPUCHIN_DEVICE: &str = "raspberry-pi-4-uncached";
const CAPUCHIN_BUDGETS: [u64; 4] = [72, 60, 50, 43];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut nets = Vec::new();
    for &of in &args.nets {
        nets.extend(args.devices.iter().map(|device| Setting::net(of, device, args.paging)));
    }
    let mut steps = Vec::new();
    for path in models(&args.models)? {
        for device in &args.devices {
            steps.push(Setting::model(&path, device, args.paging)?);
        }
    }
    let waiting = device(CAPUCHIN_DEVICE).map_err(anyhow::Error::msg)?;
    let waiting = [Setting::net(TrainingNet::Resnet18Cifar, &waiting, None)];
    let of_budget = |setting: &Setting, budget: u64| setting.problem(Objective::Energy, budget, args.deadline);
    let of_deadline =
        |setting: &Setting, deadline: u64| setting.problem(Objective::Energy, DEADLINE_BUDGET, Some(deadline));
    let free = |setting: &Setting, budget: u64| setting.problem(Objective::Energy, budget, None);
    let shortest = |setting: &Setting, budget: u64| setting.problem(Objective::Time, budget, None);
    let give =
        |name: &str, header, settings: &[Setting], varied: &[u64], problem: &dyn Fn(&Setting, u64) -> Problem| {
            args.output
                .give(name, "", &table(header, settings, varied, problem, args.time)?)
        };
    give("poet-budgets", BY_BUDGET, &nets, &args.budgets, &of_budget)?;
    give("poet-deadlines", BY_DEADLINE, &nets, &args.deadlines, &of_deadline)?;
    give("poet-capuchin", BY_CAPUCHIN, &waiting, &CAPUCHIN_BUDGETS, &free)?;
    give("poet-memory", BY_MEMORY, &nets, &args.budgets, &shortest)?;
    give("poet-models", BY_BUDGET, &steps, &args.budgets, &of_budget)
}

/// A row for each setting and value of what is varied.
fn table(
    header: &'static [&'static str],
    settings: &[Setting],
    varied: &[u64],
    problem: &dyn Fn(&Setting, u64) -> Problem,
    time: Duration,
) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for setting in settings {
        for &value in varied {
            let mut row = setting.names.to_vec();
            row.push(value.to_string());
            row.extend(cells(&header[row.len()..], &problem(setting, value), time)?);
            rows.push(row);
        }
    }
    Ok(Table::new(2, header, rows))
}

/// What a table has of a problem.
fn cells(columns: &[&str], problem: &Problem, time: Duration) -> anyhow::Result<Vec<String>> {
    if columns[0] == BY_MEMORY[3] {
        let found = Trial::of("auto", problem, time)?.replay;
        let figures = |found: Replay| {
            [
                format!("{:.1}", found.peak as f64 / 1e3),
                format!("{:.3}", found.duration as f64 / 1e6),
                format!("{:.3}", found.energy as f64 / 1e9),
            ]
        };
        return Ok(found.map(figures).into_iter().flatten().collect());
    }
    let mut cells = Vec::new();
    let mut last = Trial::default();
    for &column in columns {
        cells.push(match column {
            "time %" => last.extra_time(problem),
            "gap %" => last.gap(),
            "least energy %" => {
                let mut free = problem.clone();
                free.deadline = None;
                Trial::of("auto", &free, time)?.extra_energy(&free)
            }
            solver => {
                last = Trial::of(solver, problem, time)?;
                last.extra_energy(problem)
            }
        });
    }
    Ok(cells)
}

fn net(name: &str) -> Result<TrainingNet, String> {
    TrainingNet::by_name(name).ok_or_else(|| format!("there is no network `{name}`"))
}

fn device(name: &str) -> Result<Device, String> {
    Device::preset(name).ok_or_else(|| format!("there is no device `{name}`"))
}

fn paging(name: &str) -> Result<PagingMode, String> {
    match name {
        "sync" => Ok(PagingMode::Sync),
        "dma" => Ok(PagingMode::Dma),
        other => Err(format!("`{other}` is not a mode of paging: it is `sync` or `dma`")),
    }
}

/// The models that are named, and the training steps of folders.
fn models(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.exists() {
            found.extend(any_files(path, &["_train.onnx"])?);
        } else {
            crate::console::tell(&format!("skipped: there is no folder `{}`", path.display()));
        }
    }
    Ok(found)
}
