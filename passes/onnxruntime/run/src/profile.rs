//! What each node of a model takes: the runtime's own profile of a few warm runs.

use std::path::Path;

use remat_files::ScratchFolder;
use serde::{Deserialize, Serialize};

use crate::events::{Event, ProfiledNode, read};
use crate::inputs::{InputTensor, StoredTensor};
use crate::runner::{Runner, Task};
use crate::session::Loaded;
use crate::time::median;
use crate::{Runtime, RuntimeError, SessionSettings};

/// On what a model is profiled.
#[derive(Clone, PartialEq, Debug)]
pub enum ProfileInputs {
    /// Made from a seed, as everywhere.
    Seeded(u64),
    /// Given; inputs that are left out are made from seed 0.
    Given(Vec<InputTensor>),
}

/// How a model is profiled.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileOptions {
    /// Warm runs after the first, whose times do not count; at least one is done.
    pub runs: u32,
    /// The inputs.
    pub inputs: ProfileInputs,
}

impl Default for ProfileOptions {
    /// Ten warm runs on inputs of seed 0.
    fn default() -> Self {
        Self {
            runs: 10,
            inputs: ProfileInputs::Seeded(0),
        }
    }
}

/// A model's nodes in the order in which they ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunProfile {
    /// Version of the runtime.
    pub runtime: String,
    /// The nodes.
    pub nodes: Vec<ProfiledNode>,
    /// Median of a whole warm run, in nanoseconds.
    pub run_ns: u64,
}

/// Runs a model in a process of its own and states what each of its nodes takes.
///
/// With [`OptimizationLevel::Off`](crate::OptimizationLevel::Off) the nodes are those of the file, except for what the runtime does at
/// every level: it drops casts that undo each other and puts the bodies of functions in place of their calls. Times hold under the
/// profiler, which takes about a microsecond per node.
///
/// # Errors
/// [`RuntimeError`] if the runtime refuses the model, an input cannot be filled, a kernel fails, or the runtime's profile is of an unknown
/// form; [`RuntimeError::Child`] if the process ends without an answer.
pub fn profile(
    runner: &Runner<'_>,
    model: &Path,
    settings: &SessionSettings,
    options: &ProfileOptions,
) -> Result<RunProfile, RuntimeError> {
    let folder = ScratchFolder::new("profile-").map_err(|error| unreadable(model, error.to_string()))?;
    let (seed, given) = match &options.inputs {
        ProfileInputs::Seeded(seed) => (*seed, &[][..]),
        ProfileInputs::Given(tensors) => (0, &tensors[..]),
    };
    let store = |(index, tensor): (usize, &InputTensor)| {
        let file = folder.path().join(index.to_string());
        let stored = tensor.store(file);
        stored.map_err(|error| unreadable(model, error.to_string()))
    };
    let task = Task::Profile {
        model: model.to_owned(),
        runs: options.runs,
        seed,
        given: given.iter().enumerate().map(store).collect::<Result<_, _>>()?,
    };
    runner.ask(settings, task)
}

fn unreadable(model: &Path, why: String) -> RuntimeError {
    RuntimeError::Profile {
        model: model.to_owned(),
        why,
    }
}

/// The child's part of [`profile`]: runs on the stored tensors, other inputs are made from the seed.
pub(crate) fn profile_here(
    runtime: &Runtime,
    model: &Path,
    settings: &SessionSettings,
    runs: u32,
    seed: u64,
    given: &[StoredTensor],
) -> Result<RunProfile, RuntimeError> {
    let folder = ScratchFolder::new("profile-").map_err(|error| unreadable(model, error.to_string()))?;
    let session = runtime
        .builder(model, settings)?
        .with_profiling(folder.path().join("profile"))
        .map_err(|error| unreadable(model, error.to_string()))?
        .commit_from_file(model);
    let session = session.map_err(|error| RuntimeError::Load {
        model: model.to_owned(),
        why: error.to_string(),
    })?;
    let mut loaded = Loaded::new(session, model, settings);
    let given: Vec<InputTensor> = given
        .iter()
        .map(StoredTensor::load)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(model, error.to_string()))?;
    let feed = loaded.feed(&given, seed)?;
    for _ in 0..=runs.max(1) {
        loaded.run(&feed)?;
    }
    let written = loaded.session.end_profiling();
    let written = written.map_err(|error| unreadable(model, error.to_string()))?;
    let text = std::fs::read_to_string(&written).map_err(|error| unreadable(model, error.to_string()))?;
    let events = read(&text).map_err(|why| unreadable(model, why))?;
    summary(&events, runtime.version()).map_err(|why| unreadable(model, why))
}

/// One run: its time and the nodes of the main graph.
struct Run<'e> {
    microseconds: u64,
    nodes: Vec<&'e Event>,
}

fn summary(events: &[Event], version: &str) -> Result<RunProfile, String> {
    let mut runs = runs(events);
    if runs.len() < 2 {
        return Err(format!("it holds {} runs", runs.len()));
    }
    // The first run is cold. Where two events fell into the same microsecond, a node may have been taken for part of another one: such
    // runs have fewer nodes.
    runs.remove(0);
    let most = runs.iter().map(|run| run.nodes.len()).max().unwrap_or(0);
    runs.retain(|run| run.nodes.len() == most);
    let keys = |run: &Run<'_>| -> Vec<usize> { run.nodes.iter().map(|node| node.node_index()).collect() };
    let order = keys(&runs[0]);
    runs.retain(|run| keys(run) == order);
    let nodes = (0..most).map(|place| {
        let mut times: Vec<u64> = runs.iter().map(|run| run.nodes[place].nanoseconds()).collect();
        runs[0].nodes[place].node(median(&mut times))
    });
    let mut times: Vec<u64> = runs.iter().map(|run| run.microseconds.saturating_mul(1000)).collect();
    Ok(RunProfile {
        runtime: version.to_owned(),
        nodes: nodes.collect::<Result<_, _>>()?,
        run_ns: median(&mut times),
    })
}

/// Splits the events into runs.
///
/// Events stand in the order in which they ended: the nodes of a subgraph before the event of the executor that ran them, this one before
/// the node that the subgraph belongs to, and the executor of the main graph before the run.
fn runs(events: &[Event]) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    let mut nodes: Vec<&Event> = Vec::new();
    for (place, event) in events.iter().enumerate() {
        if event.is_node() {
            nodes.push(event);
        } else if event.is_run() {
            let microseconds = event.dur;
            let nodes = std::mem::take(&mut nodes);
            runs.push(Run { microseconds, nodes });
        } else if event.is_executor() && !events.get(place + 1).is_some_and(Event::is_run) {
            // The nodes that ran inside are part of the node that follows.
            nodes.retain(|node| node.ts < event.ts);
        }
    }
    runs
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
