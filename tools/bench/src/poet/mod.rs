//! `remat-bench poet`: energy, memory and time with a second memory, on the networks and devices of the POET paper.
//!
//! Five tables, in form the paper's Figures 3, 4 and 5 and its Table 3: extra energy by budget for all solvers; the two halves of the
//! search by deadline; Capuchin where the processor waits for transfers; memory and time; and the first one for models from files.
//! Every plan has passed the checker, with transfers in its time.

mod trial;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use remat::plan::{Objective, PagingMode, parse_duration};
use remat::profile::Device;
use remat_testing::TrainingNet;

use self::trial::{Setting, Trial};
use crate::document::replace_in;
use crate::table::{Form, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Networks.
    #[arg(
        long,
        value_name = "NET,...",
        value_delimiter = ',',
        default_value = "linear,resnet18-cifar,vgg16-cifar,bert"
    )]
    nets: Vec<String>,
    /// Training steps in ONNX: models, or folders with models whose names end in `_train`; folders that are not there are skipped.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', default_value = "test/models")]
    models: Vec<PathBuf>,
    /// Devices.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "mkr1000,nrf52840,raspberry-pi-4,jetson-tx2"
    )]
    devices: Vec<String>,
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
    #[arg(long, value_name = "MODE")]
    paging: Option<String>,
    /// Time for each solver; a number alone is in seconds.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Form of the tables.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Also write the tables into this document, between their marks.
    #[arg(long, value_name = "DOCUMENT")]
    write: Option<PathBuf>,
}

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

/// Where the paper compares with Capuchin, and its budgets in per cent of the peak.
const CAPUCHIN_DEVICE: &str = "raspberry-pi-4-uncached";
const CAPUCHIN_BUDGETS: [u64; 4] = [72, 60, 50, 43];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let nets = args
        .nets
        .iter()
        .map(|name| TrainingNet::by_name(name).with_context(|| format!("there is no network `{name}`")));
    let nets = nets.collect::<anyhow::Result<Vec<_>>>()?;
    let devices = args
        .devices
        .iter()
        .map(|name| Device::preset(name).with_context(|| format!("there is no device `{name}`")));
    let devices = devices.collect::<anyhow::Result<Vec<_>>>()?;
    let mode = match args.paging.as_deref() {
        None => None,
        Some("sync") => Some(PagingMode::Sync),
        Some("dma") => Some(PagingMode::Dma),
        Some(other) => anyhow::bail!("`{other}` is not a mode of paging: it is `sync` or `dma`"),
    };
    let settings: Vec<Setting> = nets
        .iter()
        .flat_map(|&net| devices.iter().map(move |device| Setting::net(net, device, mode)))
        .collect();
    let models = models(&args.models)?;
    let model_settings = models
        .iter()
        .flat_map(|path| devices.iter().map(move |device| Setting::model(path, device, mode)));
    let model_settings = model_settings.collect::<anyhow::Result<Vec<_>>>()?;
    type Make<'a> = Box<dyn Fn() -> anyhow::Result<Table> + 'a>;
    let tables: [(&str, Make<'_>); 5] = [
        ("poet-budgets", Box::new(|| by_budget(args, &settings))),
        ("poet-deadlines", Box::new(|| by_deadline(args, &settings))),
        ("poet-capuchin", Box::new(|| by_capuchin(args))),
        ("poet-memory", Box::new(|| by_memory(args, &settings))),
        ("poet-models", Box::new(|| by_budget(args, &model_settings))),
    ];
    for (name, make) in tables {
        let table = make()?;
        table.print(args.format);
        if let Some(document) = &args.write {
            replace_in(document, name, &table.render(Form::Markdown))?;
        }
    }
    Ok(())
}

