//! How a model is read and what counts, and what can be wrong with that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use remat_cost::{Device, ProfileFile};
use remat_files::shown;
use remat_onnx::ImportOptions;
use remat_plan::{Accounting, OrderMode, Problem};
use thiserror::Error;

use crate::error::quoted;
use crate::input::read_text;
use crate::{DeviceMemory, Error, SecondMemory};

/// Why no problem can be built from an input.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The profile does not fit the model.
    #[error(transparent)]
    Profile(#[from] remat_cost::ProfileError),
    /// No problem can be built from the model.
    #[error(transparent)]
    Build(#[from] remat_cost::ProblemBuildError),
    /// The table of devices is malformed.
    #[error("`{path}`: {source}", path = shown(.path.display()))]
    DeviceFile {
        /// The file.
        path: PathBuf,
        /// Line, key, and what is wrong.
        source: remat_cost::DeviceTableError,
    },
    /// There is no device of this name.
    #[error("there is no device `{name}`; known are {}", quoted(.known), name = shown(.name))]
    UnknownDevice {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Paging is asked for, but there is nowhere to move anything to.
    #[error("{} states no second memory; those that do: {known}", device.as_ref().map_or_else(|| "the input".to_owned(), |device| format!("device `{device}`")), known = shown(.known))]
    NoSecondMemory {
        /// The device; absent where the input is no model.
        device: Option<String>,
        /// The devices that have one.
        known: String,
    },
}

/// How a model is read and what counts.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Values of symbolic dimensions.
    pub dims: BTreeMap<String, u64>,
    /// Those of them that are fixed: what is written takes no other values. The others stay free.
    pub fixed_dims: BTreeSet<String>,
    /// Bytes of tensors whose size cannot be inferred.
    pub sizes: BTreeMap<String, u64>,
    /// Which bytes count; absent: `runtime` for models, `paper` for graphs.
    pub accounting: Option<Accounting>,
    /// Whether first computes follow the reference order; absent: `free` for models, `fixed` for graphs, as it stands in problems.
    pub order: Option<OrderMode>,
    /// How often one op may run at most.
    pub max_computes: Option<u32>,
    /// Name of the device that durations are estimated for; absent: [`Device::DEFAULT`].
    pub device: Option<String>,
    /// A table of devices besides the presets.
    pub device_file: Option<PathBuf>,
    /// Devices besides presets and table, which come before both.
    pub own_devices: Vec<Device>,
    /// The memory that plans must fit into; absent: what the device says.
    pub device_memory: Option<DeviceMemory>,
    /// Measured durations that replace estimates.
    pub profile: Option<ProfileFile>,
    /// Plans may move storages to the second memory of the device, or of the problem that is read.
    pub second_memory: Option<SecondMemory>,
}

impl LoadOptions {
    /// The device that durations are estimated for.
    ///
    /// # Errors
    /// [`ReadError::Io`](crate::ReadError::Io) and [`SetupError::DeviceFile`] if the table of devices cannot be read,
    /// [`SetupError::UnknownDevice`] if neither it nor the presets have the device.
    pub fn device(&self) -> Result<Device, Error> {
        let mut devices = self.own_devices.clone();
        if let Some(path) = &self.device_file {
            let table = Device::from_table(&read_text(path)?).map_err(|source| SetupError::DeviceFile {
                path: path.clone(),
                source,
            })?;
            devices.extend(table);
        }
        devices.extend_from_slice(Device::presets());
        let name = self.device.as_deref().unwrap_or(Device::DEFAULT);
        if let Some(found) = devices.iter().find(|device| device.name == name) {
            return Ok(found.clone());
        }
        let known = devices.into_iter().map(|device| device.name).collect();
        let name = name.to_owned();
        Err(SetupError::UnknownDevice { name, known }.into())
    }

    /// Lets plans of the problem use the second memory that it has already, else that of the device, as the options say.
    pub(crate) fn apply_second_memory(&self, problem: &mut Problem, device: Option<&Device>) -> Result<(), SetupError> {
        let (mode, capacity) = match self.second_memory {
            None => return Ok(()),
            Some(SecondMemory::Unused) => {
                problem.paging = None;
                return Ok(());
            }
            Some(SecondMemory::Used { mode, capacity }) => (mode, capacity),
        };
        let found = problem.paging.or_else(|| device?.second_memory);
        let Some(mut paging) = found else {
            let with_one = Device::presets().iter().filter(|device| device.second_memory.is_some());
            let known: Vec<_> = with_one.map(|device| format!("`{}`", device.name)).collect();
            return Err(SetupError::NoSecondMemory {
                device: device.map(|device| device.name.clone()),
                known: known.join(", "),
            });
        };
        paging.mode = mode;
        paging.capacity = capacity.or(paging.capacity);
        problem.paging = Some(paging);
        Ok(())
    }

    /// What an ONNX model is imported with.
    pub(crate) fn import(&self) -> ImportOptions {
        ImportOptions {
            open_sizes: false,
            dims: self.dims.clone(),
            fixed: self.fixed_dims.clone(),
            sizes: self.stated_sizes(),
        }
    }

    /// The sizes that the caller states, and those that were seen when the model was profiled.
    pub(crate) fn stated_sizes(&self) -> BTreeMap<String, u64> {
        let mut sizes = self.sizes.clone();
        let ops = self.profile.iter().flat_map(|profile| &profile.ops);
        for output in ops.flat_map(|op| &op.outputs) {
            if let Some(bytes) = output.bytes {
                sizes.entry(output.tensor.clone()).or_insert(bytes);
            }
        }
        sizes
    }
}
