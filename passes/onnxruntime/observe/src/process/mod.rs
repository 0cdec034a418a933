//! The loadable form of a model: a folder that a process loads with little more memory than its runs take.
//!
//! The runtime's optimizers have gone over the model, its weights lie in one file as kernels read them, and its memory is planned. It belongs to
//! one version of the runtime and to processors with the features of this one; beside it lies the portable model, for all others, on the same file of
//! weights.

mod ledgers;
mod limit;
mod manifest;
mod order;
mod processor;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use remat::ErrorKind;
use remat_files::ScratchFolder;
use remat_onnx::proto::{Message, ModelProto};
use remat_onnx::{LaidOut, LayOut, lay_out};
use remat_onnxruntime_arena::ArenaPlanFile;
use remat_onnxruntime_lower::out_of_branch;
use remat_onnxruntime_run::{
    ArenaLibrary, Host, LedgerOptions, OptimizationLevel, ProcessMeasured, Runner, SessionSettings, measure_process,
    optimize_and_pack,
};
use remat_solve::SolveControl;
use schemars::JsonSchema;
use serde::Serialize;

pub use ledgers::{Ledgers, Program, Promise, WeightBytes};
pub use limit::{ProcessLimit, ProcessWithin};
pub use manifest::MANIFEST;
use manifest::{Listed, Manifest};

use crate::error::ArenaPlanError;
use crate::plan::{
    ArenaPlanRequest, ArenaPlanned, arena_library_path, arena_plan_path, hash, plan_arena, scratch_folder, tell,
    unwritten,
};

/// Names of the files of a loadable form, beside the manifest.
const MODEL: &str = "model.onnx";
const WEIGHTS: &str = "weights.data";
/// The portable model, which is written there before the loadable form is made of it.
pub const PORTABLE: &str = "portable.onnx";

/// Runs of a process whose memory is measured, and of one whose time is, too.
const LEAST_RUNS: u32 = 3;
const RUNS: u32 = 10;

/// A loadable form that was written, and what its process takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProcessWritten {
    /// The folder.
    pub folder: PathBuf,
    /// What a process of the original takes in a default session, measured.
    pub original: Ledgers,
    /// What a process of the loadable form is predicted to take.
    pub predicted: Ledgers,
    /// What it was measured to take.
    pub measured: Ledgers,
    /// What is promised, for each program.
    pub promises: Vec<Promise>,
    /// Time of a run of the loadable form, as a multiple of that of the original.
    pub time_ratio: f64,
    /// Bytes of weights that lie there a second time, plain: the runtime packs each weight again when it loads the file, and takes the packed bytes
    /// only where both are equal.
    pub plain_copies_bytes: u64,
    /// So many bytes of the weights stay in memory between and in runs, where a limit has no room for all: the library reads the others ahead and
    /// drops them. Absent where all stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_weights_bytes: Option<u64>,
    /// The plan of the memory of its runs; absent where they follow none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arena_plan: Option<ArenaPlanned>,
    /// Why they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_arena_plan: Option<String>,
}

/// What a loadable form is made of.
#[derive(Clone, Debug)]
pub struct ProcessRequest<'a> {
    /// The portable model ([`PORTABLE`]), the model that it was made of, and what runs of it are like.
    pub plan: ArenaPlanRequest<'a>,
    /// Where the weights of the original lie.
    pub original_weights: WeightBytes,
    /// Files of weights that the original maps.
    pub original_data: BTreeSet<PathBuf>,
    /// The limit of the whole process, if it has one.
    pub limit: Option<ProcessLimit>,
}

impl ProcessWritten {
    /// The folder was moved.
    pub fn moved_to(&mut self, folder: &Path) {
        let model = folder.join(MODEL);
        if let Some(plan) = &mut self.arena_plan {
            plan.file = arena_plan_path(&model);
            plan.library = arena_library_path(&model);
        }
        self.folder = folder.to_owned();
    }
}

