//! Runs that happen in a process of their own: the protocol between the program and its child.
//!
//! The child is the program itself, started with a subcommand that calls [`serve`]. It reads one request, a line of JSON, from its
//! standard input and answers with one line of JSON on its standard output. A crash of the child, for want of memory or in a kernel,
//! is an error with the last line that it wrote on its error stream; it never takes the program down.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compare::{compare_bits_here, compare_time_here};
use crate::inputs::StoredTensor;
use crate::measure::measure_here;
use crate::optimize::optimize_here;
use crate::process::{self, ChildCommand, ChildLimits, Ended};
use crate::profile::profile_here;
use crate::{MeasureOptions, PairOptions, RuntimeError, SessionSettings};

/// What every answer starts with; other lines on the child's standard output are somebody else's words.
const ANSWER: &str = "remat-answer ";

/// How models are run: in which process, with which library, for how long.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a> {
    /// How to start a process that runs models.
    pub child: &'a ChildCommand,
    /// The runtime's library.
    pub library: &'a Path,
    /// Limits of every process that is started.
    pub limits: ChildLimits<'a>,
}

/// What a child is asked for.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// The runtime's library.
    library: PathBuf,
    /// The process that asks.
    parent: u32,
    settings: SessionSettings,
    task: Task,
}

/// What is to be done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    Measure {
        model: PathBuf,
        options: MeasureOptions,
    },
    CompareTime {
        base: PathBuf,
        other: PathBuf,
        options: PairOptions,
    },
    CompareBits {
        base: PathBuf,
        other: PathBuf,
        seed: u64,
    },
    Optimize {
        model: PathBuf,
        out: PathBuf,
    },
    Profile {
        model: PathBuf,
        runs: u32,
        seed: u64,
        given: Vec<StoredTensor>,
    },
    /// Only the library is loaded.
    Version,
}

impl Task {
    /// The model that an error is about where the child cannot say it itself; there is none where only the library is loaded.
    fn model(&self) -> Option<&Path> {
        match self {
            Self::Measure { model, .. } | Self::Optimize { model, .. } | Self::Profile { model, .. } => Some(model),
            Self::CompareTime { other, .. } | Self::CompareBits { other, .. } => Some(other),
            Self::Version => None,
        }
    }

    fn is_metered(&self) -> bool {
        matches!(self, Self::Measure { .. })
    }
}

/// Answers one request, as the child. `input` and `output` are its standard streams.
///
/// # Errors
/// Those of the two streams. Whatever goes wrong with the model is part of the answer.
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    process::die_with(request.parent)?;
    let runtime = crate::Runtime::load(&request.library);
    let settings = &request.settings;
    let answer = match &request.task {
        Task::Measure { model, options } => json(&runtime.and_then(|r| measure_here(&r, model, settings, options))),
        Task::CompareTime { base, other, options } => {
            json(&runtime.and_then(|r| compare_time_here(&r, base, other, settings, options)))
        }
        Task::CompareBits { base, other, seed } => {
            json(&runtime.and_then(|r| compare_bits_here(&r, base, other, settings, *seed)))
        }
        Task::Profile {
            model,
            runs,
            seed,
            given,
        } => json(&runtime.and_then(|r| profile_here(&r, model, settings, *runs, *seed, given))),
        Task::Version => json(&runtime.map(|r| r.version().to_owned())),
        Task::Optimize { model, out } => json(&runtime.and_then(|r| optimize_here(&r, model, settings.level, out))),
    }?;
    writeln!(output, "{ANSWER}{answer}")?;
    output.flush()
}

fn json<T: Serialize>(result: &Result<T, RuntimeError>) -> serde_json::Result<String> {
    serde_json::to_string(result)
}

/// A run that should take about as long as another one is given this multiple of that one's time.
const PATIENCE: u32 = 10;
/// The time that it has in any case.
const LEAST: Duration = Duration::from_secs(30);

impl Runner<'_> {
    /// The same for a process that should take about `time`: it is killed after a multiple of that, or when this runner's own time is over.
    #[must_use]
    pub fn expecting(mut self, time: Duration) -> Self {
        let patient = time.saturating_mul(PATIENCE).max(LEAST);
        self.limits.time = Some(self.limits.time.map_or(patient, |limit| limit.min(patient)));
        self
    }

    /// Starts a child, asks it, and waits for its answer.
    ///
    /// # Errors
    /// What the child answers; [`RuntimeError::TimedOut`] and [`RuntimeError::Cancelled`] if it was killed, and [`RuntimeError::Child`]
    /// if it gives no answer for another reason.
    pub(crate) fn ask<T: DeserializeOwned>(&self, settings: &SessionSettings, task: Task) -> Result<T, RuntimeError> {
        let request = Request {
            library: self.library.to_owned(),
            parent: std::process::id(),
            settings: settings.clone(),
            task,
        };
        let task = &request.task;
        let lost = |why: String| match task.model() {
            Some(model) => RuntimeError::Child {
                model: model.to_owned(),
                why,
            },
            None => RuntimeError::Library {
                path: self.library.to_owned(),
                why: format!("the process that loads it {why}"),
            },
        };
        let text = serde_json::to_string(&request).map_err(|error| lost(format!("could not be asked: {error}")))?;
        let ended = process::ask(self.child, self.limits, task.is_metered(), text, ANSWER)
            .map_err(|error| lost(format!("(`{}`) failed: {error}", self.child.program.display())))?;
        let about = || task.model().unwrap_or(self.library).to_owned();
        match ended {
            Ended::Cancelled => Err(RuntimeError::Cancelled { model: about() }),
            Ended::TimedOut(limit) => Err(RuntimeError::TimedOut { model: about(), limit }),
            Ended::Itself {
                answer: Some(answer), ..
            } => serde_json::from_str::<Result<T, RuntimeError>>(&answer)
                .map_err(|error| lost(format!("answered in another form: {error}")))?,
            Ended::Itself { status, last_words, .. } => Err(lost(format!(
                "ended without an answer ({status}){}",
                last_words.map_or_else(String::new, |line| format!(": {line}"))
            ))),
        }
    }
}
