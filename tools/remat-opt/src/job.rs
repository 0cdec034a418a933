//! The job of a command: what its command line names, resolved once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::onnx::{ImportOptions, OnnxError, OnnxModel};
use remat::plan::PlanFile;
use remat::profile::ProfileFile;
use remat::solver::Activity;
use remat::{BaselinePeak, LoadOptions, Model, ReadError};
use remat_onnxruntime_deploy::{DeployError, ProfileRequest, measured_profile, open_model, with_baseline};
use remat_onnxruntime_run::{Host, OptimizationLevel, ProfileOptions, SessionSettings};

use crate::args::{BaselineArg, LoadArgs, RuntimeArgs};
use crate::files::Files;
use crate::machine;
use crate::progress::Line;
use crate::runtime::{expected, limits};

/// What a run of a model is expected to take of which nothing is known.
const UNKNOWN_RUN: Duration = Duration::from_secs(10);
/// A model that is measured may take this multiple of the time that is expected.
pub(crate) const PATIENCE: u32 = 5;
/// Beyond that, the time it may take in any case.
pub(crate) const LEAST: Duration = Duration::from_secs(30);

/// A file that the command line may name, and what to call it.
pub(crate) type Named<'a> = (&'static str, Option<&'a PathBuf>);

/// An input and how it is to be opened.
pub(crate) struct Job<'a> {
    pub(crate) input: &'a Path,
    /// How it is read. The profile is that of the file, or what [`Job::measure`] found.
    pub(crate) load: LoadOptions,
    /// What is read and written.
    pub(crate) files: Files,
    /// ONNX Runtime, once it was needed.
    pub(crate) host: Option<Host>,
    runtime: &'a RuntimeArgs,
    /// What shares of memory are of.
    baseline: BaselineArg,
    /// The times of the ops are still to be measured.
    pub(crate) measures: bool,
}