/// Extra energy of every solver.
fn by_budget(args: &Args, settings: &[Setting]) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for setting in settings {
        for &budget in &args.budgets {
            let problem = setting.problem(Objective::Energy, budget, args.deadline);
            let ours = Trial::of("auto", &problem, args.time)?;
            let poet = Trial::of("poet", &problem, args.time)?;
            let extra =
                |name: &str| Ok::<_, anyhow::Error>(Trial::of(name, &problem, args.time)?.extra_energy(&problem));
            rows.push(vec![
                setting.names[0].clone(),
                setting.names[1].clone(),
                budget.to_string(),
                ours.extra_energy(&problem),
                ours.extra_time(&problem),
                poet.extra_energy(&problem),
                poet.gap(),
                extra("paging:transfers")?,
                extra("paging:recomputes")?,
                extra("capuchin")?,
                extra("pofo")?,
                extra("dtr")?,
            ]);
        }
    }
    Ok(Table {
        text_columns: 2,
        header: BY_BUDGET,
        rows,
    })
}

/// Extra energy of the search and its halves, at half the peak.
fn by_deadline(args: &Args, settings: &[Setting]) -> anyhow::Result<Table> {
    const BUDGET: u64 = 50;
    let mut rows = Vec::new();
    for setting in settings {
        for &deadline in &args.deadlines {
            let problem = setting.problem(Objective::Energy, BUDGET, Some(deadline));
            let extra =
                |name: &str| Ok::<_, anyhow::Error>(Trial::of(name, &problem, args.time)?.extra_energy(&problem));
            let free = setting.problem(Objective::Energy, BUDGET, None);
            rows.push(vec![
                setting.names[0].clone(),
                setting.names[1].clone(),
                deadline.to_string(),
                extra("auto")?,
                extra("paging:transfers")?,
                extra("paging:recomputes")?,
                Trial::of("auto", &free, args.time)?.extra_energy(&free),
            ]);
        }
    }
    Ok(Table {
        text_columns: 2,
        header: BY_DEADLINE,
        rows,
    })
}

/// Extra energy of Capuchin where the processor waits for transfers.
fn by_capuchin(args: &Args) -> anyhow::Result<Table> {
    let device = Device::preset(CAPUCHIN_DEVICE).context("the device is a preset")?;
    let setting = Setting::net(TrainingNet::Resnet18Cifar, &device, None);
    let mut rows = Vec::new();
    for budget in CAPUCHIN_BUDGETS {
        let problem = setting.problem(Objective::Energy, budget, None);
        let mut row = vec![setting.names[0].clone(), setting.names[1].clone(), budget.to_string()];
        for name in &BY_CAPUCHIN[3..] {
            row.push(Trial::of(name, &problem, args.time)?.extra_energy(&problem));
        }
        rows.push(row);
    }
    Ok(Table {
        text_columns: 2,
        header: BY_CAPUCHIN,
        rows,
    })
}

/// The models that are named, and the training steps of folders, by name.
fn models(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_file() {
            found.push(path.clone());
            continue;
        }
        let Ok(entries) = std::fs::read_dir(path) else {
            crate::console::tell(&format!("skipped: there is no folder `{}`", path.display()));
            continue;
        };
        let mut steps: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        steps.retain(|path| path.to_string_lossy().ends_with("_train.onnx"));
        steps.sort();
        found.extend(steps);
    }
    Ok(found)
}

/// Memory, time and energy of the shortest plans.
fn by_memory(args: &Args, settings: &[Setting]) -> anyhow::Result<Table> {
    let mut rows = Vec::new();
    for setting in settings {
        for &budget in &args.budgets {
            let problem = setting.problem(Objective::Time, budget, None);
            let mut row = vec![setting.names[0].clone(), setting.names[1].clone(), budget.to_string()];
            if let Some(found) = Trial::of("auto", &problem, args.time)?.replay {
                row.extend([
                    format!("{:.1}", found.peak as f64 / 1e3),
                    format!("{:.3}", found.duration as f64 / 1e6),
                    format!("{:.3}", found.energy as f64 / 1e9),
                ]);
            }
            rows.push(row);
        }
    }
    Ok(Table {
        text_columns: 2,
        header: BY_MEMORY,
        rows,
    })
}
