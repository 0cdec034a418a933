//! A plan of the memory of a file: the buffers of a run are recorded, placed in one block, and replayed in a session that has nothing but
//! what a user sets.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use remat_files::ScratchFolder;
use remat_onnxruntime_arena::{ArenaPlan, ArenaPlanFile, LIBRARY, MOST_FILE_BYTES};
use remat_onnxruntime_run::{
    ArenaLibrary, ChildLimits, Host, MeasureOptions, Measurement, OptimizationLevel, Peaks, Recording, Runner,
    RuntimeError, SessionSettings, measure, record,
};
use remat_solve::{Activity, Doing, SolveControl};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ArenaPlanError;

mod offsets;

use offsets::plans;

/// Runs after the first that are measured.
const LATER_RUNS: u32 = 2;
/// Seed of the inputs.
const SEED: u64 = 0;
/// The name of the library's file.
pub(crate) const LIBRARY_NAME: &str = "libremat_arena.so";

/// What memory is planned for.
#[derive(Clone, Debug)]
pub struct ArenaPlanRequest<'a> {
    /// The file that sessions load.
    pub model: &'a Path,
    /// The model that the file was made of, whose bits it must have in each of the cases; absent where sums may be rounded otherwise.
    pub original: Option<&'a Path>,
    /// Where the library goes; beside the model if it is not said.
    pub library: Option<&'a Path>,
    /// The level of the sessions.
    pub level: OptimizationLevel,
    /// The settings that there will be sessions and runs with, at least one: values of symbolic dimensions, and threads within a node.
    pub cases: &'a [ArenaCase],
    /// Limits of each process that runs the model.
    pub limits: ChildLimits<'a>,
}

/// Settings of sessions and runs that need a plan of their own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ArenaCase {
    /// Values of symbolic dimensions.
    pub dims: BTreeMap<String, u64>,
    /// Threads within one node (`intra_op_num_threads`).
    pub threads: usize,
}

/// A plan that was written, and what was measured of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArenaPlanned {
    /// The plans (`remat.arena.plan`).
    pub file: PathBuf,
    /// The library (`register_custom_ops_library`).
    pub library: PathBuf,
    /// Size of the largest block in bytes.
    pub block_bytes: u64,
    /// Most bytes of the heap that a run takes beside its block.
    pub outside_bytes: u64,
    /// Most bytes of files that a run reads into memory, the code of kernels for the most part, as measured without a plan.
    pub code_bytes: u64,
    /// Growth of resident memory in the first run at most, where the system says it.
    pub resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub resident_later_bytes: Option<u64>,
    /// What holds in each of the settings.
    pub cases: Vec<ArenaCaseReport>,
}

/// What holds in some settings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArenaCaseReport {
    /// The settings.
    #[serde(flatten)]
    pub case: ArenaCase,
    /// Buffers of a run.
    pub buffers: usize,
    /// Most bytes that the buffers need at one time: no block is smaller.
    pub load_bytes: u64,
    /// Size of the block in bytes.
    pub block_bytes: u64,
    /// Most bytes of the heap that a run takes beside it.
    pub outside_bytes: u64,
    /// Bytes of files that a run reads into memory, the code of kernels for the most part, as measured without a plan.
    pub code_bytes: u64,
    /// Growth of resident memory in the first run, where the system says it.
    pub resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub resident_later_bytes: Option<u64>,
}

/// Share of the predicted growth of a process, as a divisor, and bytes that the measured one may lie above it.
const TOLERANCE_SHARE: u64 = 50;
const TOLERANCE_BYTES: u64 = 1 << 20;

impl ArenaPlanned {
    /// The first growth of the process that was measured to be larger than predicted, which is the block, what runs take outside of it,
    /// and the code of kernels.
    #[must_use]
    pub fn exceeded(&self) -> Option<ArenaPlanError> {
        let exceeded = |case: &ArenaCaseReport| {
            let predicted = case.block_bytes + case.outside_bytes + case.code_bytes;
            let most = predicted + predicted / TOLERANCE_SHARE + TOLERANCE_BYTES;
            let runs = [
                (case.resident_first_bytes, "first"),
                (case.resident_later_bytes, "later"),
            ];
            runs.into_iter().find_map(|(measured, runs)| {
                let measured = measured.filter(|&measured| measured > most)?;
                Some(ArenaPlanError::Grows {
                    predicted,
                    measured,
                    runs,
                })
            })
        };
        self.cases.iter().find_map(exceeded)
    }
}

/// How many more sessions are recorded to find out why one did not follow its plan.
const OTHER_SESSIONS: usize = 3;

