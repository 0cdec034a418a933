//! A plan of the memory of a file: the buffers of runs are recorded at several shapes, their sizes become formulas, and they are placed in one
//! block; the file then runs with the plan in a session that has nothing but what a user sets.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use remat_files::ScratchFolder;
use remat_formula::{OpenDim, PeakBound, Ranges};
use remat_onnxruntime_arena::{ArenaPlanFile, LIBRARY, MOST_FILE_BYTES, Plans, THREADS};
use remat_onnxruntime_run::{
    ArenaFigures, ArenaLibrary, ChildLimits, CompareSizes, Host, MeasureOptions, OptimizationLevel, RecordOptions,
    Recorded, Recording, Runner, SessionSettings, SizeOutcome, Sizes, SizesCompared, available_bytes, compare_sizes,
    measure, needs_arena_library, record,
};
use remat_solve::{Activity, Doing, SolveControl};

use crate::error::ArenaPlanError;

mod cuda;
mod fit;
mod inferred;
mod orders;
mod planned;
mod requests;
mod samples;
mod weights;

pub use cuda::{CudaPlanRequest, CudaPlanned, plan_cuda};
use fit::{Recordings, plans};
pub use inferred::InferredSizes;
pub use orders::order_buffers;
pub use planned::{ArenaAt, ArenaMeasured, ArenaPlanned};
use samples::Samples;

/// Runs after the first that are measured.
const LATER_RUNS: u32 = 2;
/// Seed of the inputs.
const SEED: u64 = 0;
/// The name of the library's file.
pub(crate) const LIBRARY_NAME: &str = "libremat_arena.so";
/// The number of threads within a node with which runs are recorded besides one, and more of them where sizes depend on it.
const MANY_THREADS: u64 = 8;
const MORE_THREAD_COUNTS: [u64; 3] = [2, 4, 16];
/// The largest number of threads that is planned for, at least.
const MOST_THREADS: u64 = 64;
/// Shapes that are recorded however long they take.
const LEAST_SHAPES: usize = 8;
/// How many shapes are recorded with other numbers of threads.
const SMALL_SHAPES: usize = 4;
/// How often plans are made again for shapes that did not follow them.
const ROUNDS: usize = 3;
/// The most that a plan is for, where no range of sizes is stated: beyond, a block has no room among the addresses.
const MOST_UNSTATED_BYTES: u64 = 64 << 30;
/// How many more sessions are recorded to find out why one did not follow its plan.
const OTHER_SESSIONS: usize = 3;

/// Share of the block, as a divisor, that may lie outside of it where the order is another one each time.
const ELSEWHERE_SHARE: u64 = 20;

/// What memory is planned for.
#[derive(Clone, Debug)]
pub struct ArenaPlanRequest<'a> {
    /// The file that sessions load.
    pub model: &'a Path,
    /// The model that the file was made of: what it takes in a default session is measured beside the file with its plan.
    pub original: &'a Path,
    /// Whether the file must have the bits of that model at every shape; else sums may be rounded otherwise.
    pub keeps_bits: bool,
    /// Where the library goes; beside the model if it is not said.
    pub library: Option<&'a Path>,
    /// The level of the sessions.
    pub level: OptimizationLevel,
    /// That of sessions of the original.
    pub original_level: OptimizationLevel,
    /// Weights that a run maps and reads from a file: the process grows by them.
    pub mapped_bytes: u64,
    /// The file of these weights, in the folder of the model: the plan says which of them runs read, in which order.
    pub weights: Option<&'a Path>,
    /// Sizes of open dimensions with which the model is known to run: memory is measured with them.
    pub dims: &'a BTreeMap<String, u64>,
    /// The sizes that open dimensions have in runs; those of other dimensions may be any.
    pub ranges: &'a Ranges,
    /// Shapes that are frequent, and how frequent they are.
    pub frequent: &'a [(BTreeMap<String, u64>, u64)],
    /// How often more than once the file is loaded to measure it with its plan: where the runtime may allocate in another order each time, as it does
    /// where several copies out of blocks of channels are made for one node of a model as it came.
    pub other_loads: usize,
    /// Sizes that are inferred from the model: recorded ones are held against them.
    pub inferred: &'a InferredSizes,
    /// Limits of each process that runs the model.
    pub limits: ChildLimits<'a>,
}

