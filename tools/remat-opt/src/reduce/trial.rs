//! Running the command on a candidate.

use std::fmt;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use wait_timeout::ChildExt;

use crate::files;

/// What stands for the candidate in the command.
const PLACE: &str = "{}";
/// How often a waiting run looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);
/// Most of the command's words that are read.
const MOST_STDERR: u64 = 16 << 20;

/// How a run of the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With this exit status, 128 and the number for a signal.
    Status(i32),
    /// It was stopped for taking too long.
    TooLong,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::TooLong => f.write_str("no end within its time limit"),
        }
    }
}

/// A run of the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ending {
    /// How it ended.
    pub(crate) end: End,
    /// What it said on stderr.
    pub(crate) stderr: String,
}

/// Which runs count as the failure that is looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    /// How they end; absent: in any way but with success.
    pub(crate) end: Option<End>,
    /// Words that must be on stderr.
    pub(crate) stderr: Option<String>,
}

impl Expected {
    /// Whether a run ended that way.
    pub(crate) fn is_met(&self, ending: &Ending) -> bool {
        let end = match self.end {
            Some(end) => ending.end == end,
            None => ending.end != End::Status(0),
        };
        end && self.stderr.as_ref().is_none_or(|text| ending.stderr.contains(text))
    }
}

/// The command, ready to be run on candidates.
pub(crate) struct Trial {
    command: Vec<String>,
    limit: Duration,
    candidate: PathBuf,
    stop: &'static AtomicBool,
    /// Holds the candidate; removed with this.
    _folder: tempfile::TempDir,
}

impl Trial {
    /// A command with `{}` for the candidate, which is a file with this extension.
    pub(crate) fn new(command: &[String], extension: &str, limit: Duration) -> anyhow::Result<Self> {
        if !command.iter().skip(1).any(|part| part.contains(PLACE)) {
            anyhow::bail!("the command names no file: write `{PLACE}` where the candidate is to stand");
        }
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let candidate = folder.path().join(format!("candidate.{extension}"));
        Ok(Self {
            command: command.to_vec(),
            limit,
            candidate,
            stop: crate::interrupt::flag(),
            _folder: folder,
        })
    }

    /// Runs the command on this candidate; `None` where this program was told to end meanwhile.
    pub(crate) fn run(&self, bytes: &[u8]) -> anyhow::Result<Option<Ending>> {
        files::write(&self.candidate, bytes)?;
        let mut words = tempfile::tempfile().context("no temporary file")?;
        let stderr = words.try_clone().context("no temporary file")?;
        let path = self.candidate.to_string_lossy();
        let mut parts = self.command.iter().map(|part| part.replace(PLACE, &path));
        let program = parts.next().unwrap_or_default();
        let mut child = Command::new(&program)
            .args(parts)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("cannot run `{program}`"))?;
        let end = self.wait(&mut child).context("cannot wait for the command")?;
        words.rewind().context("no temporary file")?;
        let mut stderr = Vec::new();
        words.take(MOST_STDERR).read_to_end(&mut stderr)?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(end.map(|end| Ending { end, stderr }))
    }

    /// Waits for the end of the command, which comes at its limit at the latest; `None` where this program was told to end.
    fn wait(&self, child: &mut Child) -> std::io::Result<Option<End>> {
        let started = Instant::now();
        let end = loop {
            let left = self.limit.saturating_sub(started.elapsed());
            if let Some(status) = child.wait_timeout(left.min(GLANCE))? {
                break End::Status(code(status));
            }
            if self.stop.load(Ordering::Relaxed) || left.is_zero() {
                child.kill()?;
                child.wait()?;
                break End::TooLong;
            }
        };
        // What a signal ended may have got it, too.
        Ok((!self.stop.load(Ordering::Relaxed)).then_some(end))
    }
}

/// The exit status in the way of shells.
fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(128)
}
