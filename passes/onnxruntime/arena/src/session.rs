//! What the runtime knows as an allocator: one for each set of session options, so that sessions do not meet.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::account::{Account, Credit, Denied, Turn, insist};
use crate::api::{Api, Status};
use crate::blocks::{Blocks, Elsewhere};
use crate::counted::{self, Counted};
use crate::counts::{AllocationCounts, RecordedEvent};
use crate::failing::{Allocated, throwing};
use crate::gate::GATE;
use crate::ledger::Thread;
use crate::limit::Limit;
use crate::memory::{Process, allocate, heap_is_loading, release, trim_heap};
use crate::messages::{Purpose, is_parallel, refusal, say};
use crate::plans::Plans;
use crate::share::{Holder, Shared};
use crate::stream::Stream;

/// The version of [`OrtAllocator`]: the fields after `reserve` are read in later ones only.
const ALLOCATOR_VERSION: u32 = 18;

/// `OrtAllocator` of the C interface.
#[repr(C)]
#[derive(Debug)]
struct OrtAllocator {
    version: u32,
    alloc: unsafe extern "C" fn(*mut Session, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut Session, *mut c_void),
    info: unsafe extern "C" fn(*const Session) -> *const c_void,
    reserve: unsafe extern "C" fn(*mut Session, usize) -> *mut c_void,
    later: [*const c_void; 8],
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) blocks: Blocks<Process>,
    pub(crate) recorded: Option<Vec<RecordedEvent>>,
}

/// The allocator of the sessions that are made with one set of options. It lives as long as the process.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Session {
    /// First, because the runtime takes the address of this for that of the whole.
    allocator: OrtAllocator,
    pub(crate) environment: Environment,
    /// Messages of this severity or above are printed.
    pub(crate) severity: c_int,
    /// What its plans are for, where it has any.
    purpose: Option<Purpose>,
    /// Called when blocks have to be looked after.
    watch: fn(),
    limit: Arc<Limit>,
    /// Its weights, where they have a budget.
    stream: Option<Stream>,
    /// The block that it shares with others.
    shared: Option<&'static Shared>,
    /// Whether the heap may have what was needed only while the session loaded.
    has_leftovers: AtomicBool,
    state: Mutex<State>,
}

// SAFETY: the pointers in it are to constants of the runtime; what changes is behind a lock.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

/// The process's environment of the runtime, of which a reference is held for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment {
    pub(crate) api: Api,
    environment: *mut c_void,
    memory_info: *const c_void,
}

// SAFETY: the runtime's functions on an environment may be called from every thread.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Environment {
    pub(crate) fn of(api: Api) -> Result<Self, Status> {
        static FOUND: OnceLock<Environment> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(*found);
        }
        let found = Self {
            api,
            environment: api.environment()?,
            memory_info: api.memory_info()?,
        };
        Ok(*FOUND.get_or_init(|| found))
    }
}

static SESSIONS: Mutex<Vec<&Session>> = Mutex::new(Vec::new());

/// The plans of all sessions, each once, because sessions are never forgotten.
static PLANS: Mutex<Vec<Arc<Plans>>> = Mutex::new(Vec::new());

