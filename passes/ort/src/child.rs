//! Runs that happen in a process of their own: the protocol between the program and its child.
//!
//! The child is the program itself, started with a subcommand that calls [`serve`]. It reads one request, a line of JSON, from its
//! standard input and answers with one line of JSON on its standard output. A crash of the child, for want of memory or in a kernel,
//! is an error with the last line that it wrote on its error stream; it never takes the program down.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compare::{compare_bits_here, compare_time_here};
use crate::inputs::StoredTensor;
use crate::measure::measure_here;
use crate::optimize::optimize_here;
use crate::profile::profile_here;
use crate::{MeasureOptions, RuntimeError, SessionSettings, meter};

/// What every answer starts with; other lines on the child's standard output are somebody else's words.
const ANSWER: &str = "remat-answer ";

/// How to start the process that runs models: a program that calls [`serve`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// What a child is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The runtime's library.
    pub(crate) library: PathBuf,
    pub(crate) settings: SessionSettings,
    pub(crate) task: Task,
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
        pairs: u32,
        seed: u64,
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
    let runtime = crate::Runtime::load(&request.library);
    let settings = &request.settings;
    let answer = match &request.task {
        Task::Measure { model, options } => json(&runtime.and_then(|r| measure_here(&r, model, settings, options))),
        Task::CompareTime {
            base,
            other,
            pairs,
            seed,
        } => json(&runtime.and_then(|r| compare_time_here(&r, base, other, settings, *pairs, *seed))),
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

/// Starts a child, asks it, and waits for its answer.
///
/// # Errors
/// What the child answers, and [`RuntimeError::Child`] if it does not.
pub(crate) fn ask<T: DeserializeOwned>(command: &ChildCommand, request: &Request) -> Result<T, RuntimeError> {
    let lost = |why: String| match request.task.model() {
        Some(model) => RuntimeError::Child {
            model: model.to_owned(),
            why,
        },
        None => RuntimeError::Library {
            path: request.library.clone(),
            why: format!("the process that loads it {why}"),
        },
    };
    let text = serde_json::to_string(request).map_err(|error| lost(format!("could not be asked: {error}")))?;
    let meter = if request.task.is_metered() {
        meter::write().map_err(|error| lost(format!("could not be given a heap meter: {error}")))?
    } else {
        None
    };
    let mut child = Command::new(&command.program);
    child.args(&command.arguments);
    if let Some(meter) = &meter {
        // Another allocator that the caller preloads would answer in the meter's place.
        child.env("LD_PRELOAD", meter);
    }
    child
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let failed = |error: std::io::Error| lost(format!("(`{}`) failed: {error}", command.program.display()));
    let mut child = child.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A child that died before it read says so by its status.
        let _ = writeln!(input, "{text}");
    }
    let output = child.wait_with_output().map_err(failed)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(answer) = stdout.lines().find_map(|line| line.strip_prefix(ANSWER)) {
        let answer: Result<T, RuntimeError> =
            serde_json::from_str(answer).map_err(|error| lost(format!("answered in another form: {error}")))?;
        return answer;
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rev().find(|line| !line.trim().is_empty());
    Err(lost(format!(
        "ended without an answer ({}){}",
        output.status,
        last.map_or_else(String::new, |line| format!(": {}", line.trim()))
    )))
}
