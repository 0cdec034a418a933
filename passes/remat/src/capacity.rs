//! What a device's memory leaves to a plan.

use std::fmt;

use remat_cost::Device;

use crate::error::exact;

/// Memory that no peak counts: it belongs to the caller or to the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalBytes {
    /// Inputs of the graph.
    pub inputs: u64,
    /// Weights and other constants.
    pub constants: u64,
}

/// The memory that a plan's peak is held against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceMemory {
    /// So many bytes, whatever the device has.
    Bytes(u64),
    /// No limit.
    Unlimited,
}

/// A device's memory, and what of it is taken before any op runs: the inputs, and the weights where the device has no flash for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceCapacity {
    /// Name of the device.
    pub device: String,
    /// Its memory in bytes.
    pub memory: u64,
    /// Bytes of the graph's inputs.
    pub inputs: u64,
    /// Bytes of the weights; 0 where they lie in flash.
    pub weights: u64,
}

impl DeviceCapacity {
    /// What there is on `device`, or in `stated` memory; `None` where nothing limits it.
    pub(crate) fn of(
        device: Option<&Device>,
        stated: Option<DeviceMemory>,
        external: Option<ExternalBytes>,
    ) -> Option<Self> {
        let memory = match stated {
            Some(DeviceMemory::Bytes(bytes)) => bytes,
            Some(DeviceMemory::Unlimited) => return None,
            None => device?.memory_bytes?,
        };
        let external = external.unwrap_or(ExternalBytes {
            inputs: 0,
            constants: 0,
        });
        let flash = device.and_then(|device| device.flash_bytes);
        if let Some(flash) = flash.filter(|&flash| flash < external.constants) {
            let constants = external.constants;
            tracing::warn!("the weights take {constants} bytes, and the device's flash has {flash}");
        }
        Some(Self {
            device: device.map_or_else(|| "unknown".to_owned(), |device| device.name.clone()),
            memory,
            inputs: external.inputs,
            weights: if flash.is_some() { 0 } else { external.constants },
        })
    }

    /// Bytes that a plan's peak may reach.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.saturating_sub(self.inputs).saturating_sub(self.weights)
    }
}

impl fmt::Display for DeviceCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device `{}` has {}", self.device, exact(self.memory))?;
        let taken = [("the inputs", self.inputs), ("the weights", self.weights)].into_iter();
        let taken = taken.filter(|&(_, bytes)| bytes > 0);
        let taken: Vec<String> = taken
            .map(|(what, bytes)| format!("{what} take {}", exact(bytes)))
            .collect();
        if taken.is_empty() {
            return Ok(());
        }
        write!(f, ", of which {}", taken.join(" and "))
    }
}