fn once(plans: Plans) -> Arc<Plans> {
    let mut known = locked(&PLANS);
    if let Some(same) = known.iter().find(|known| ***known == plans) {
        return Arc::clone(same);
    }
    let plans = Arc::new(plans);
    known.push(Arc::clone(&plans));
    plans
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the calling thread.
pub(crate) fn this_thread() -> Thread {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// What a session is to have.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) plans: Plans,
    /// What they are for; absent where there are none.
    pub(crate) purpose: Option<Purpose>,
    pub(crate) huge_pages: bool,
    /// The most bytes of the process with which its runs go on; none without a limit.
    pub(crate) limit: Option<u64>,
    /// Whether they wait for room under the limit; else they are refused.
    pub(crate) waits: bool,
    /// The block that it shares with other sessions.
    pub(crate) shared: Option<&'static Shared>,
    /// Whether allocations are recorded.
    pub(crate) records: bool,
    /// Messages of this severity or above are printed.
    pub(crate) severity: c_int,
    /// Its weights, where they have a budget.
    pub(crate) stream: Option<Stream>,
    /// Called when blocks have to be looked after.
    pub(crate) watch: fn(),
}

impl Session {
    /// An allocator as the options say.
    pub(crate) fn create(environment: Environment, options: Options) -> &'static Self {
        let Options {
            plans,
            purpose,
            huge_pages,
            limit,
            waits,
            shared,
            records,
            severity,
            stream,
            watch,
        } = options;
        Self::make_room();
        let of_process = Limit::of_process();
        let account = Account::new(Arc::clone(&of_process), limit, waits);
        let session: &Self = Box::leak(Box::new(Self {
            allocator: OrtAllocator {
                version: ALLOCATOR_VERSION,
                alloc,
                free,
                info,
                reserve,
                later: [null(); 8],
            },
            environment,
            severity,
            purpose,
            watch,
            limit: of_process,
            stream,
            shared,
            has_leftovers: AtomicBool::new(true),
            state: Mutex::new(State {
                blocks: Blocks::new(once(plans), Process { huge_pages, shared }, account),
                recorded: records.then(Vec::new),
            }),
        }));
        locked(&SESSIONS).push(session);
        counted::add(session);
        session
    }

    /// All of them, in the order in which they were created.
    pub(crate) fn all() -> Vec<&'static Self> {
        locked(&SESSIONS).clone()
    }

    /// Sessions that may be gone give back what nobody uses.
    fn make_room() {
        Self::all()
            .iter()
            .for_each(|session| session.state().blocks.make_room());
    }

    /// All sessions give back what neither a live buffer nor a run that goes on needs; how many bytes that were.
    pub(crate) fn trim_all() -> u64 {
        let sessions: u64 = Self::all().iter().map(|session| session.state().blocks.trim()).sum();
        sessions + Shared::trim_all()
    }

    /// Takes from a message of the runtime what it says about the session.
    pub(crate) fn learn(&self, message: &str) {
        if is_parallel(message) {
            // A thread of its pool that waits could be one that the other run needs.
            self.state().blocks.never_wait();
        }
        if let Some(purpose) = &self.purpose {
            purpose.learn(message);
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Makes this the allocator that the next session takes.
    fn register(&self) -> Status {
        let Environment { api, environment, .. } = self.environment;
        api.register_allocator(environment, std::ptr::from_ref(self).cast())
    }

    /// The session is about to take its allocator from the environment: this, whatever was registered meanwhile.
    pub(crate) fn load_begins(&self) {
        Self::make_room();
        GATE.enter(this_thread());
        let status = self.register();
        self.environment.api.failed(status);
        heap_is_loading(true);
        self.state().blocks.load_begins(this_thread());
    }

    /// The session has taken its allocator.
    pub(crate) fn has_taken(&self) {
        GATE.leave(this_thread());
    }

    /// Makes this the allocator of sessions that say nothing while they are loaded.
    pub(crate) fn register_first(&self) -> Status {
        let thread = this_thread();
        GATE.enter(thread);
        let status = self.register();
        GATE.leave(thread);
        status
    }

    pub(crate) fn load_ends(&self) {
        self.has_leftovers.store(true, Ordering::Relaxed);
        heap_is_loading(false);
        self.state().blocks.load_ends(this_thread());
    }

    fn allocate(&'static self, bytes: usize) -> Allocated {
        // What the runtime's own allocator does.
        if bytes == 0 {
            return Allocated::at(null_mut());
        }
        let (thread, mut credit) = (this_thread(), Credit::default());
        let allocated = insist(
            &self.limit,
            &mut credit,
            |credit| self.try_allocate(thread, bytes, credit),
            || self.turn(thread),
            || _ = Self::trim_all(),
            |time| self.state().blocks.count_wait(time),
        );
        allocated.unwrap_or_else(|(request, reserved)| {
            let mut state = self.state();
            state.blocks.decline(credit);
            state.blocks.refuse(thread);
            drop(state);
            Allocated::failed(&refusal(&request, reserved))
        })
    }

    /// Waits for the turn of a run in the block that the session shares, without a lock.
    fn turn(&self, thread: Thread) -> Turn {
        let waits = self.state().blocks.waits();
        let who = Holder {
            session: std::ptr::from_ref(self) as usize,
            thread,
        };
        self.shared.map_or(Turn::Refused, |shared| shared.take(who, waits))
    }

    fn try_allocate(&'static self, thread: Thread, bytes: usize, credit: &mut Credit) -> Result<Allocated, Denied> {
        let size = bytes as u64;
        let mut state = self.state();
        let State { blocks, recorded } = &mut *state;
        let is_loading = blocks.is_loading(thread);
        if is_loading {
            GATE.leave(thread);
        } else if self.has_leftovers.swap(false, Ordering::Relaxed) {
            blocks.count_returned(trim_heap());
        }
        let address = match blocks.allocate(thread, size, credit) {
            Ok(address) => address as *mut c_void,
            Err(Elsewhere::Denied(denied)) => return Err(denied),
            Err(Elsewhere::Outside(origin)) => {
                let address = allocate(bytes);
                if address.is_null() {
                    blocks.disown(size, origin);
                } else {
                    blocks.adopt(address as usize, size, origin);
                }
                address
            }
        };
        blocks.decline(std::mem::take(credit));
        if let Some(recorded) = recorded.as_mut().filter(|_| !is_loading) {
            recorded.push(RecordedEvent {
                address: address as u64,
                bytes: size,
                thread,
            });
        }
        let reads = self.stream.as_ref().filter(|_| !is_loading);
        let (asks_for_watch, misfit) = (blocks.asks_for_watch(), blocks.take_misfit());
        drop(state);
        if let Some(stream) = reads {
            stream.wake();
        }
        if asks_for_watch {
            (self.watch)();
        }
        if let (Some(misfit), Some(purpose)) = (misfit, &self.purpose) {
            say(&purpose.complaint(misfit, "a run"));
        }
        if address.is_null() {
            return Ok(Allocated::failed(&format!(
                "remat: there is no memory for {bytes} bytes"
            )));
        }
        Ok(Allocated::at(address))
    }
}

impl Counted for Session {
    fn figures(&self) -> AllocationCounts {
        let mut figures = self.state().blocks.figures();
        let counts = self.stream.as_ref().map(Stream::counts).unwrap_or_default();
        (figures.weights_asked_bytes, figures.weights_dropped_bytes) = counts;
        figures.shared_bytes = self.shared.map_or(0, Shared::bytes);
        figures
    }

    fn take_events(&self, most: usize) -> Vec<RecordedEvent> {
        let mut state = self.state();
        let recorded = state.recorded.as_mut();
        recorded.map_or_else(Vec::new, |recorded| {
            recorded.drain(..recorded.len().min(most)).collect()
        })
    }
}

unsafe extern "C" fn try_alloc(session: *mut Session, bytes: usize) -> Allocated {
    // SAFETY: the runtime hands back the address that it was given, which is that of a session that lives for ever.
    unsafe { &*session }.allocate(bytes)
}

throwing!(alloc, try_alloc, Session);

unsafe extern "C" fn reserve(session: *mut Session, bytes: usize) -> *mut c_void {
    if bytes == 0 {
        return null_mut();
    }
    let address = allocate(bytes);
    if !address.is_null() {
        // SAFETY: as in `try_alloc`.
        unsafe { &*session }
            .state()
            .blocks
            .adopt_reserved(address as usize, bytes as u64);
    }
    address
}

unsafe extern "C" fn free(session: *mut Session, address: *mut c_void) {
    if address.is_null() {
        return;
    }
    // SAFETY: as in `try_alloc`.
    let mut state = unsafe { &*session }.state();
    if let Some(recorded) = &mut state.recorded {
        recorded.push(RecordedEvent {
            address: address as u64,
            bytes: 0,
            thread: this_thread(),
        });
    }
    let was_in_a_block = state.blocks.free(address as usize);
    drop(state);
    if !was_in_a_block {
        // SAFETY: what is not in a block came from `allocate`, and the runtime frees it once.
        unsafe { release(address) };
    }
}

unsafe extern "C" fn info(session: *const Session) -> *const c_void {
    // SAFETY: as in `try_alloc`.
    unsafe { &*session }.environment.memory_info
}