/// Makes the loadable form in the folder of the portable model, which is there already, with its plan of memory if it has one.
///
/// # Errors
/// [`ArenaPlanError`]: as [`plan_arena`]; the folder is incomplete then.
pub fn write_process(
    request: &ProcessRequest<'_>,
    host: &Host,
    control: &SolveControl<'_>,
) -> Result<ProcessWritten, ArenaPlanError> {
    let (wanted, request) = (request, &request.plan);
    let folder = request.model.parent().unwrap_or(Path::new("."));
    let scratch = scratch_folder()?;
    let laid_out = lay_out_models(request, host, control, (folder, &scratch))?;
    let model = folder.join(MODEL);
    let planned = plan_arena(
        &ArenaPlanRequest {
            model: &model,
            level: OptimizationLevel::Off,
            original_level: request.level,
            mapped_bytes: laid_out.packed_bytes + laid_out.plain_bytes,
            weights: Some(&folder.join(WEIGHTS)),
            library: None,
            ..request.clone()
        },
        host,
        control,
    );
    let planned = planned.and_then(|planned| planned.exceeded().map_or(Ok(planned), Err));
    let (planned, why) = match planned {
        Ok(planned) => (Some(planned), None),
        Err(error) if error.kind() == ErrorKind::Internal => return Err(error),
        Err(error) => {
            // What was not followed is not left behind.
            let _ = std::fs::remove_file(arena_plan_path(&model));
            (None, Some(error.to_string()))
        }
    };
    tell(control, "the whole process is measured");
    let (original, ours) = measured(wanted, (&model, planned.is_some()), host)?;
    if let Some(output) = ours.first_difference(&original).filter(|_| request.keeps_bits) {
        let (output, dims) = (output.to_owned(), request.dims.clone());
        return Err(ArenaPlanError::OutputDiffers { output, dims });
    }
    let run = planned.as_ref().map_or(ours.run, |planned| {
        planned.measured.block_bytes + planned.measured.outside_bytes
    });
    let weights = WeightBytes::from(&laid_out);
    let run = (run.saturating_sub(ours.outputs), ours.outputs);
    let predicted = Ledgers::predicted(laid_out.nodes as u64, weights, run);
    let measured = Ledgers::measured(&ours, weights);
    let promised = measured.promised(&predicted);
    let streams = planned.as_ref().is_some_and(|planned| planned.weight_uses > 0);
    let limit = wanted.limit.filter(|_| streams);
    let found = ProcessWritten {
        folder: folder.to_owned(),
        original: Ledgers::measured(&original, wanted.original_weights),
        predicted,
        measured,
        promises: Program::ALL.map(|program| promised.promise(program)).to_vec(),
        time_ratio: ours.median_ns as f64 / original.median_ns.max(1) as f64,
        plain_copies_bytes: laid_out.loading_bytes,
        resident_weights_bytes: limit.and_then(|limit| limit.resident_weights(&promised)),
        arena_plan: planned,
        no_arena_plan: why,
    };
    write_manifest(request, host, folder, &found)?;
    Ok(found)
}

/// Optimizes and packs the portable model, and lays out the weights of both.
fn lay_out_models(
    request: &ArenaPlanRequest<'_>,
    host: &Host,
    control: &SolveControl<'_>,
    (folder, scratch): (&Path, &ScratchFolder),
) -> Result<LaidOut, ArenaPlanError> {
    tell(control, "weights are packed");
    let packed = scratch.path().join(MODEL);
    let runner = host.runner(request.limits);
    optimize_and_pack(&runner, request.model, request.level, &packed)?;
    arrange(&packed)?;
    let portable = scratch.path().join(PORTABLE);
    let models = [
        LayOut {
            source: &packed,
            out: &folder.join(MODEL),
            is_reversed: true,
            is_spare: false,
        },
        LayOut {
            source: request.model,
            out: &portable,
            is_reversed: false,
            is_spare: true,
        },
    ];
    let laid_out = lay_out(&models, &folder.join(WEIGHTS)).map_err(remat::Error::from)?;
    let moved = std::fs::read(&portable).and_then(|bytes| remat_files::write(request.model, bytes));
    moved.map_err(|error| unwritten(request.model, &error))?;
    remove_old_data(request.model)?;
    // The plan of the portable model names the file that it is for.
    let plan = arena_plan_path(request.model);
    if let Ok(text) = std::fs::read_to_string(&plan) {
        let parsed = ArenaPlanFile::parse(&text).map_err(|error| ArenaPlanError::File {
            path: plan.clone(),
            why: error.to_string(),
        })?;
        let renamed = ArenaPlanFile {
            model: hash(request.model)?,
            ..parsed
        };
        remat_files::write(&plan, renamed.to_string()).map_err(|error| unwritten(&plan, &error))?;
    }
    Ok(laid_out.into_iter().next().unwrap_or_default())
}

