//! Which bytes of a device a request gets: of the sessions that are made with one set of options.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::{Device, Extent, Part};
use crate::ArenaPlanFile;
use crate::account::{Account, Credit};
use crate::blocks::{Blocks, Elsewhere};
use crate::counted::{self, Counted};
use crate::counts::{AllocationCounts, RecordedEvent};
use crate::ledger::Thread;
use crate::limit::Limit;
use crate::messages::{Purpose, say};
use crate::plans::Plans;
use crate::session::this_thread;

/// The sessions of one set of options. It lives as long as the process.
#[derive(Debug)]
pub(crate) struct DeviceSession {
    device: Arc<Device>,
    /// What its plans are for, where it has any.
    purpose: Option<Purpose>,
    /// Whether no more sessions are made with its functions.
    is_closed: AtomicBool,
    /// Whether it was said that an address is none of its own.
    has_strange: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What sessions request while they load: a run of its own, of which weights are the outputs.
    loads: Blocks<Part>,
    runs: Blocks<Part>,
    /// Whether no plan says what they request then.
    loads_anyhow: bool,
    /// Threads on which a session is being loaded.
    loading: Vec<Thread>,
    recorded: Option<Vec<RecordedEvent>>,
}

/// What its sessions are to have.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The plans, and where they lie; without them everything is requested from the device.
    pub(super) plans: Option<(String, ArenaPlanFile)>,
    /// The CUDA runtime's file, where that is said.
    pub(super) library: Option<CString>,
    /// The device, where that is said.
    pub(super) device: Option<c_int>,
    /// Whether requests are recorded.
    pub(super) records: bool,
}

static ALL: Mutex<Vec<&DeviceSession>> = Mutex::new(Vec::new());

impl DeviceSession {
    /// One with these plans, and its number.
    pub(super) fn create(wanted: Wanted) -> (&'static Self, usize) {
        let Wanted {
            plans,
            library,
            device,
            records,
        } = wanted;
        let file = plans.as_ref().map(|(_, file)| file);
        let runs = file.map(Plans::new).unwrap_or_default();
        let load = file.and_then(ArenaPlanFile::of_load);
        let loads = load.as_ref().map(Plans::new).unwrap_or_default();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let extent = Extent {
            kept: bytes(loads.kept_bytes(file.map_or(1, ArenaPlanFile::alignment))),
            load: bytes(loads.block_bytes()),
            run: bytes(runs.block_bytes()),
        };
        let device = Device::new(library, device, extent);
        let [load_memory, run_memory] = device.parts();
        // Its bytes are none of the processor's.
        let account = || Account::new(Arc::new(Limit::default()), None, false);
        let session: &Self = Box::leak(Box::new(Self {
            device,
            purpose: plans.as_ref().map(|(path, file)| Purpose::new(path, file)),
            is_closed: AtomicBool::new(false),
            has_strange: AtomicBool::new(false),
            state: Mutex::new(State {
                loads: Blocks::new(Arc::new(loads), load_memory, account()),
                runs: Blocks::new(Arc::new(runs), run_memory, account()),
                loads_anyhow: load.is_none(),
                loading: Vec::new(),
                recorded: records.then(Vec::new),
            }),
        }));
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        (session, counted::add(session))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them give blocks back that no run needs; how many bytes that were.
    pub(crate) fn trim_all() -> u64 {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.into_iter().map(Self::trim).sum()
    }

    /// Gives blocks back that no run needs; how many bytes that were.
    pub(super) fn trim(&self) -> u64 {
        let mut state = self.state();
        let before = self.device.bytes().0;
        state.loads.make_room();
        state.runs.make_room();
        before.saturating_sub(self.device.bytes().0) as u64
    }

    /// A session begins to load on this thread.
    pub(super) fn load_begins(&self) {
        let thread = this_thread();
        let mut state = self.state();
        if !state.loading.contains(&thread) {
            state.loading.push(thread);
        }
        if state.loads_anyhow {
            state.loads.load_begins(thread);
        }
        state.runs.enter();
    }

    /// The session that loads on this thread is loaded.
    pub(super) fn load_ends(&self) {
        let thread = this_thread();
        let mut state = self.state();
        state.loading.retain(|&other| other != thread);
        state.loads.load_ends(thread);
        state.loads.end(thread);
    }

    /// No more sessions are made with its functions.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether nobody has its functions any more.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        self.is_closed.load(Ordering::Relaxed) && state.loads.is_empty() && state.runs.is_empty()
    }

