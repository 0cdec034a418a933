//! `remat-opt reduce`: the smallest input on which a command still fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use remat::Format;
use remat::ir::Graph;
use remat::plan::Problem;
use remat::plan::parse_duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Arguments, Inputs, OUTPUT, OutputPath, ReportArgs, Talk};
use crate::console;
use crate::document::Body;
use crate::files::{self, Files};
use crate::reduce::{
    End, Ending, Expected, GraphSubject, NodeLinkSubject, OnnxSubject, ProblemSubject, Subject, Trial, Verdict, reduce,
};

#[derive(Debug, Args)]
pub(crate) struct ReduceArgs {
    /// What to reduce: a problem, a graph, or a model; `-` for stdin.
    ///
    /// A saved problem or a node-link graph (`.json`), a graph as text (`.remat`, `.ir`), a model with its weights inside (`.onnx`), or the
    /// folder of a rejected plan.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write the smallest input that fails.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    output: PathBuf,
    /// Exit status of the failure, or `any` [default: that of the command on IN].
    ///
    /// A signal counts as 128 and its number. `any` is any but 0.
    #[arg(long, value_name = "N|any", value_parser = parse_status)]
    status: Option<Status>,
    /// Text that must be on stderr for the failure to count.
    #[arg(long, value_name = "TEXT")]
    stderr: Option<String>,
    /// Time limit of one run of the command.
    ///
    /// A run that takes longer is stopped, and counts as a failure of its own kind.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    run_limit: Duration,
    /// Time limit of all runs together.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration)]
    time_limit: Duration,
    /// Maximum number of runs of the command.
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
    /// The command, after `--`; `{}` stands for the file that it is tried on.
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<String>,
}

/// An exit status on the command line.
#[derive(Clone, Copy, Debug)]
enum Status {
    Code(i32),
    Any,
}

impl Arguments for ReduceArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        Inputs::one(&mut self.input)
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        Ok(vec![(&mut self.output, "json")])
    }

    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let input = file_in(&self.input)?;
        let mut files = Files::default();
        files.reads("the input", [input.as_path()])?;
        files.writes("the smallest input (-o)", [self.output.as_path()])?;
        let bytes = remat::read(&input)?;
        let extension = remat::extension(&input);
        if matches!(extension.as_str(), "remat" | "ir") {
            let text = String::from_utf8(bytes).with_context(|| format!("{} is not text", input.display()))?;
            let graph = text.parse::<Graph>().with_context(|| input.display().to_string())?;
            return with(self, &extension, GraphSubject(graph));
        }
        match Format::of(&input)? {
            Format::Onnx => with(self, &extension, OnnxSubject::new(&bytes)?),
            Format::NodeLink => with(self, &extension, NodeLinkSubject::new(&bytes)?),
            Format::Problem => {
                let text = String::from_utf8_lossy(&bytes);
                let problem = Problem::from_json(&text).map_err(remat::Error::from)?;
                with(self, &extension, ProblemSubject(problem))
            }
            other @ (Format::Mlir | Format::Log) => bail!(
                "{} is {}: what can be reduced are problems, graphs and ONNX models",
                input.display(),
                other.describe()
            ),
        }
    }
}

fn parse_status(text: &str) -> Result<Status, String> {
    match text {
        "any" => Ok(Status::Any),
        number => match number.parse() {
            Ok(code @ 1..=255) => Ok(Status::Code(code)),
            _ => Err(format!(
                "`{text}` is not an exit status of a failure: write a number from 1 to 255, or `any`"
            )),
        },
    }
}

/// The problem in the folder of a rejected plan; any other path itself.
fn file_in(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut problems: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    problems.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name == "problem.json" || name.ends_with(".problem.json"))
    });
    match problems.as_slice() {
        [problem] => Ok(problem.clone()),
        found => bail!(
            "{} holds {} problems (`*.problem.json`), expected one",
            path.display(),
            found.len()
        ),
    }
}

