//! `remat-opt check`: fails where models take more memory than a limit, or than before.

mod badge;
mod baseline;
mod markdown;
mod model;
mod report;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use remat::plan::{BudgetSpec, parse_bytes, parse_duration, parse_share};
use remat::solver::{Activity, Doing, Observer};
use remat::{LoadOptions, Model};
use remat_files::document::to_json;
use remat_files::shown;
use remat_onnxruntime_deploy::{DeployError, OrderHint, default_growth, open_model, simulated};
use remat_onnxruntime_run::Host;

pub(crate) use self::baseline::{BASELINE_FORMAT, BaselineFile};
use self::baseline::{Origin, Record, name_of};
use self::model::{Checked, Difference, Limit, LimitOption};
use self::report::BaselineRecord;
pub(crate) use self::report::Report;
use crate::args::{
    Arguments, CommentArgs, GOAL, INPUT, Inputs, OUTPUT, OpenSizes, OutputPath, REPORT, RUNTIME, ReportArgs,
    RuntimeArgs, Talk, named,
};
use crate::console;
use crate::document::{self, Body};
use crate::files::{self, Files};
use crate::progress::Line;
use crate::resident::{self, Resident, op_at};
use crate::runtime::limits;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Models (`.onnx`); `-` for stdin.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Most memory that each model may take, `64MiB` for instance.
    ///
    /// By so much its process may grow in runs of a session in which nothing is set; weights, which are loaded before, are apart. Measured in
    /// ONNX Runtime; where that is not found (or is `--ort-library none`), predicted. `remat-opt inspect --memory` is about the whole process.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = GOAL)]
    limit: Option<u64>,
    /// What models took before, as `--write-baseline` wrote it: says what changed.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    baseline: Option<PathBuf>,
    /// Most memory that each model may take beyond the baseline: `5%`, `2MiB`.
    ///
    /// What was measured is compared with what was measured, if both were; else predictions. A model that the baseline does not have passes.
    #[arg(long, value_name = "SHARE|BYTES", value_parser = parse_growth, requires = "baseline", help_heading = GOAL)]
    max_growth: Option<BudgetSpec>,
    /// Write what the models take here, for `--baseline`, whether or not limits hold.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    write_baseline: Option<PathBuf>,
    /// Also write the report here, as JSON.
    #[arg(short, long, value_name = "REPORT", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Write a badge here, `runs in 12 MiB`, as JSON for an endpoint of shields.io.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    badge: Option<PathBuf>,
    /// Commit of the models, for reports and baselines [default: what the service says that runs the check].
    #[arg(long, value_name = "TEXT", help_heading = REPORT)]
    commit: Option<String>,
    #[command(flatten)]
    open: OpenSizes,
    /// Time limit of each process that runs a model.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration, help_heading = RUNTIME)]
    time_limit: Duration,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    report: CommentArgs,
}

/// Variables in which services say which commit they check: GitHub, GitLab, Azure, Bitbucket, Buildkite, CircleCI, Jenkins, Travis.
const COMMITS: [&str; 8] = [
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "BUILD_SOURCEVERSION",
    "BITBUCKET_COMMIT",
    "BUILDKITE_COMMIT",
    "CIRCLE_SHA1",
    "GIT_COMMIT",
    "TRAVIS_COMMIT",
];

impl Arguments for CheckArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs {
            files: self.models.iter_mut().chain(&mut self.baseline).collect(),
            stdin_holds: None,
        }
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        named([
            (&mut self.write_baseline, "json"),
            (&mut self.output, "json"),
            (&mut self.badge, "json"),
        ])
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        if self.badge.is_some() && self.models.len() > 1 {
            bail!(
                "a badge (`--badge`) is about one model, and {} are named",
                self.models.len()
            );
        }
        let mut files = self.files()?;
        self.open.check()?;
        let before = self.baseline.as_deref().map(BaselineFile::read).transpose()?;
        let host = self.host()?;
        let line = Line::start(talk.quiet, None);
        let mut models: Vec<Checked> = Vec::new();
        for path in &self.models {
            let name = name_of(path);
            if models.iter().any(|model| model.name() == name) {
                continue;
            }
            line.begins(&Doing::new(Activity::Measure, &shown(&name).to_string()));
            models.push(self.checked((path, name), host.as_ref(), before.as_ref(), &mut files)?);
        }
        line.finish();
        let is_measured = models.iter().any(|model| model.now.measured_bytes.is_some());
        let report = Report {
            origin: Origin {
                commit: self.commit(),
                runtime: host.filter(|_| is_measured).map(|host| host.version),
            },
            baseline: before.zip(self.baseline.as_ref()).map(|(file, path)| BaselineRecord {
                path: path.clone(),
                origin: file.origin,
            }),
            models,
        };
        self.finish(&report)
    }
}

impl Body for Report {
    const FORMAT: &'static str = "remat-check/1";

    fn text(&self) -> String {
        text::text(self)
    }

    fn markdown(&self) -> String {
        markdown::comment(self)
    }
}

impl CheckArgs {
    /// What is read and written, as far as that is known before a model is open.
    fn files(&self) -> anyhow::Result<Files> {
        let mut files = Files::default();
        files.reads("the model", self.models.iter().map(PathBuf::as_path))?;
        files.reads("the baseline (`--baseline`)", self.baseline.as_deref())?;
        files.writes("the baseline (`--write-baseline`)", self.write_baseline.as_deref())?;
        files.writes("the report (`-o`)", self.output.as_deref())?;
        files.writes("the badge (`--badge`)", self.badge.as_deref())?;
        Ok(files)
    }