/// Where the plans of a model file lie.
#[must_use]
pub fn arena_plan_path(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".arena");
    name.into()
}

/// Whether this program has the library with which the runtime follows plans of memory.
#[must_use]
pub fn has_arena_library() -> bool {
    LIBRARY.is_some()
}

/// Where the library lies if nothing else is said.
#[must_use]
pub fn arena_library_path(model: &Path) -> PathBuf {
    model.with_file_name(LIBRARY_NAME)
}

/// Writes the library to a file.
///
/// # Errors
/// [`ArenaPlanError::NoLibrary`] if this program has none, and if it cannot be written.
pub fn write_arena_library(library: &Path) -> Result<(), ArenaPlanError> {
    let content = LIBRARY.ok_or(ArenaPlanError::NoLibrary)?;
    // Where it is in use already, it stays.
    if std::fs::read(library).ok().as_deref() != Some(content) {
        remat_files::write(library, content).map_err(|error| unwritten(library, &error))?;
    }
    Ok(())
}

/// Plans the memory of a file that is written already, and writes plan and library beside it.
///
/// Runs are recorded at several shapes and numbers of threads, and the file runs with the plan at these and others: buffers have to lie where
/// they are planned, and the outputs have to have the bits of the original without a plan. Of `control` count the seed, the observer, the flag
/// to cancel, and the deadline, by which no shape is begun: the runs themselves are what they are.
///
/// # Errors
/// [`ArenaPlanError::NotFollowed`] if runs do not follow their plan, [`ArenaPlanError::NoLibrary`] if this program has no library,
/// [`ArenaPlanError::Runtime`] if the model does not run.
pub fn plan_arena(
    request: &ArenaPlanRequest<'_>,
    host: &Host,
    control: &SolveControl<'_>,
) -> Result<ArenaPlanned, ArenaPlanError> {
    let library = request
        .library
        .map_or_else(|| arena_library_path(request.model), Path::to_owned);
    write_arena_library(&library)?;
    let scratch = scratch_folder()?;
    let planner = Planner {
        request,
        runner: host.runner(request.limits),
        library: std::path::absolute(&library).map_err(|error| unwritten(&library, &error))?,
        tried: scratch.path().join("plan.arena"),
        control,
        empty: ArenaPlanFile {
            model: hash(request.model)?,
            runtime: host.version.clone(),
            level: request.level.to_string(),
            is_paged: needs_arena_library(request.model),
            ..ArenaPlanFile::default()
        },
    };
    planner.plan()
}

/// What all steps of planning need.
struct Planner<'a> {
    request: &'a ArenaPlanRequest<'a>,
    runner: Runner<'a>,
    library: PathBuf,
    /// Where a plan lies while it is tried.
    tried: PathBuf,
    control: &'a SolveControl<'a>,
    /// The file without plans.
    empty: ArenaPlanFile,
}