/// Where the plans of a model file lie.
#[must_use]
pub fn arena_plan_path(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".arena");
    name.into()
}

/// Where the library lies if nothing else is said.
#[must_use]
pub fn arena_library_path(model: &Path) -> PathBuf {
    model.with_file_name(LIBRARY_NAME)
}

/// Plans the memory of a file that is written already, and writes plans and library beside it.
///
/// A run of each case is recorded, its buffers are placed, and the file runs with the plans: every buffer has to lie where it is planned, and
/// the outputs have to have the bits that they have without plans, and those of the original. Of `control` count the seed, the observer, the
/// flag to cancel, and the deadline for placing: the runs themselves are what they are.
///
/// # Errors
/// [`ArenaPlanError::NotFollowed`] if a run does not follow its plan, [`ArenaPlanError::NoLibrary`] if this program has no library,
/// [`ArenaPlanError::Runtime`] if the model does not run.
pub fn plan_arena(
    request: &ArenaPlanRequest<'_>,
    host: &Host,
    control: &SolveControl<'_>,
) -> Result<ArenaPlanned, ArenaPlanError> {
    let content = LIBRARY.ok_or(ArenaPlanError::NoLibrary)?;
    let library = request
        .library
        .map_or_else(|| arena_library_path(request.model), Path::to_owned);
    // Where it is in use already, it stays.
    if std::fs::read(&library).ok().as_deref() != Some(content) {
        remat_files::write(&library, content).map_err(|error| unwritten(&library, &error))?;
    }
    let library = std::path::absolute(&library).map_err(|error| unwritten(&library, &error))?;
    let runner = host.runner(request.limits);
    let record = |case: &ArenaCase| {
        tell(control, "a run is recorded");
        let recording = record(&runner, request.model, &request.settings(case, &library, None))?;
        Ok((case.threads, recording))
    };
    let recorded: Result<Vec<(usize, Recording)>, RuntimeError> = request.cases.iter().map(record).collect();
    tell(control, "the buffers are placed");
    let plans = plans(&recorded?, control)?;
    let mut file = ArenaPlanFile {
        model: hash(request.model)?,
        runtime: host.version.clone(),
        level: request.level.to_string(),
        plans: Vec::new(),
    };
    for plan in plans.iter().flatten() {
        // The first run differs from later ones where kernels set something up.
        if !file.plans.contains(plan) {
            file.plans.push(plan.clone());
        }
    }
    let scratch = scratch_folder()?;
    let tried = scratch.path().join("plans.arena");
    let text = file.to_string();
    let bytes = text.len() as u64;
    if bytes > MOST_FILE_BYTES {
        return Err(ArenaPlanError::TooLarge {
            bytes,
            most: MOST_FILE_BYTES,
        });
    }
    remat_files::write(&tried, &text).map_err(|error| unwritten(&tried, &error))?;
    let mut cases = Vec::new();
    // The last run counts.
    let lasting = request
        .cases
        .iter()
        .zip(&plans)
        .filter_map(|(case, plans)| Some((case, plans.last()?)));
    for (case, plan) in lasting {
        tell(control, "the plan is replayed");
        let measured = replay(request, case, &library, &tried, &runner).map_err(|error| match error {
            ArenaPlanError::NotFollowed { .. } if is_other_each_time(request, case, &library, &runner, plan) => {
                ArenaPlanError::OtherOrder
            }
            error => error,
        })?;
        let (measured, code_bytes) = measured;
        cases.push(report(case, plan, &measured, code_bytes));
    }
    let path = arena_plan_path(request.model);
    remat_files::write(&path, &text).map_err(|error| unwritten(&path, &error))?;
    let most = |bytes: fn(&ArenaCaseReport) -> Option<u64>| cases.iter().filter_map(bytes).max();
    Ok(ArenaPlanned {
        block_bytes: most(|case| Some(case.block_bytes)).unwrap_or(0),
        outside_bytes: most(|case| Some(case.outside_bytes)).unwrap_or(0),
        code_bytes: most(|case| Some(case.code_bytes)).unwrap_or(0),
        resident_first_bytes: most(|case| case.resident_first_bytes),
        resident_later_bytes: most(|case| case.resident_later_bytes),
        file: path,
        library,
        cases,
    })
}

impl ArenaPlanRequest<'_> {
    /// What a user sets, beside the number of threads.
    fn settings(&self, case: &ArenaCase, library: &Path, plan: Option<&Path>) -> SessionSettings {
        SessionSettings {
            arena_library: Some(ArenaLibrary {
                library: library.to_owned(),
                plan: plan.map(Path::to_owned),
                keeps_pattern: false,
            }),
            ..self.without_library(case, SessionSettings::stock())
        }
    }

    fn without_library(&self, case: &ArenaCase, settings: SessionSettings) -> SessionSettings {
        SessionSettings {
            level: self.level,
            dims: case.dims.clone(),
            threads: case.threads,
            ..settings
        }
    }
}