/// Reduces the input, writes what is left, and says how much that is.
fn with<S: Subject>(args: &ReduceArgs, extension: &str, subject: S) -> anyhow::Result<()> {
    let trial = Trial::new(&args.command, extension, args.run_limit)?;
    let first = trial.run(&subject.to_bytes()?)?;
    let first = first.context("told to end before the command did")?;
    let expected = expected(args, &first)?;
    let mut runs = Runs {
        trial,
        expected,
        known: BTreeMap::new(),
        count: 1,
        most: args.max_runs.unwrap_or(u64::MAX),
        end: Instant::now().checked_add(args.time_limit),
        stop: crate::interrupt::flag(),
    };
    let counts = |subject: &S| (0..S::KINDS.len()).map(|kind| subject.count(kind)).collect::<Vec<_>>();
    let before = counts(&subject);
    let smallest = reduce(subject, &mut |candidate: &S| runs.verdict(&candidate.to_bytes()?))?;
    let after = counts(&smallest);
    files::write(&args.output, smallest.to_bytes()?)?;
    let report = Report {
        parts: S::KINDS
            .iter()
            .zip(before.into_iter().zip(after))
            .filter(|(_, (before, _))| *before > 0)
            .map(|(&kind, (before, after))| Parts { kind, before, after })
            .collect(),
        runs: runs.count,
        is_smallest: !runs.is_over(),
        output: args.output.display().to_string(),
    };
    console::report(&args.report, &report, Ok(()))
}

/// A reduction.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// What the input has, and what is left of it.
    parts: Vec<Parts>,
    /// How often the command was run.
    runs: u64,
    /// Whether nothing more can be left out; else a limit came first.
    is_smallest: bool,
    /// Where the result was written.
    output: String,
}

/// Parts of one kind.
#[derive(Serialize, JsonSchema)]
struct Parts {
    /// Their kind, `ops` for instance.
    kind: &'static str,
    /// How many the input has.
    before: usize,
    /// How many are left.
    after: usize,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-reduce/1";

    fn text(&self) -> String {
        let parts = self.parts.iter();
        let mut text: String = parts
            .map(|Parts { kind, before, after }| format!("{kind:<14}{before} -> {after}\n"))
            .collect();
        text += &format!("{:<14}{}\n", "runs", self.runs);
        text += &format!("{:<14}{}\n", "wrote", self.output);
        if !self.is_smallest {
            text += "stopped by a limit: a smaller input may fail, too\n";
        }
        text
    }
}

/// What counts as the failure, given how the command ended on the input.
fn expected(args: &ReduceArgs, first: &Ending) -> anyhow::Result<Expected> {
    let (input, ended) = (args.input.display(), first.end);
    let expected = Expected {
        end: match args.status {
            None if ended == End::Status(0) => {
                bail!("the command succeeds on {input}: there is no failure to keep")
            }
            None => Some(ended),
            Some(Status::Code(code)) => Some(End::Status(code)),
            Some(Status::Any) => None,
        },
        stderr: args.stderr.clone(),
    };
    if !expected.is_met(first) {
        let words = args.stderr.as_deref().filter(|&text| !first.stderr.contains(text));
        let words = words.map_or_else(String::new, |text| format!(", and `{text}` is not on stderr"));
        bail!("the command does not fail in that way on {input}: it ends with {ended}{words}");
    }
    Ok(expected)
}

/// The runs so far.
struct Runs {
    trial: Trial,
    expected: Expected,
    /// Candidates that were tried, by their hash.
    known: BTreeMap<[u8; 32], Verdict>,
    count: u64,
    most: u64,
    end: Option<Instant>,
    stop: &'static AtomicBool,
}

impl Runs {
    fn is_over(&self) -> bool {
        let late = self.end.is_some_and(|end| Instant::now() >= end);
        late || self.count >= self.most || self.stop.load(Ordering::Relaxed)
    }

    fn verdict(&mut self, candidate: &[u8]) -> anyhow::Result<Verdict> {
        let hash = *blake3::hash(candidate).as_bytes();
        if let Some(&known) = self.known.get(&hash) {
            return Ok(known);
        }
        if self.is_over() {
            return Ok(Verdict::Over);
        }
        self.count += 1;
        let Some(ending) = self.trial.run(candidate)? else {
            return Ok(Verdict::Over);
        };
        let verdict = if self.expected.is_met(&ending) {
            Verdict::Fails
        } else {
            Verdict::Passes
        };
        self.known.insert(hash, verdict);
        Ok(verdict)
    }
}