    /// The address of so many bytes of the device; 0 where there are none. The provider makes the status of the run of that.
    pub(super) fn allocate(&self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        let (thread, size) = (this_thread(), bytes as u64);
        let mut state = self.state();
        let is_loading = state.loading.contains(&thread);
        self.device.set_loaded(!state.loads.is_under_way());
        let (mut credit, blocks) = (Credit::default(), state.of(is_loading));
        let found = blocks.allocate(thread, size, &mut credit);
        blocks.decline(credit);
        let misfit = blocks.take_misfit();
        let address = match found {
            Ok(address) => address,
            // Nobody has a limit here.
            Err(Elsewhere::Denied(_)) => 0,
            Err(Elsewhere::Outside(origin)) => {
                let mut taken = self.device.take(bytes);
                if taken.is_err() {
                    drop(state);
                    Self::trim_all();
                    taken = self.device.take(bytes);
                    state = self.state();
                }
                match taken {
                    Ok(address) => {
                        state.of(is_loading).adopt(address, size, origin);
                        address
                    }
                    Err(why) => {
                        say(&why);
                        state.of(is_loading).disown(size, origin);
                        0
                    }
                }
            }
        };
        if address != 0 {
            state.record(address, size, thread);
        }
        drop(state);
        if let (Some(misfit), Some(purpose)) = (misfit, &self.purpose) {
            let of = if is_loading { "loading" } else { "a run" };
            say(&purpose.complaint(misfit, of));
        }
        address
    }

    /// Takes bytes back.
    pub(super) fn free(&self, address: usize) {
        if address == 0 {
            return;
        }
        let mut state = self.state();
        let is_load = state.loads.has(address);
        if !is_load && !state.runs.has(address) {
            if !self.has_strange.swap(true, Ordering::Relaxed) {
                say(&format!("{address:#x} is freed and was never handed out"));
            }
            return;
        }
        state.record(address, 0, this_thread());
        let was_in_a_block = state.of(is_load).free(address);
        if is_load {
            state.loads.make_room();
            if state.loads.is_empty() && state.loading.is_empty() {
                state.runs.leave();
            }
        }
        drop(state);
        if !was_in_a_block {
            self.device.give(address);
        }
    }
}

impl State {
    fn of(&mut self, is_loading: bool) -> &mut Blocks<Part> {
        if is_loading { &mut self.loads } else { &mut self.runs }
    }

    fn record(&mut self, address: usize, bytes: u64, thread: Thread) {
        if let Some(recorded) = &mut self.recorded {
            let address = address as u64;
            recorded.push(RecordedEvent { address, bytes, thread });
        }
    }
}

impl Counted for DeviceSession {
    fn figures(&self) -> AllocationCounts {
        let state = self.state();
        let (loads, runs) = (state.loads.figures(), state.runs.figures());
        let (bytes, most_bytes) = self.device.bytes();
        AllocationCounts {
            missed: runs.missed + loads.missed,
            refused: runs.refused + loads.refused,
            planned_outside: runs.planned_outside + loads.planned_outside,
            at_load: loads.at_load + loads.placed + loads.planned_outside + loads.missed,
            block_bytes: self.device.block_bytes() as u64,
            outside_bytes: runs.outside_bytes + loads.outside_bytes,
            most_outside_bytes: runs.most_outside_bytes + loads.most_outside_bytes,
            used_bytes: bytes as u64,
            most_used_bytes: most_bytes as u64,
            ..runs
        }
    }

    fn take_events(&self, most: usize) -> Vec<RecordedEvent> {
        let mut state = self.state();
        let recorded = state.recorded.as_mut();
        recorded.map_or_else(Vec::new, |recorded| {
            recorded.drain(..recorded.len().min(most)).collect()
        })
    }
}
