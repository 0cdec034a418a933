//! Runs that happen in a process of their own: the protocol between the program and its child.
//!
//! The child is the program itself, started with a subcommand that calls [`serve`](crate::serve). It reads one request, a line of JSON, from its
//! standard input and answers with one line of JSON on its standard output. A crash of the child, for want of memory or in a kernel,
//! is an error with the last line that it wrote on its error stream; it never takes the program down.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::inputs::StoredTensor;
use crate::process::{self, ChildCommand, ChildLimits, Ended};
use crate::{
    CloseOptions, CompareSizes, LedgerOptions, MeasureOptions, PairOptions, RecordOptions, RuntimeError,
    SessionSettings,
};

/// What every answer starts with; other lines on the child's standard output are somebody else's words.
pub(crate) const ANSWER: &str = "remat-answer ";

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
pub(crate) struct Request {
    /// The runtime's library.
    pub(crate) library: PathBuf,
    /// The process that asks.
    pub(crate) parent: u32,
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
        options: PairOptions,
    },
    CompareBits {
        base: PathBuf,
        other: PathBuf,
        seed: u64,
    },
    CompareClose {
        base: PathBuf,
        other: PathBuf,
        options: CloseOptions,
    },
    CompareSizes {
        base: PathBuf,
        other: PathBuf,
        options: CompareSizes,
    },
    Optimize {
        model: PathBuf,
        out: PathBuf,
        form: Form,
    },
    /// What the whole process takes.
    Ledger {
        model: PathBuf,
        options: LedgerOptions,
    },
    Profile {
        model: PathBuf,
        runs: u32,
        seed: u64,
        given: Vec<StoredTensor>,
    },
    /// The allocations of some runs.
    Record {
        model: PathBuf,
        options: RecordOptions,
    },
    /// Only the library is loaded.
    Version,
}

/// What of a model is saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Form {
    /// The model that runs.
    AsItRuns,
    /// With what kernels make of weights, too.
    Packed,
    /// Without blocks of channels.
    WithoutBlocks,
}

impl Task {
    /// The model that an error is about where the child cannot say it itself; there is none where only the library is loaded.
    fn model(&self) -> Option<&Path> {
        match self {
            Self::Measure { model, .. }
            | Self::Optimize { model, .. }
            | Self::Ledger { model, .. }
            | Self::Profile { model, .. }
            | Self::Record { model, .. } => Some(model),
            Self::CompareTime { other, .. }
            | Self::CompareBits { other, .. }
            | Self::CompareClose { other, .. }
            | Self::CompareSizes { other, .. } => Some(other),
            Self::Version => None,
        }
    }

    fn is_metered(&self) -> bool {
        matches!(self, Self::Measure { .. })
    }
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