/// Removes the files in which the portable model had its weights: all are in the new one.
fn remove_old_data(portable: &Path) -> Result<(), ArenaPlanError> {
    let folder = portable.parent().unwrap_or(Path::new("."));
    let kept = [
        portable.to_owned(),
        arena_plan_path(portable),
        arena_library_path(portable),
        folder.join(WEIGHTS),
        folder.join(MODEL),
    ];
    let entries = std::fs::read_dir(folder).map_err(|error| unwritten(folder, &error))?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !kept.contains(&path) {
            std::fs::remove_file(&path).map_err(|error| unwritten(&path, &error))?;
        }
    }
    Ok(())
}

/// Has the runtime run a saved model as it did before, and takes it out of a branch, which keeps a stock session from a block of its own: sessions that
/// follow a plan have none.
fn arrange(path: &Path) -> Result<(), ArenaPlanError> {
    let failed = |why: String| ArenaPlanError::File {
        path: path.to_owned(),
        why,
    };
    let bytes = std::fs::read(path).map_err(|error| unwritten(path, &error))?;
    let mut model = ModelProto::parse_from_bytes(&bytes).map_err(|error| failed(error.to_string()))?;
    out_of_branch(&mut model);
    model.graph.as_mut().into_iter().for_each(order::keep_order);
    let bytes = model.write_to_bytes().map_err(|error| failed(error.to_string()))?;
    remat_files::write(path, bytes).map_err(|error| unwritten(path, &error))
}

/// What a process of a model takes in a session of these settings, measured in one.
///
/// # Errors
/// [`ArenaPlanError::Runtime`] if the model does not run, or the system does not tell.
pub fn measured_ledgers(
    runner: &Runner<'_>,
    model: &Path,
    settings: &SessionSettings,
    (weights, data): (WeightBytes, &BTreeSet<PathBuf>),
) -> Result<Ledgers, ArenaPlanError> {
    let options = LedgerOptions {
        runs: LEAST_RUNS,
        data: data.clone(),
    };
    Ok(Ledgers::measured(
        &measure_process(runner, model, settings, &options)?,
        weights,
    ))
}

/// A process of the original, and one of the loadable form.
fn measured(
    wanted: &ProcessRequest<'_>,
    (model, is_planned): (&Path, bool),
    host: &Host,
) -> Result<(ProcessMeasured, ProcessMeasured), ArenaPlanError> {
    let request = &wanted.plan;
    let runner = host.runner(request.limits);
    let stock = SessionSettings {
        level: request.level,
        dims: request.dims.clone(),
        ..SessionSettings::stock()
    };
    let mut options = LedgerOptions {
        runs: RUNS,
        data: wanted.original_data.clone(),
    };
    let original = measure_process(&runner, request.original, &stock, &options)?;
    let absolute = |path: PathBuf| std::path::absolute(&path).map_err(|error| unwritten(&path, &error));
    let library = is_planned.then(|| -> Result<ArenaLibrary, ArenaPlanError> {
        Ok(ArenaLibrary {
            library: absolute(arena_library_path(model))?,
            plan: Some(absolute(arena_plan_path(model))?),
            keeps_pattern: false,
        })
    });
    let settings = SessionSettings {
        level: OptimizationLevel::Off,
        arena_library: library.transpose()?,
        ..stock
    };
    let weights = model.with_file_name(WEIGHTS);
    options.data = BTreeSet::from([weights.canonicalize().map_err(|error| unwritten(&weights, &error))?]);
    Ok((original, measure_process(&runner, model, &settings, &options)?))
}

fn write_manifest(
    request: &ArenaPlanRequest<'_>,
    host: &Host,
    folder: &Path,
    found: &ProcessWritten,
) -> Result<(), ArenaPlanError> {
    let processor = processor::this().ok_or_else(|| ArenaPlanError::File {
        path: "/proc/cpuinfo".into(),
        why: "it does not say which processor this is".to_owned(),
    })?;
    let model = folder.join(MODEL);
    let others = [
        folder.join(WEIGHTS),
        arena_plan_path(&model),
        arena_plan_path(request.model),
        arena_library_path(&model),
    ];
    let files: Result<Vec<Listed>, ArenaPlanError> = others
        .iter()
        .filter(|path| path.exists())
        .map(|path| Listed::of(path))
        .collect();
    let manifest = Manifest {
        runtime: host.version.clone(),
        processor,
        model: Listed::of(&model)?,
        level: "off",
        portable: Listed::of(request.model)?,
        portable_level: request.level.to_string(),
        files: files?,
        resident: found.resident_weights_bytes,
        promises: found.promises.clone(),
    };
    let path = folder.join(MANIFEST);
    remat_files::write(&path, manifest.to_string()).map_err(|error| unwritten(&path, &error))
}
