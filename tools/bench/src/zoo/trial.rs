//! One model in a process of its own.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{LoadOptions, SolveRequest};
use remat_onnxruntime_deploy::DeployRequest;
use remat_onnxruntime_run::{ChildCommand, ChildLimits, Ended, Host, ask, die_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::find::ZooModel;
use super::row::{Deployed, Opened, Settings};
use crate::ort::EXPECTED;
use crate::ort::dims::open_model;

/// Name of the hidden command that opens or deploys one model.
pub(crate) const CHILD: &str = "zoo-child";

/// What an answer starts with.
const ANSWER: &str = "zoo-answer ";

/// What a process is asked for.
#[derive(Serialize, Deserialize)]
struct Question {
    /// The process that asks.
    parent: u32,
    model: PathBuf,
    settings: Settings,
    /// The runtime's library.
    library: PathBuf,
    /// Values of dimensions; absent: the model is only opened, and they are chosen.
    dims: Option<BTreeMap<String, u64>>,
}

/// Opens a model.
///
/// # Errors
/// Why it is not opened, in words.
pub(super) fn open(one: &ZooModel, settings: &Settings, host: &Host) -> Result<Opened, String> {
    answered(one, settings, host, None)
}

/// Makes a model for the runtime.
///
/// # Errors
/// Why there is no file, in words.
pub(super) fn deploy(
    one: &ZooModel,
    settings: &Settings,
    host: &Host,
    dims: &BTreeMap<String, u64>,
) -> Result<Deployed, String> {
    answered(one, settings, host, Some(dims.clone()))
}

fn answered<T: DeserializeOwned>(
    one: &ZooModel,
    settings: &Settings,
    host: &Host,
    dims: Option<BTreeMap<String, u64>>,
) -> Result<T, String> {
    let question = Question {
        parent: std::process::id(),
        model: one.path.clone(),
        settings: settings.clone(),
        library: host.library.clone(),
        dims,
    };
    let text = serde_json::to_string(&question).map_err(|error| error.to_string())?;
    let command = ChildCommand {
        program: host.child.program.clone(),
        arguments: vec![CHILD.into()],
    };
    let limits = ChildLimits {
        time: Some(Duration::from_millis(settings.limit_ms)),
        cancel: None,
    };
    match ask(&command, limits, false, text, ANSWER) {
        Err(error) => Err(format!("the process could not be started: {error}")),
        Ok(Ended::Cancelled) => Err("cancelled".to_owned()),
        Ok(Ended::TimedOut(limit)) => Err(format!("not over after {} s", limit.as_secs())),
        Ok(Ended::Itself {
            answer: Some(answer), ..
        }) => serde_json::from_str(&answer).unwrap_or_else(|error| Err(error.to_string())),
        Ok(Ended::Itself { status, last_words, .. }) => {
            let words = last_words.map_or_else(String::new, |words| format!(": {words}"));
            Err(format!("crashed ({status}){words}"))
        }
    }
}

/// Answers one question on standard input.
///
/// # Errors
/// If there is no question, or the process that asked is gone.
pub(crate) fn child() -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let question: Question = serde_json::from_str(&line).context("this command answers `remat-bench zoo`")?;
    die_with(question.parent)?;
    take_no_more_than(question.settings.memory_bytes)?;
    let host = Host {
        library: question.library.clone(),
        version: question.settings.runtime.clone(),
        child: ChildCommand {
            program: std::env::current_exe()?,
            arguments: vec![crate::ort::CHILD.into()],
        },
    };
    let answer = match &question.dims {
        None => serde_json::to_string(&opened(&question, &host).map_err(|why| format!("{why:#}")))?,
        Some(dims) => serde_json::to_string(&deployed(&question, &host, dims).map_err(|why| format!("{why:#}")))?,
    };
    crate::console::print(&format!("{ANSWER}{answer}\n"));
    Ok(())
}

/// Lets this process, and each that it starts, have no more memory of its own than that; does nothing on systems other than Linux.
fn take_no_more_than(bytes: u64) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        setrlimit(Resource::Data, limit)?;
    }
    let _ = bytes;
    Ok(())
}

fn opened(question: &Question, host: &Host) -> anyhow::Result<Opened> {
    let started = Instant::now();
    let dims = question.settings.dims.choose(open_model(&question.model)?.graph());
    let load = LoadOptions {
        dims: dims.clone(),
        ..LoadOptions::default()
    };
    let model = remat_onnxruntime_deploy::open_model(&question.model, &load, Some((host, ChildLimits::default())))?;
    Ok(Opened {
        dims,
        ops: model.problem().ops.len(),
        measured_sizes: model.measured_sizes().len(),
        ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

fn deployed(question: &Question, host: &Host, dims: &BTreeMap<String, u64>) -> anyhow::Result<Deployed> {
    let started = Instant::now();
    let load = LoadOptions {
        dims: dims.clone(),
        ..LoadOptions::default()
    };
    let folder = std::env::temp_dir();
    let output = folder.join(question.model.file_name().unwrap_or_default());
    let budget: BudgetSpec = question.settings.budget.parse()?;
    let solve = SolveRequest {
        budget,
        max_overhead: None,
        solver: "auto".to_owned(),
    };
    let request = DeployRequest {
        expected: EXPECTED,
        ..DeployRequest::new(&question.model, Some(&output), &load, &solve)
    };
    let control = SolveControl::new()
        .time_limit(Duration::from_millis(question.settings.time_ms))
        .threads(1);
    let deployment = remat_onnxruntime_deploy::deploy(&request, Some(host), &control)?;
    Ok(Deployed::of(&deployment, started.elapsed()))
}