    /// The runtime, if there is one; one that is named on the command line has to load.
    fn host(&self) -> anyhow::Result<Option<Host>> {
        match self.runtime.find() {
            Ok(host) => Ok(Some(host)),
            Err(error) if self.runtime.ort_library.is_some() && self.runtime.is_named() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The commit that is stated, else that of the service.
    fn commit(&self) -> Option<String> {
        let of_service = || COMMITS.iter().find_map(|name| std::env::var(name).ok());
        let commit = self.commit.clone().or_else(of_service);
        commit.filter(|commit| !commit.is_empty())
    }

    /// What one model takes, beside its limits and the baseline.
    fn checked(
        &self,
        (path, name): (&Path, String),
        host: Option<&Host>,
        before: Option<&BaselineFile>,
        files: &mut Files,
    ) -> anyhow::Result<Checked> {
        let load = self.open.load();
        let limits = limits(Some(self.time_limit));
        let model = open_model(path, &load, host.map(|host| (host, limits)))?;
        files.reads_data_of(&model)?;
        if !model.is_for_runtime() {
            bail!(
                "`{}` is not an ONNX model: it has no process to check",
                shown(path.display())
            );
        }
        let now = record(name, (path, &model), &load, (host, self.time_limit))?;
        let since = before.map(|before| before.of(&now.model, &now.dims)).transpose()?;
        let since = since.flatten().map(|before| Difference::new(before, &now));
        let allowed = self.max_growth.zip(since.as_ref()).and_then(|(growth, since)| {
            let most = since.before_bytes.saturating_add(growth.bytes(since.before_bytes)?);
            Some(Limit::new(LimitOption::MaxGrowth, most, (since.after_bytes, since.of)))
        });
        let limit = self
            .limit
            .map(|limit| Limit::new(LimitOption::Limit, limit, now.bytes()));
        let problem = model.problem();
        let resident = resident::at_peak(problem, model.baseline_plan(), model.baseline());
        let resident = resident
            .into_iter()
            .map(|(storage, bytes)| Resident::new(problem, storage, bytes));
        Ok(Checked {
            now,
            resident_at_peak: resident.collect(),
            limits: limit.into_iter().chain(allowed).collect(),
            since,
        })
    }

    /// Writes what is to be written, and prints the report.
    fn finish(&self, report: &Report) -> anyhow::Result<()> {
        let outcome = report.outcome();
        if let Some(path) = &self.write_baseline {
            let records = report.models.iter().map(|model| model.now.clone()).collect();
            files::write(path, to_json(&BaselineFile::new(report.origin.clone(), records)))?;
        }
        if let Some((path, model)) = self.badge.as_ref().zip(report.models.first()) {
            files::write(path, badge::badge(model))?;
        }
        document::save(self.output.as_deref(), report, &outcome)?;
        let form = ReportArgs {
            format: self.report.format,
        };
        console::report(&form, report, outcome)
    }
}

/// What a model takes: predicted, and where there is a runtime that runs it, measured.
fn record(
    name: String,
    (path, model): (&Path, &Model),
    load: &LoadOptions,
    (host, time_limit): (Option<&Host>, Duration),
) -> anyhow::Result<Record> {
    let prediction = simulated(model, OrderHint::Any).map_err(DeployError::from)?;
    if let Some(node) = prediction.open_nodes.first() {
        tracing::warn!(
            "data decides what node `{}` takes: predictions are without that",
            shown(node)
        );
    }
    let measured = match host {
        Some(host) => {
            let runner = host.runner(limits(Some(time_limit)));
            let growth = default_growth(&runner, path, &load.dims).map_err(DeployError::from)?;
            if growth.most().is_none() {
                tracing::warn!("the system does not tell by how much a process grows: predictions are checked");
            }
            growth.most()
        }
        None => None,
    };
    let (problem, replay) = (model.problem(), model.baseline());
    let op = op_at(model.baseline_plan(), replay.peak_step);
    Ok(Record {
        model: name,
        dims: load.dims.clone(),
        ops: problem.ops.len() as u64,
        weights_bytes: model.external_bytes().map_or(0, |bytes| bytes.constants),
        predicted_bytes: prediction.default_bytes(),
        measured_bytes: measured,
        peak_op: op.map_or_else(String::new, |op| problem.ops[op].name.clone()),
    })
}

/// `5%` or `2MiB`.
fn parse_growth(text: &str) -> Result<BudgetSpec, String> {
    if text.trim_end().ends_with('%') {
        let share = parse_share(text).map_err(|error| error.to_string())?;
        return Ok(BudgetSpec::Share(share));
    }
    match parse_bytes(text).map_err(|error| error.to_string())? {
        bytes @ 1..=100 if text.trim().parse::<u64>().is_ok() => Err(format!(
            "a number without a unit is one of bytes: did you mean `{bytes}%`?"
        )),
        bytes => Ok(BudgetSpec::Bytes(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_a_share_or_a_size() {
        assert_eq!(parse_growth("5%"), Ok(BudgetSpec::Share(50_000)));
        assert_eq!(parse_growth("150 %"), Ok(BudgetSpec::Share(1_500_000)));
        assert_eq!(parse_growth("2MiB"), Ok(BudgetSpec::Bytes(2 << 20)));
        assert_eq!(parse_growth("0"), Ok(BudgetSpec::Bytes(0)));
        assert!(parse_growth("5").is_err_and(|why| why.contains("`5%`")));
        assert!(parse_growth("-5%").is_err() && parse_growth("min").is_err());
    }
}