impl<'a> Job<'a> {
    /// Reads and checks what the command line names: no output may destroy an input, the profile is a profile, and a library of ONNX
    /// Runtime that is named loads, whether or not it comes to be used.
    ///
    /// # Errors
    /// If one of these is not so.
    pub(crate) fn resolve(
        input: &'a Path,
        load: &'a LoadArgs,
        reads: &[Named<'_>],
        writes: &[Named<'_>],
    ) -> anyhow::Result<Self> {
        load.open.check()?;
        let mut files = Files::default();
        files.reads("the input", [input])?;
        files.reads("the table of devices", load.device_file.as_deref())?;
        files.reads("the profile", load.profile_file())?;
        for (what, path) in reads {
            files.reads(what, path.map(PathBuf::as_path))?;
        }
        for (what, path) in writes {
            files.writes(what, path.map(PathBuf::as_path))?;
        }
        let profile = load.profile_file().map(|path| {
            let text = remat::read_text(path)?;
            ProfileFile::from_json(&text).map_err(remat::Error::from)
        });
        let mut job = Self {
            input,
            load: LoadOptions {
                profile: profile.transpose()?,
                ..load.options()
            },
            files,
            host: None,
            runtime: &load.runtime,
            baseline: load.baseline,
            measures: load.profile_is_measured(),
        };
        if load.runtime.ort_library.is_some() && load.runtime.is_named() {
            job.find_runtime()?;
        }
        Ok(job)
    }

    /// Looks for ONNX Runtime, once.
    ///
    /// # Errors
    /// If there is none that can be loaded.
    pub(crate) fn find_runtime(&mut self) -> anyhow::Result<&Host> {
        let host = match self.host.take() {
            Some(host) => host,
            None => self.runtime.find()?,
        };
        Ok(self.host.insert(host))
    }

    /// Runs the input to measure its ops, where the command line asks for that, once.
    ///
    /// # Errors
    /// If there is no ONNX Runtime, or it cannot run the model.
    pub(crate) fn measure(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.measures) {
            self.find_runtime()?;
            self.load.profile = Some(self.profile_of(self.input, UNKNOWN_RUN)?);
        }
        Ok(())
    }

    /// Measures the ops of a model, which has the dimensions and sizes of the input, on inputs of seed 0. Loading and running it once is
    /// expected to take `expected`.
    ///
    /// # Errors
    /// If there is no ONNX Runtime, or it cannot run the model.
    pub(crate) fn profile_of(&self, model: &Path, expected: Duration) -> Result<ProfileFile, DeployError> {
        let host = self.host.as_ref().ok_or(DeployError::NoRuntime)?;
        let mut import = ImportOptions {
            dims: self.load.dims.clone(),
            sizes: self.load.sizes.clone(),
            open_sizes: true,
            ..ImportOptions::default()
        };
        // What the runtime made of the model may have their numbers by now.
        import.dims.retain(|name, _| !self.load.fixed_dims.contains(name));
        let opened = OnnxModel::open(model, &import)?;
        let request = ProfileRequest {
            settings: SessionSettings {
                dims: self.load.dims.clone(),
                ..SessionSettings::exact(OptimizationLevel::Off)
            },
            options: ProfileOptions::default(),
            device: machine::processor(),
            date: machine::today(),
        };
        let runs = request.options.runs.saturating_add(1);
        let limits = limits(Some(LEAST + expected.saturating_mul(runs.saturating_mul(PATIENCE))));
        Ok(measured_profile(host, limits, model, &opened, &request)?)
    }

    /// Opens the input; with a plan as it was read when the plan was made, and options that the plan contradicts are refused.
    ///
    /// # Errors
    /// If it cannot be read, or an output is one of its data files.
    pub(crate) fn open(&mut self, plan: Option<&PlanFile>) -> anyhow::Result<Model> {
        self.measure()?;
        let model = match plan {
            None => match Model::open(self.input, &self.load) {
                // What the data decides can be measured.
                Err(remat::Error::Read(ReadError::Onnx(OnnxError::UnknownSizes { dims, .. })))
                    if dims.is_empty() && self.find_runtime().is_ok() =>
                {
                    let time = LEAST + UNKNOWN_RUN.saturating_mul(2 * PATIENCE);
                    let runtime = self.host.as_ref().map(|host| (host, limits(Some(time))));
                    open_model(self.input, &self.load, runtime)?
                }
                other => other?,
            },
            Some(plan) => {
                if plan.setup.as_ref().is_some_and(|setup| setup.fused_by.is_some()) {
                    // Without a runtime, the library says what it is needed for.
                    _ = self.find_runtime();
                }
                let runtime = self.host.as_ref().map(|host| (host, limits(None)));
                remat_onnxruntime_deploy::open_for_plan(self.input, &self.load, plan, runtime)?
            }
        };
        self.files.reads_data_of(&model)?;
        Ok(model)
    }

    /// Whether what the model takes as it is can be told for ONNX Runtime, and is to be.
    pub(crate) fn is_for_runtime(&self, model: &Model) -> bool {
        self.baseline == BaselineArg::Runtime && model.is_for_runtime()
    }

    /// The model with what it takes as it is: in ONNX Runtime, if that is asked for and there is one.
    pub(crate) fn with_baseline(&mut self, model: Model) -> Model {
        if !self.is_for_runtime(&model) {
            return model;
        }
        // Without one, it is simulated.
        _ = self.find_runtime();
        let limits = limits(Some(LEAST + expected(&model).saturating_mul(PATIENCE)));
        let runtime = self.host.as_ref().map(|host| (host, limits));
        with_baseline(model, self.input, &self.load.dims, runtime)
    }

    /// [`Job::open`], with the reading shown, and with what the model takes as it is: `baseline` where that is known.
    ///
    /// # Errors
    /// As [`Job::open`].
    pub(crate) fn open_shown(
        &mut self,
        plan: Option<&PlanFile>,
        baseline: Option<BaselinePeak>,
        line: &Line,
    ) -> anyhow::Result<Model> {
        line.untimed(Activity::Import, "");
        let model = self.open(plan)?;
        line.baseline(model.baseline().duration);
        if let Some(peak) = baseline {
            return Ok(model.with_baseline_peak(peak));
        }
        line.untimed(Activity::Measure, "the original model");
        Ok(self.with_baseline(model))
    }
}