/// Whether a session that is loaded anew allocates other buffers than those of `plan`, which one before it allocated.
fn is_other_each_time(
    request: &ArenaPlanRequest<'_>,
    case: &ArenaCase,
    library: &Path,
    runner: &Runner<'_>,
    plan: &ArenaPlan,
) -> bool {
    let planned = || plan.buffers.iter().map(|buffer| (buffer.bytes, buffer.first));
    let sessions = (0..OTHER_SESSIONS).filter_map(|_| {
        let settings = request.settings(case, library, None);
        record(runner, request.model, &settings).ok()
    });
    sessions.into_iter().any(|recorded| {
        let last = recorded.runs.last();
        last.is_some_and(|run| {
            !run.buffers
                .iter()
                .map(|buffer| (buffer.bytes, buffer.first))
                .eq(planned())
        })
    })
}

/// Runs the file with the plans, and checks that it follows them and computes what it computes without them. How many bytes of code it reads
/// without them comes with that.
fn replay(
    request: &ArenaPlanRequest<'_>,
    case: &ArenaCase,
    library: &Path,
    plan: &Path,
    runner: &Runner<'_>,
) -> Result<(Measurement, u64), ArenaPlanError> {
    let options = MeasureOptions {
        runs: LATER_RUNS,
        seeds: vec![SEED],
        time: None,
    };
    let exact = request.without_library(case, SessionSettings::exact(request.level));
    let without = measure(runner, request.model, &exact, &options)?;
    let measured = measure(
        runner,
        request.model,
        &request.settings(case, library, Some(plan)),
        &options,
    )?;
    if let Some((_, output)) = without.first_difference(&measured) {
        return Err(ArenaPlanError::OutputDiffers(output.to_owned()));
    }
    if let Some(original) = request.original {
        let bits = MeasureOptions {
            runs: 1,
            time: Some(Duration::ZERO),
            ..options
        };
        let original = measure(runner, original, &exact, &bits)?;
        if let Some((_, output)) = original.first_difference(&measured) {
            let (dims, threads) = (case.dims.clone(), case.threads);
            let output = output.to_owned();
            return Err(ArenaPlanError::NotAsOriginal { output, dims, threads });
        }
    }
    match measured.planned {
        Some(figures) if figures.missed == 0 && figures.refused == 0 && figures.placed > 0 => {
            let code_bytes = without.resident.map_or(0, |resident| resident.files);
            Ok((measured, code_bytes))
        }
        figures => Err(ArenaPlanError::NotFollowed {
            missed: figures.map_or(0, |figures| figures.missed),
            refused: figures.map_or(0, |figures| figures.refused),
            placed: figures.map_or(0, |figures| figures.placed),
        }),
    }
}

fn report(case: &ArenaCase, plan: &ArenaPlan, measured: &Measurement, code_bytes: u64) -> ArenaCaseReport {
    let most = |peaks: &Peaks| peaks.first.max(peaks.steady.unwrap_or(0));
    ArenaCaseReport {
        case: case.clone(),
        buffers: plan.buffers.len(),
        load_bytes: plan.load(),
        block_bytes: plan.block_bytes,
        outside_bytes: measured.peaks.as_ref().map_or(0, most),
        code_bytes,
        resident_first_bytes: measured.resident.map(|resident| resident.first),
        resident_later_bytes: measured.resident.and_then(|resident| resident.later),
    }
}

pub(crate) fn tell(control: &SolveControl<'_>, what: &str) {
    if let Some(observer) = control.observer {
        observer.begins(&Doing::new(Activity::Measure, what));
    }
}

/// The hash of a file.
fn hash(path: &Path) -> Result<String, ArenaPlanError> {
    let read = || -> std::io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(hasher.finalize())
    };
    let hash = read().map_err(|error| ArenaPlanError::File {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    Ok(format!("blake3:{}", hash.to_hex()))
}

pub(crate) fn unwritten(path: &Path, error: &std::io::Error) -> ArenaPlanError {
    ArenaPlanError::File {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// A folder for files on the way, which goes with the value.
pub(crate) fn scratch_folder() -> Result<ScratchFolder, ArenaPlanError> {
    ScratchFolder::new("memory-").map_err(|error| unwritten("a temporary folder".as_ref(), &error))
}