impl Planner<'_> {
    fn plan(&self) -> Result<ArenaPlanned, ArenaPlanError> {
        let (recorded, mut recordings) = self.recordings()?;
        let mut samples = Samples::new(self.request.dims, self.request.ranges, self.request.frequent, &recorded);
        let (mut file, mut compared);
        let mut rounds = 0;
        loop {
            file = self.fitted(&mut samples, &recordings)?;
            let text = self.write(&file)?;
            compared = self.compared(&samples, &file)?;
            rounds += 1;
            let missed = compared.planned.map_or(0, |figures| figures.missed + figures.refused);
            if missed == 0 || rounds >= ROUNDS || samples.ranges.is_empty() {
                return self.report(&samples, &file, &text, &compared, &recordings);
            }
            // What did not follow the plan is recorded.
            let shapes = compared.compared.iter().map(|found| found.dims.clone()).collect();
            let more = self.record(&RecordOptions {
                others: shapes,
                ..self.options(false)
            })?;
            recordings.push(Recordings {
                threads: 1,
                shapes: more.recordings,
            });
            samples.vary();
        }
    }

    /// What is recorded with one thread, and all recordings.
    fn recordings(&self) -> Result<(Recorded, Vec<Recordings>), ArenaPlanError> {
        tell(self.control, "runs are recorded");
        let frequent = self.request.frequent.iter().map(|(dims, _)| dims.clone()).collect();
        let recorded = self.record(&RecordOptions {
            others: frequent,
            ..self.options(true)
        })?;
        let mut all = vec![Recordings {
            threads: 1,
            shapes: recorded.recordings.clone(),
        }];
        // Small shapes, and that of the settings with the most threads only: it may take long.
        let small = recorded
            .recordings
            .iter()
            .skip(1)
            .step_by(SMALL_SHAPES)
            .map(|one| one.dims.clone());
        let small: Vec<BTreeMap<String, u64>> = small.take(SMALL_SHAPES).collect();
        let with = |threads: u64| -> Result<Recordings, ArenaPlanError> {
            let mut settings = self.settings(usize::try_from(threads).unwrap_or(1), None);
            let mut others = small.clone();
            if threads != MANY_THREADS && !others.is_empty() {
                settings.dims = others.remove(0);
            }
            let options = RecordOptions {
                others,
                ..self.options(false)
            };
            Ok(Recordings {
                threads,
                shapes: record(&self.runner, self.request.model, &settings, &options)?.recordings,
            })
        };
        all.push(with(MANY_THREADS)?);
        if fit::depends_on_threads(&all) {
            for threads in MORE_THREAD_COUNTS {
                all.push(with(threads)?);
            }
        }
        Ok((recorded, all))
    }

    fn options(&self, walks: bool) -> RecordOptions {
        let left = self
            .control
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        RecordOptions {
            ranges: self.request.ranges.clone(),
            walks,
            others: Vec::new(),
            least: LEAST_SHAPES,
            time: left.map(|left| left / 4),
            weights: self.request.weights.map(Path::to_owned),
        }
    }

    /// What the file does with one thread.
    fn record(&self, options: &RecordOptions) -> Result<Recorded, ArenaPlanError> {
        let settings = self.settings(1, None);
        Ok(record(&self.runner, self.request.model, &settings, options)?)
    }

    /// The plan that the recordings say, for ranges that no machine's memory limits.
    fn fitted(&self, samples: &mut Samples, recordings: &[Recordings]) -> Result<ArenaPlanFile, ArenaPlanError> {
        tell(self.control, "the buffers are placed");
        let threads = OpenDim {
            name: THREADS.to_owned(),
            least: 1,
            most: cores().max(MOST_THREADS),
        };
        let mut file = plans(
            self.empty.clone(),
            samples.open(),
            threads,
            recordings,
            self.request.inferred,
        );
        file.weights = self.request.weights.and_then(|file| weights::planned(file, recordings));
        while Plans::new(&file).most_bytes() > MOST_UNSTATED_BYTES && samples.narrow(self.request.ranges) {
            for (dim, narrow) in file.dims.iter_mut().zip(samples.open()) {
                *dim = narrow;
            }
        }
        let threads = file.dims.len() > samples.open().len();
        let sizes =
            |dims: &BTreeMap<String, u64>| samples.sizes(dims).into_iter().chain(threads.then_some(1)).collect();
        let [important, others] = samples
            .to_place()
            .map(|shapes| shapes.iter().map(sizes).collect::<Vec<Vec<u64>>>());
        order_buffers(file, &important, &others, self.control)
    }

    fn write(&self, file: &ArenaPlanFile) -> Result<String, ArenaPlanError> {
        let text = file.to_string();
        let bytes = text.len() as u64;
        if bytes > MOST_FILE_BYTES {
            return Err(ArenaPlanError::TooLarge {
                bytes,
                most: MOST_FILE_BYTES,
            });
        }
        remat_files::write(&self.tried, &text).map_err(|error| unwritten(&self.tried, &error))?;
        Ok(text)
    }

    /// The file with its plan beside the original without, at several shapes.
    fn compared(&self, samples: &Samples, file: &ArenaPlanFile) -> Result<SizesCompared, ArenaPlanError> {
        tell(self.control, "the plan is followed");
        let plans = Plans::new(file);
        let available = available_bytes().map_or(u64::MAX, |bytes| bytes / 4);
        let fits = |dims: &BTreeMap<String, u64>| {
            plans
                .shape_with_least(0, &samples.sizes(dims))
                .is_none_or(|shape| shape.block_bytes() <= available)
        };
        let shapes: Vec<BTreeMap<String, u64>> = samples.to_compare().into_iter().filter(fits).collect();
        let left = self.options(false).time;
        let options = CompareSizes {
            sizes: Sizes::These { shapes, time: left },
            seed: SEED,
            arena_library: self.settings(1, Some(&self.tried)).arena_library,
            base_level: self.request.keeps_bits.then_some(self.request.original_level),
        };
        let exact = self.without_library(1, SessionSettings::exact(self.request.level));
        let base = match self.request.keeps_bits {
            true => self.request.original,
            false => self.request.model,
        };
        let compared = compare_sizes(&self.runner, (base, self.request.model), &exact, options)?;
        for found in &compared.compared {
            let dims = found.dims.clone();
            match &found.outcome {
                SizeOutcome::Same => {}
                SizeOutcome::OtherBits(output) | SizeOutcome::OtherForm(output) => {
                    return Err(ArenaPlanError::OutputDiffers {
                        output: output.clone(),
                        dims,
                    });
                }
                SizeOutcome::Fails(why) => {
                    return Err(ArenaPlanError::Fails { why: why.clone(), dims });
                }
            }
        }
        Ok(compared)
    }

    /// What a user sets, beside the number of threads.
    fn settings(&self, threads: usize, plan: Option<&Path>) -> SessionSettings {
        SessionSettings {
            arena_library: Some(ArenaLibrary {
                library: self.library.clone(),
                plan: plan.map(Path::to_owned),
                keeps_pattern: false,
            }),
            ..self.without_library(threads, SessionSettings::stock())
        }
    }

    fn without_library(&self, threads: usize, settings: SessionSettings) -> SessionSettings {
        SessionSettings {
            level: self.request.level,
            dims: self.request.dims.clone(),
            threads,
            ..settings
        }
    }

    /// The plan is measured, and written beside the model.
    fn report(
        &self,
        samples: &Samples,
        file: &ArenaPlanFile,
        text: &str,
        compared: &SizesCompared,
        recordings: &[Recordings],
    ) -> Result<ArenaPlanned, ArenaPlanError> {
        let plans = Plans::new(file);
        // The last run of the first shape is what runs are in the long run.
        let lasting = recordings
            .first()
            .and_then(|all| all.shapes.first())
            .and_then(|shape| shape.runs.last());
        let lasting = lasting.map_or(0, |run| {
            let is_it = |plan: &remat_onnxruntime_arena::ArenaPlan| fit::is_of(plan, run);
            file.plans.iter().position(is_it).unwrap_or(0)
        });
        let at = |dims: &BTreeMap<String, u64>| {
            let shape = plans.shape_with_least(lasting, &samples.sizes(dims))?;
            Some(ArenaAt {
                dims: samples.named(dims),
                load_bytes: shape.load_bytes(&plans),
                block_bytes: shape.block_bytes(),
            })
        };
        let planned = at(self.request.dims);
        let measured = self.measured(samples.named(self.request.dims), planned.as_ref(), recordings)?;
        let path = arena_plan_path(self.request.model);
        remat_files::write(&path, text).map_err(|error| unwritten(&path, &error))?;
        let is_stated = samples.ranges.names().all(|name| self.request.ranges.has(name));
        let buffers = file.plans.get(lasting).map_or(&[][..], |plan| plan.buffers.as_slice());
        let outside_bytes = measured.outside_bytes;
        let bound = with_threads(file, cores());
        Ok(ArenaPlanned {
            file: path,
            library: self
                .request
                .library
                .map_or_else(|| arena_library_path(self.request.model), Path::to_owned),
            shapes: samples.stated(),
            bound: is_stated.then(|| PeakBound {
                bytes: bound.block_bytes().saturating_add(outside_bytes),
                proof: bound.proof(),
            }),
            bound_threads: cores(),
            ranges: samples.ranges.clone(),
            plans: Arc::new(bound),
            threads: cores().max(MOST_THREADS),
            buffers: buffers.len(),
            inferred_buffers: self
                .request
                .inferred
                .among(&plans, lasting, &samples.ranges, self.request.dims),
            bounded_buffers: buffers.iter().filter(|buffer| !buffer.is_exact).count(),
            weight_uses: file.weights.as_ref().map_or(0, |weights| weights.uses.len()),
            recorded_shapes: recordings.first().map_or(0, |all| all.shapes.len()),
            compared_shapes: compared.compared.len(),
            missed_buffers: compared.planned.map_or(0, |figures| figures.missed + figures.refused),
            measured,
            at: samples.to_report(self.request.dims).iter().filter_map(at).collect(),
        })
    }

    /// Runs at the sizes of the settings: the original in a default session, and the file with the plan, in which every buffer has to lie where
    /// it is planned.
    fn measured(
        &self,
        dims: BTreeMap<String, u64>,
        planned: Option<&ArenaAt>,
        recordings: &[Recordings],
    ) -> Result<ArenaMeasured, ArenaPlanError> {
        tell(self.control, "the plan is measured");
        let options = MeasureOptions {
            runs: LATER_RUNS,
            seeds: vec![SEED],
            time: None,
        };
        let stock = SessionSettings {
            level: self.request.original_level,
            ..self.without_library(1, SessionSettings::stock())
        };
        let original = measure(&self.runner, self.request.original, &stock, &options)?;
        let settings = self.settings(1, Some(&self.tried));
        let mut found = ArenaMeasured {
            dims,
            load_bytes: planned.map_or(0, |at| at.load_bytes),
            block_bytes: planned.map_or(0, |at| at.block_bytes),
            outside_bytes: 0,
            elsewhere: 0,
            code_bytes: original.resident.map_or(0, |resident| resident.files) + self.request.mapped_bytes,
            returned_bytes: 0,
            original_first_bytes: original.resident.map(|resident| resident.first),
            original_later_bytes: original.resident.and_then(|resident| resident.later),
            resident_first_bytes: None,
            resident_later_bytes: None,
        };
        let mut loads = Vec::new();
        for _ in 0..=self.request.other_loads {
            let measured = measure(&self.runner, self.request.model, &settings, &options)?;
            let difference = original.first_difference(&measured);
            if let Some((_, output)) = difference.filter(|_| self.request.keeps_bits) {
                let (output, dims) = (output.to_owned(), found.dims);
                return Err(ArenaPlanError::OutputDiffers { output, dims });
            }
            found.take_load(&measured);
            loads.push(measured.planned);
        }
        let elsewhere = |load: &Option<ArenaFigures>| load.map_or(u64::MAX, |figures| figures.missed + figures.refused);
        let most = loads.iter().max_by_key(|load| elsewhere(load)).copied().flatten();
        if found.elsewhere == 0 && most.is_some_and(|figures| figures.placed > 0) {
            return Ok(found);
        }
        let is_other =
            loads.iter().any(|load| elsewhere(load) != elsewhere(&most)) || self.is_other_each_time(recordings);
        let is_little = self.request.other_loads > 0 && found.outside_bytes <= found.block_bytes / ELSEWHERE_SHARE;
        let count = |of: fn(&ArenaFigures) -> u64| most.as_ref().map_or(0, of);
        match is_other {
            true if is_little => Ok(found),
            true => Err(ArenaPlanError::OtherOrder),
            false => Err(ArenaPlanError::NotFollowed {
                missed: count(|figures| figures.missed),
                refused: count(|figures| figures.refused),
                placed: count(|figures| figures.placed),
            }),
        }
    }

    /// Whether a session that is loaded anew allocates other buffers than the first one did.
    fn is_other_each_time(&self, recordings: &[Recordings]) -> bool {
        let last = |shapes: &[Recording]| shapes.first().and_then(|shape| shape.runs.last()).cloned();
        let first = recordings.first().and_then(|all| last(&all.shapes));
        (0..OTHER_SESSIONS).any(|_| {
            let other = self.record(&RecordOptions {
                least: 1,
                ..self.options(false)
            });
            other.is_ok_and(|other| last(&other.recordings) != first)
        })
    }
}

/// How many threads run at one time here.
fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// The plans for up to so many threads within a node.
fn with_threads(file: &ArenaPlanFile, threads: u64) -> Plans {
    let mut file = file.clone();
    for dim in file.dims.iter_mut().filter(|dim| dim.name == THREADS) {
        dim.most = dim.most.min(threads).max(dim.least);
    }
    Plans::new(&file)
}

pub(crate) fn tell(control: &SolveControl<'_>, what: &str) {
    if let Some(observer) = control.observer {
        observer.begins(&Doing::new(Activity::Measure, what));
    }
}

/// The hash of a file, as plans of memory name it.
///
/// # Errors
/// [`ArenaPlanError::File`] if it cannot be read.
pub fn hash(path: &Path) -> Result<String, ArenaPlanError> {
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
