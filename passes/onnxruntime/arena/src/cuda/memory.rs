//! Memory of a device: one block for weights and runs, and what does not lie there.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::library::Library;
use crate::messages::say;
use crate::pages::Memory;

/// How large the parts of the block are.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Extent {
    /// What stays of loading.
    pub(super) kept: usize,
    /// All that loading needs.
    pub(super) load: usize,
    /// What runs need.
    pub(super) run: usize,
}

impl Extent {
    /// The whole block.
    pub(super) fn bytes(self) -> usize {
        self.load.max(self.kept.saturating_add(self.run))
    }
}

/// What one set of options has of a device.
#[derive(Debug)]
pub(super) struct Device {
    /// The CUDA runtime's file; unless it is said, that of the process is looked for when memory is needed first.
    library: Option<CString>,
    extent: Extent,
    taken: Mutex<Taken>,
}

#[derive(Debug)]
struct Taken {
    /// The device; unless it is said, that of the thread that needs memory first.
    number: Option<c_int>,
    /// The block, while anything has it.
    whole: Option<Whole>,
    /// Whether nothing more of loading comes into the block but what stays.
    is_loaded: bool,
    /// Blocks, by address.
    blocks: BTreeMap<usize, usize>,
    /// Bytes of these, and most of that at one time.
    bytes: usize,
    most_bytes: usize,
    /// Whether it was said that there is no CUDA runtime.
    is_told: bool,
}

/// The block.
#[derive(Clone, Copy, Debug)]
struct Whole {
    base: usize,
    has_load: bool,
    has_run: bool,
}

impl Device {
    pub(super) fn new(library: Option<CString>, number: Option<c_int>, extent: Extent) -> Arc<Self> {
        Arc::new(Self {
            library,
            extent,
            taken: Mutex::new(Taken {
                number,
                whole: None,
                is_loaded: false,
                blocks: BTreeMap::new(),
                bytes: 0,
                most_bytes: 0,
                is_told: false,
            }),
        })
    }

    /// The two parts of its memory: that of loading and that of runs.
    pub(super) fn parts(self: &Arc<Self>) -> [Part; 2] {
        [true, false].map(|is_load| Part {
            device: Arc::clone(self),
            is_load,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of the block.
    pub(super) fn block_bytes(&self) -> usize {
        self.extent.bytes()
    }

    /// Bytes of blocks now, and most at one time.
    pub(super) fn bytes(&self) -> (usize, usize) {
        let taken = self.taken();
        (taken.bytes, taken.most_bytes)
    }

    /// Says whether more of loading may come into the block than what stays there.
    pub(super) fn set_loaded(&self, is_loaded: bool) {
        self.taken().is_loaded = is_loaded;
    }

    /// The CUDA runtime, and the number of the device.
    fn found(&self, taken: &mut Taken) -> Result<(Library, c_int), String> {
        let library = Library::load(self.library.as_deref())?;
        let number = taken.number.map_or_else(|| library.device(), Ok)?;
        taken.number = Some(number);
        Ok((library, number))
    }

    /// So many bytes that are no block.
    pub(super) fn take(&self, bytes: usize) -> Result<usize, String> {
        let (library, number) = self.found(&mut self.taken())?;
        library.take(number, bytes).map_err(|why| {
            let room = library.room(number);
            let room = room.map(|(free, total)| format!(" ({free} of {total} bytes of device {number} are free)"));
            format!("cudaMalloc of {bytes} bytes: {why}{}", room.unwrap_or_default())
        })
    }

    /// Gives them back.
    pub(super) fn give(&self, address: usize) {
        if let Ok((library, _)) = self.found(&mut self.taken()) {
            library.give(address);
        }
    }

    /// A block of so many bytes.
    fn take_block(&self, taken: &mut Taken, bytes: usize) -> Option<usize> {
        let found = self.found(taken);
        let (library, number) = match found {
            Ok(found) => found,
            Err(why) => {
                if !std::mem::replace(&mut taken.is_told, true) {
                    say(&why);
                }
                return None;
            }
        };
        let base = library.take(number, bytes).ok()?;
        taken.blocks.insert(base, bytes);
        taken.bytes += bytes;
        taken.most_bytes = taken.most_bytes.max(taken.bytes);
        Some(base)
    }

    fn give_block(&self, taken: &mut Taken, base: usize) {
        let bytes = taken.blocks.remove(&base).unwrap_or(0);
        taken.bytes = taken.bytes.saturating_sub(bytes);
        if let Ok((library, _)) = self.found(taken) {
            library.give(base);
        }
    }

    /// Memory to load into: the beginning of the block, unless another session has it.
    fn map_load(&self, bytes: usize) -> Option<usize> {
        let mut taken = self.taken();
        if taken.whole.is_none()
            && bytes <= self.extent.bytes()
            && let Some(base) = self.take_block(&mut taken, self.extent.bytes())
        {
            taken.whole = Some(Whole {
                base,
                has_load: true,
                has_run: false,
            });
            return Some(base);
        }
        self.take_block(&mut taken, bytes)
    }

    /// Memory to run in: the rest of the block, unless another run has it.
    fn map_run(&self, bytes: usize) -> Option<usize> {
        let mut taken = self.taken();
        let is_loaded = taken.is_loaded;
        let room = self.extent.bytes() - self.extent.kept;
        if let Some(whole) = taken.whole.as_mut().filter(|whole| !whole.has_run)
            && is_loaded
            && bytes <= room
        {
            whole.has_run = true;
            return Some(whole.base + self.extent.kept);
        }
        self.take_block(&mut taken, bytes)
    }

    fn unmap(&self, start: usize, is_load: bool) {
        let mut taken = self.taken();
        let Extent { kept, .. } = self.extent;
        let part = if is_load { 0 } else { kept };
        match taken.whole.as_mut().filter(|whole| whole.base + part == start) {
            Some(whole) if is_load && whole.has_load => whole.has_load = false,
            Some(whole) if !is_load && whole.has_run => whole.has_run = false,
            _ => return self.give_block(&mut taken, start),
        }
        if let Some(whole) = taken.whole.filter(|whole| !whole.has_load && !whole.has_run) {
            taken.whole = None;
            self.give_block(&mut taken, whole.base);
        }
    }
}

/// Memory to load into, or to run in.
#[derive(Clone, Debug)]
pub(super) struct Part {
    device: Arc<Device>,
    is_load: bool,
}

impl Memory for Part {
    fn map(&self, bytes: usize) -> Option<usize> {
        match self.is_load {
            true => self.device.map_load(bytes),
            false => self.device.map_run(bytes),
        }
    }

    fn expect(&self, _addresses: Range<usize>) {}

    fn unmap(&self, start: usize, _bytes: usize) {
        self.device.unmap(start, self.is_load);
    }

    fn forget(&self, _addresses: Range<usize>) {}

    fn forgets(&self) -> bool {
        false
    }

    fn changes_hands(&self) {
        let found = self.device.found(&mut self.device.taken());
        if let Ok((library, number)) = found
            && let Err(why) = library.wait(number)
        {
            say(&format!("cudaDeviceSynchronize: {why}"));
        }
    }
}
