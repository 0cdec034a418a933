//! The model that the runtime runs in place of another: saved after its optimizers went over it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use ort::session::Session;
use ort::session::builder::SessionBuilder;
use remat_files::OutputFile;

use crate::runner::{Form, Runner, Task};
use crate::{OptimizationLevel, Runtime, RuntimeError, SessionSettings};

/// Config keys of the runtime (`onnxruntime_session_options_config_keys.h`).
const DATA_FILE: &str = "session.optimized_model_external_initializers_file_name";
const DATA_FILE_FROM: &str = "session.optimized_model_external_initializers_min_size_in_bytes";

const SAVE_PACKED: &str = "session.save_external_prepacked_constant_initializers";
const DISABLED: &str = "optimization.disable_specified_optimizers";

/// What lays images out in blocks of channels.
const BLOCKS: &str = "NchwcTransformer";

/// Weights smaller than this stay in the model where there is a data file.
const INLINE_BYTES: usize = 1024;

/// Writes `model` to `out` as the runtime's optimizers of `level` leave it. Names of inputs and outputs are the same; fused nodes
/// have new names. From level `All` on the result belongs to processors of this machine's kind. The work is done in a process of its
/// own, which a model that makes the runtime crash takes along.
///
/// Weights stay where they are if they lie outside the model and `out` lies beside it. Otherwise they are written into `out`, or,
/// where they lay outside the model or there are more than 2 GB of them, into a data file beside it that is called as `out` with
/// `.data` appended, in place of a file that is called so. `out` appears whole or not at all. The result is loaded once before it is returned.
///
/// # Errors
/// [`RuntimeError::Load`] if the runtime refuses the model, [`RuntimeError::Save`] if it cannot write the result or does not load what it
/// wrote, [`RuntimeError::Child`] if it crashes.
pub fn optimize(runner: &Runner<'_>, model: &Path, level: OptimizationLevel, out: &Path) -> Result<(), RuntimeError> {
    saved(runner, model, level, (out, Form::AsItRuns))
}

/// The same, with all weights in the data file, and beside them what kernels make of them when a session is loaded: sessions that do not optimize
/// map that. It belongs to processors of this machine's kind whatever the level.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_and_pack(
    runner: &Runner<'_>,
    model: &Path,
    level: OptimizationLevel,
    out: &Path,
) -> Result<(), RuntimeError> {
    saved(runner, model, level, (out, Form::Packed))
}

/// [`optimize`] at level `All`, but for images: they are not laid out in blocks of channels.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_without_blocks(runner: &Runner<'_>, model: &Path, out: &Path) -> Result<(), RuntimeError> {
    saved(runner, model, OptimizationLevel::All, (out, Form::WithoutBlocks))
}

fn saved(
    runner: &Runner<'_>,
    model: &Path,
    level: OptimizationLevel,
    (out, form): (&Path, Form),
) -> Result<(), RuntimeError> {
    let task = Task::Optimize {
        model: model.to_owned(),
        out: out.to_owned(),
        form,
    };
    runner.ask(&SessionSettings::exact(level), task)
}

/// The child's part of [`optimize`].
pub(crate) fn optimize_here(
    runtime: &Runtime,
    model: &Path,
    level: OptimizationLevel,
    (out, form): (&Path, Form),
) -> Result<(), RuntimeError> {
    let failed = |why: String| RuntimeError::Save {
        model: model.to_owned(),
        out: out.to_owned(),
        why,
    };
    let same = |a: &Path, b: &Path| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    if same(model, out) {
        return Err(failed("it would overwrite the model itself".to_owned()));
    }
    let settings = SessionSettings::exact(level);
    let is_beside = same(folder(model), folder(out));
    let has_data = has_external_data(model).map_err(|error| RuntimeError::Load {
        model: model.to_owned(),
        why: error.to_string(),
    })?;
    let file = OutputFile::create(out).map_err(|error| failed(error.to_string()))?;
    let saving = Saving {
        runtime,
        model,
        settings: &settings,
        temporary: file.temporary_path(),
        data: with_suffix(out, ".data"),
        form,
    };
    if form == Form::Packed || has_data && !is_beside {
        saving.save(true)?;
    } else {
        // A model of more than 2 GB is more than a protobuf message can hold.
        saving.save(false).or_else(|_| saving.save(true))?;
    }
    file.commit().map_err(|error| failed(error.to_string()))?;
    loads(runtime, out).map_err(|why| failed(format!("it does not load what it wrote: {why}")))
}

/// Loads a model without its optimizers.
fn loads(runtime: &Runtime, model: &Path) -> Result<(), String> {
    let builder = runtime.builder(model, &SessionSettings::exact(OptimizationLevel::Off));
    let mut builder = without_reuse(builder.map_err(|error| error.to_string())?)?;
    let session = builder.commit_from_file(model);
    session.map(drop).map_err(|error| error.to_string())
}

/// Two nodes may run at one time: then the runtime does not look which buffers could be used again, which takes seconds where there are thousands, and
/// these sessions run nothing.
fn without_reuse(builder: SessionBuilder) -> Result<SessionBuilder, String> {
    let text = |error: ort::Error<SessionBuilder>| error.to_string();
    let builder = builder.with_parallel_execution(true).map_err(text)?;
    builder.with_inter_threads(2).map_err(text)
}

struct Saving<'a> {
    runtime: &'a Runtime,
    model: &'a Path,
    settings: &'a SessionSettings,
    temporary: &'a Path,
    data: PathBuf,
    form: Form,
}

impl Saving<'_> {
    /// Has the runtime write the temporary file, with weights in the data file or in the model itself.
    fn save(&self, outside: bool) -> Result<(), RuntimeError> {
        let load = |why: String| RuntimeError::Load {
            model: self.model.to_owned(),
            why,
        };
        let builder = self.runtime.builder(self.model, self.settings)?;
        self.session(builder, outside).map(drop).map_err(load)
    }

    fn session(&self, builder: SessionBuilder, outside: bool) -> Result<Session, String> {
        let text = |error: ort::Error<SessionBuilder>| error.to_string();
        let builder = without_reuse(builder)?;
        let mut builder = builder.with_optimized_model_path(self.temporary).map_err(text)?;
        if self.form == Form::WithoutBlocks {
            builder = builder.with_config_entry(DISABLED, BLOCKS).map_err(text)?;
        }
        if outside {
            // The runtime would append to it.
            match std::fs::remove_file(&self.data) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
                _ => {}
            }
            let name = self.data.file_name().unwrap_or_default().to_string_lossy();
            builder = builder.with_config_entry(DATA_FILE, name).map_err(text)?;
            let from = INLINE_BYTES.to_string();
            builder = builder.with_config_entry(DATA_FILE_FROM, from).map_err(text)?;
            if self.form == Form::Packed {
                builder = builder.with_config_entry(SAVE_PACKED, "1").map_err(text)?;
            }
        }
        builder.commit_from_file(self.model).map_err(|error| error.to_string())
    }
}

/// The path with something appended to its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether a model names data files: whether the key `location` of such an entry stands anywhere in it. A weight that happens to
/// hold these bytes only leads to a data file that was not needed.
fn has_external_data(model: &Path) -> std::io::Result<bool> {
    // Field 1 of a key-value entry, 8 bytes long.
    const KEY: &[u8] = b"\x0a\x08location";
    let mut file = File::open(model)?;
    let mut buffer = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let read = match file.read(&mut buffer[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = kept + read;
        if buffer[..end].windows(KEY.len()).any(|window| window == KEY) {
            return Ok(true);
        }
        // A key that straddles two reads.
        kept = end.min(KEY.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
}
