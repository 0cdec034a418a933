//! `remat-opt simulate`: replays a log under dynamic rematerialization.

use std::path::PathBuf;

use clap::Args;
use remat::dtr::{Deallocation, Heuristic, SimulateOptions, SimulateStatus, Simulation, Trace, base_peak, simulate};
use remat::plan::{BudgetSpec, parse_share};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{
    Arguments, Budgets, Choice, GOAL, Inputs, REPORT, ReportArgs, ReportFormat, SEARCH, Talk, parse_budgets,
};
use crate::document::Body;
use crate::{console, units};

const DEALLOCATIONS: Choice<Deallocation> = Choice(&[
    (
        "eager",
        Deallocation::Eager,
        "It is evicted at once, and can be recomputed",
    ),
    (
        "banish",
        Deallocation::Banish,
        "It is freed for good when no evicted tensor descends from it",
    ),
    ("keep", Deallocation::Keep, "Nothing: it stays until it is evicted"),
]);

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Log of an eager execution, one JSON instruction per line (`.log`, `.log.gz`); `-` for stdin.
    #[arg(value_name = "LOG")]
    input: PathBuf,
    /// What to evict; several with commas, `all` for each of them.
    ///
    /// `dtr`, `dtr-eq`, `dtr-local`, `lru`, `size`, `msps` or `random`.
    #[arg(long, value_name = "NAMES", default_value = "dtr-eq", value_delimiter = ',', help_heading = SEARCH)]
    heuristic: Vec<String>,
    /// Peaks to stay within: shares of the log's own (`80%`), ranges of shares (`90%..50%:5%`), sizes (`512MiB`) [default: 50%].
    #[arg(short, long, value_name = "BUDGET,...", value_delimiter = ',', value_parser = parse_budgets, conflicts_with = "ratio", help_heading = GOAL)]
    budgets: Vec<Budgets>,
    /// Budgets as fractions of the log's own peak, such as `0.9,0.5`, as the paper writes them.
    #[arg(long, value_name = "RATIOS", value_delimiter = ',', value_parser = parse_share, help_heading = GOAL)]
    ratio: Vec<u64>,
    /// What happens when the program lets go of a tensor.
    #[arg(long, value_name = "MODE", value_parser = DEALLOCATIONS, default_value = "eager", help_heading = SEARCH)]
    runtime: Deallocation,
    /// How often to replay with different seeds; figures are means, and one failure is a failure.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = SEARCH)]
    trials: u64,
    /// Seed of the first trial.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SEARCH)]
    seed: u64,
    /// Give up when all runs take more than this multiple of the log's own time.
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, value_parser = parse_limit, help_heading = SEARCH)]
    thrash_limit: f64,
    /// Form of the report on stdout [default: json for one replay, text for several].
    #[arg(long, value_name = "FORM", help_heading = REPORT)]
    format: Option<ReportFormat>,
}

/// Replays of a log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Calls of operators in the log.
    operators: usize,
    /// Tensors of the log.
    tensors: usize,
    /// Peak without a budget.
    base_peak_bytes: u64,
    /// Time without a budget.
    base_cost_ns: u64,
    /// Bytes of constants.
    constant_bytes: u64,
    /// Bytes that one operator needs at least.
    bottleneck_bytes: u64,
    /// Replays that each figure is the mean of.
    trials: u64,
    /// The figures, where one heuristic is replayed under one budget.
    #[serde(flatten)]
    only: Option<Run>,
    /// The figures of each heuristic under each budget, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<Run>>,
}

/// One heuristic under one budget.
#[derive(Serialize, JsonSchema)]
struct Run {
    /// Name of the heuristic.
    heuristic: String,
    /// The budget as a share of the peak without one.
    ratio: f64,
    /// The budget.
    budget_bytes: u64,
    /// `ok`, `oom` or `thrash`.
    status: &'static str,
    /// Time as a multiple of that without a budget.
    overhead: f64,
    /// Time of recomputation.
    recompute_ns: u64,
    /// Number of recomputations.
    recomputes: u64,
    /// Number of evictions.
    evictions: u64,
    /// Most bytes resident at once.
    peak_bytes: u64,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-simulate/1";

    fn text(&self) -> String {
        let headings = "heuristic ratio budget status overhead recomputed recomputes evictions peak";
        let mut table = console::table(headings.split(' '), 1..9);
        for run in self.only.iter().chain(self.runs.iter().flatten()) {
            table.add_row([
                run.heuristic.clone(),
                format!("{:.3}", run.ratio),
                units::bytes(run.budget_bytes),
                run.status.to_owned(),
                format!("{:.5}", run.overhead),
                units::nanoseconds(run.recompute_ns),
                run.recomputes.to_string(),
                run.evictions.to_string(),
                units::bytes(run.peak_bytes),
            ]);
        }
        format!(
            "{} operators, {} without a budget, {} of it constants; {}\n\n{}\n",
            self.operators,
            units::bytes(self.base_peak_bytes),
            units::bytes(self.constant_bytes),
            units::nanoseconds(self.base_cost_ns),
            table.trim_fmt()
        )
    }
}

