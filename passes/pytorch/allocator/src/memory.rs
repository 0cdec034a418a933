//! What is taken from the device, and the blocks that it is cut into.

use crate::blocks::Blocks;
use crate::figures::{Event, Figures};
use crate::settings::{MIB, Settings};

/// No device has more memory, a petabyte, and no address is higher: what is added up fits 64 bits.
pub(crate) const MOST_BYTES: u64 = 1 << 50;

/// Where the first segment of a simulated device lies.
const FIRST_ADDRESS: u64 = 1 << 40;

/// What there is to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// The whole memory of the device, in bytes: growing segments have addresses for 9/8 of it.
    pub total_bytes: u64,
    /// What the allocator can have of it, in bytes: less the context, and what others have.
    pub free_bytes: u64,
}

/// Segments, their blocks, and the counts of both.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) settings: Settings,
    pub(crate) device: Device,
    pub(crate) blocks: Blocks,
    pub(crate) figures: Figures,
    /// What happened since it was last asked for.
    pub(crate) events: Vec<Event>,
    /// Where the next segment is to lie, if that is known.
    pub(crate) next_address: Option<u64>,
    /// Where the last one ends that was placed without that.
    end: u64,
}

impl Memory {
    /// Of a device from which nothing is taken yet.
    pub(crate) fn new(settings: Settings, device: Device) -> Self {
        Self {
            settings,
            device: Device {
                total_bytes: device.total_bytes.min(MOST_BYTES),
                free_bytes: device.free_bytes.min(MOST_BYTES),
            },
            blocks: Blocks::default(),
            figures: Figures::default(),
            events: Vec::new(),
            next_address: None,
            end: FIRST_ADDRESS,
        }
    }

    /// What the device has left, as far as the settings allow.
    pub(crate) fn left(&self) -> u64 {
        let allowed = self.settings.allowed_bytes.unwrap_or(u64::MAX);
        allowed.saturating_sub(self.figures.reserved).min(self.left_on_device())
    }

    /// What the device has left, whatever the settings allow.
    pub(crate) fn left_on_device(&self) -> u64 {
        self.device.free_bytes.saturating_sub(self.figures.reserved)
    }

    /// Where a new segment lies, or the addresses of a growing one.
    pub(crate) fn place(&mut self, bytes: u64) -> u64 {
        if let Some(address) = self.next_address.take() {
            return address;
        }
        let address = self.end;
        self.end += bytes.div_ceil(2 * MIB).saturating_mul(2 * MIB);
        address
    }
}
