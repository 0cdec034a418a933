//! The process that the commands run in: the program `remat-opt`, or an interpreter that has loaded this library.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Context;
use remat_onnxruntime_run::ChildCommand;

/// What the commands have to know of a process that is not the program itself.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// The executable with which a process is started that runs models for a command.
    pub program: PathBuf,
    /// What makes that executable call [`run`](crate::run): arguments that stand before those of the command line.
    pub arguments: Vec<OsString>,
    /// The environments that this process has its packages from, the first first: libraries are looked for in their wheels.
    pub environments: Vec<PathBuf>,
}

static EMBEDDING: OnceLock<Embedding> = OnceLock::new();

/// The command line of this process, program first; none where commands are called.
static COMMAND_LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Tells the commands about this process, once. Without it they take it for the program.
pub fn embed(embedding: Embedding) {
    // Told again, it is the same process.
    _ = EMBEDDING.set(embedding);
}

/// How to start a process that answers to the hidden command `name`.
///
/// # Errors
/// If the program does not know where it lies.
pub(crate) fn child(name: &str) -> anyhow::Result<ChildCommand> {
    let (program, mut arguments) = match EMBEDDING.get() {
        Some(embedding) => (embedding.program.clone(), embedding.arguments.clone()),
        None => {
            let program = std::env::current_exe().context("cannot find the program's own file")?;
            (program, Vec::new())
        }
    };
    arguments.push(name.into());
    Ok(ChildCommand { program, arguments })
}

/// The environments that this process has its packages from.
pub(crate) fn environments() -> Vec<PathBuf> {
    EMBEDDING
        .get()
        .map_or_else(Vec::new, |embedding| embedding.environments.clone())
}

/// Says which command line this process runs.
pub(crate) fn set_command_line(arguments: &[OsString]) {
    _ = COMMAND_LINE.set(arguments.to_vec());
}

/// The command line of this process, where it runs one.
pub(crate) fn command_line() -> Option<Vec<OsString>> {
    COMMAND_LINE.get().cloned()
}