impl Arguments for SimulateArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs::one(&mut self.input)
    }

    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let heuristics = heuristics(&self.heuristic)?;
        let trace = remat::dtr::read_log(&remat::read(&self.input)?).map_err(remat::Error::from)?;
        let peak = base_peak(&trace);
        let budgets = budgets(self, peak)?;
        let mut runs = Vec::new();
        for &heuristic in &heuristics {
            for &(ratio, budget) in &budgets {
                let result = trials(&trace, self, heuristic, budget);
                runs.push(Run {
                    heuristic: heuristic.to_string(),
                    ratio,
                    budget_bytes: budget,
                    status: status(result.status),
                    overhead: result.overhead,
                    recompute_ns: result.recompute_ns,
                    recomputes: result.recomputes,
                    evictions: result.evictions,
                    peak_bytes: result.peak,
                });
            }
        }
        let preferred = if runs.len() == 1 {
            ReportFormat::Json
        } else {
            ReportFormat::Text
        };
        let report = ReportArgs {
            format: self.format.unwrap_or(preferred),
        };
        console::report(&report, &Report::new(self, &trace, peak, runs), Ok(()))
    }
}

/// Budgets in bytes, and as shares of the peak.
fn budgets(args: &SimulateArgs, peak: u64) -> anyhow::Result<Vec<(f64, u64)>> {
    let mut budgets = Budgets::all(&args.budgets);
    budgets.extend(args.ratio.iter().copied().map(BudgetSpec::Share));
    if budgets.is_empty() {
        budgets.push(BudgetSpec::Share(500_000));
    }
    let of_budget = |budget: BudgetSpec| match (budget, budget.bytes(peak)) {
        (BudgetSpec::Share(millionths), Some(bytes)) => Ok((millionths as f64 / 1e6, bytes)),
        (_, Some(bytes)) => Ok((bytes as f64 / peak.max(1) as f64, bytes)),
        (other, None) => anyhow::bail!("`{other}` is not a budget for a replay: name shares or sizes"),
    };
    budgets.into_iter().map(of_budget).collect()
}

fn heuristics(names: &[String]) -> anyhow::Result<Vec<Heuristic>> {
    let mut heuristics = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => heuristics.extend(Heuristic::ALL),
            name => heuristics.push(name.parse()?),
        }
    }
    Ok(heuristics)
}

/// The means of all trials; the first failure decides the status.
fn trials(trace: &Trace, args: &SimulateArgs, heuristic: Heuristic, budget: u64) -> Simulation {
    let options = |seed| SimulateOptions {
        heuristic,
        deallocation: args.runtime,
        budget: Some(budget),
        thrash_limit: args.thrash_limit,
        seed,
    };
    let seeds = (0..args.trials).map(|trial| args.seed.wrapping_add(trial));
    let all: Vec<Simulation> = seeds.map(|seed| simulate(trace, &options(seed))).collect();
    let count = all.len() as u64;
    let mean = |figure: fn(&Simulation) -> u64| {
        let sum: u128 = all.iter().map(|result| u128::from(figure(result))).sum();
        u64::try_from(sum / u128::from(count)).unwrap_or(u64::MAX)
    };
    let failed = all
        .iter()
        .map(|result| result.status)
        .find(|&status| status != SimulateStatus::Ok);
    Simulation {
        status: failed.unwrap_or(SimulateStatus::Ok),
        budget: Some(budget),
        overhead: all.iter().map(|result| result.overhead).sum::<f64>() / count as f64,
        recompute_ns: mean(|result| result.recompute_ns),
        peak: all.iter().map(|result| result.peak).max().unwrap_or(0),
        evictions: mean(|result| result.evictions),
        recomputes: mean(|result| result.recomputes),
    }
}

fn status(status: SimulateStatus) -> &'static str {
    match status {
        SimulateStatus::Ok => "ok",
        SimulateStatus::Oom => "oom",
        SimulateStatus::Thrash => "thrash",
    }
}

impl Report {
    fn new(args: &SimulateArgs, trace: &Trace, peak: u64, mut runs: Vec<Run>) -> Self {
        let only = if runs.len() == 1 { runs.pop() } else { None };
        let runs = only.is_none().then_some(runs);
        Self {
            operators: trace.operators(),
            tensors: trace.tensors(),
            base_peak_bytes: peak,
            base_cost_ns: trace.base_cost(),
            constant_bytes: trace.constant_bytes(),
            bottleneck_bytes: trace.bottleneck(),
            trials: args.trials,
            only,
            runs,
        }
    }
}

fn parse_limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1.0..=1000.0).contains(&value) => Ok(value),
        _ => Err(format!("`{text}` is not a factor from 1 to 1000")),
    }
}
