//! The functions for the CUDA provider, over a CUDA runtime without a device (`fake_cuda.c`).
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "functions with the interface of C")]

use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::{Library, Symbol};
use remat_onnxruntime_arena::{
    AllocationCounts, ArenaPlanFile, CudaFunctions, CudaSettings, Plans, RecordedEvent, remat_arena_events,
    remat_arena_stats, remat_cuda_close, remat_cuda_load_begins, remat_cuda_load_ends, remat_cuda_open,
};

/// Two weights of which one is larger than the alignment, and a temporary; runs of three buffers, the last an output.
const PLAN: &str = "remat-arena 2\nmodel blake3:00\nruntime 1.31.1\nlevel all\ncuda recorded\n\
    load buffers 3 orders 1 first 0\n1000 0 6 0 output\n5000 1 2 2\n100 3 6 1 output\n\
    plan buffers 3 orders 1 first 0\n4096 0 2 0\n300 1 4 1\n4000 3 4 0 output\n";
/// What stays of loading, and the block of runs: 4096 and 512 bytes.
const KEPT: u64 = 1024 + 256;
const RUN: u64 = 4096 + 512;
/// Loading needs more than that: the temporary lies behind the first weight, before the second one is there.
const WHOLE: u64 = 1024 + 5120;

/// A CUDA runtime of a test's own.
struct Fake {
    library: Library,
    path: CString,
    folder: PathBuf,
}

/// What the fake counts.
#[derive(Debug, PartialEq, Eq)]
struct Calls {
    mallocs: u64,
    frees: u64,
    bytes: u64,
    most: u64,
    wrong: u64,
    waits: u64,
    failed: u64,
    second: u64,
}

impl Fake {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "remat-cuda-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("there is space");
        let path = folder.join("libcudart.so");
        // Each has a file of its own, so that each counts for itself.
        std::fs::copy(compiled(), &path).expect("there is space");
        // SAFETY: it runs no code when it is loaded.
        let library = unsafe { Library::new(&path) }.expect("it is a library");
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zeros");
        Self { library, path, folder }
    }

    fn limit(&self, bytes: u64) {
        // SAFETY: the function has this type.
        let limit: Symbol<'_, unsafe extern "C" fn(usize)> = unsafe { self.library.get(b"fake_limit") }.expect("there");
        // SAFETY: as above.
        unsafe { limit(usize::try_from(bytes).expect("it fits")) };
    }

    fn calls(&self) -> Calls {
        let mut counts = [0u64; 8];
        // SAFETY: the function has this type.
        let count: Symbol<'_, unsafe extern "C" fn(*mut u64)> =
            unsafe { self.library.get(b"fake_counts") }.expect("it is there");
        // SAFETY: there is room for what it writes.
        unsafe { count(counts.as_mut_ptr()) };
        let [mallocs, frees, bytes, most, wrong, waits, failed, second] = counts;
        Calls {
            mallocs,
            frees,
            bytes,
            most,
            wrong,
            waits,
            failed,
            second,
        }
    }

    /// Functions for a plan.
    fn open(&self, plan: Option<&str>, device: i32) -> Result<Provider, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = plan.map(|text| {
            let path = self.folder.join(format!("{number}.arena"));
            std::fs::write(&path, text).expect("there is space");
            CString::new(path.as_os_str().as_encoded_bytes()).expect("no zeros")
        });
        let settings = CudaSettings {
            plan: file.as_deref().map_or(std::ptr::null(), CStr::as_ptr),
            library: self.path.as_ptr(),
            device,
            record: 1,
        };
        let mut functions = std::mem::MaybeUninit::uninit();
        // SAFETY: the settings are valid.
        let why = unsafe { remat_cuda_open(&raw const settings, functions.as_mut_ptr()) };
        if why.is_null() {
            // SAFETY: they were written.
            return Ok(Provider(unsafe { functions.assume_init() }));
        }
        // SAFETY: it is text.
        Err(unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn compiled() -> &'static PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libfakecudart.so");
        let options = [
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o",
        ];
        let source = own.join("tests/fake_cuda.c");
        let output = Command::new("cc")
            .args(options)
            .arg(&made)
            .arg(source)
            .output()
            .expect("`cc` runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        made
    })
}

/// Slots are of the process, and one test takes all of them.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The provider: it requests as one session does.
struct Provider(CudaFunctions);

impl Provider {
    fn alloc(&self, bytes: u64) -> u64 {
        // SAFETY: any thread may call it.
        unsafe { (self.0.alloc)(usize::try_from(bytes).expect("it fits")) as u64 }
    }

    fn free(&self, address: u64) {
        // SAFETY: it ignores what it never gave.
        unsafe { (self.0.free)(address as *mut c_void) }
    }

    fn empty_cache(&self) {
        // SAFETY: any thread may call it.
        unsafe { (self.0.empty_cache)() }
    }

    /// Loads a session of `PLAN`; its weights.
    fn load(&self) -> Vec<u64> {
        remat_cuda_load_begins(self.0.session);
        let first = self.alloc(1000);
        let temporary = self.alloc(5000);
        self.free(temporary);
        let second = self.alloc(100);
        remat_cuda_load_ends(self.0.session);
        vec![first, second]
    }

    /// A run of `PLAN`: the places of its buffers, of which the last is held.
    fn run(&self) -> [u64; 3] {
        let first = self.alloc(4096);
        let second = self.alloc(300);
        self.free(first);
        let output = self.alloc(4000);
        self.free(second);
        [first, second, output]
    }

    fn figures(&self) -> AllocationCounts {
        let mut figures = AllocationCounts::default();
        // SAFETY: there is room for what it writes.
        unsafe { remat_arena_stats(self.0.session, &raw mut figures, size_of::<AllocationCounts>()) };
        figures
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        remat_cuda_close(self.0.session);
    }
}

#[test]
fn weights_and_runs_lie_at_their_offsets_in_one_block_which_goes_with_the_session() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(Some(PLAN), -1).expect("it opens");
    let weights = provider.load();
    let base = weights[0];
    assert_eq!((base % 256, &weights[..]), (0, &[base, base + 1024][..]));
    let mut held = 0;
    for _ in 0..3 {
        provider.free(held);
        let found = provider.run();
        assert_eq!(found, [base + KEPT, base + KEPT + 4096, base + KEPT]);
        held = found[2];
    }
    let calls = fake.calls();
    assert_eq!((calls.mallocs, calls.bytes, calls.waits), (1, WHOLE, 0));
    let figures = provider.figures();
    assert_eq!((figures.at_load, figures.placed, figures.runs), (3, 9, 3));
    assert_eq!((figures.missed, figures.refused, figures.outside_bytes), (0, 0, 0));
    assert_eq!((figures.block_bytes, figures.used_bytes), (WHOLE, WHOLE));
    weights.into_iter().for_each(|weight| provider.free(weight));
    assert_eq!(fake.calls().bytes, WHOLE, "an output is held");
    provider.free(held);
    assert_eq!((fake.calls().bytes, fake.calls().frees, fake.calls().wrong), (0, 1, 0));
}

#[test]
fn what_the_plan_does_not_foresee_has_memory_of_its_own_and_is_counted() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(Some(PLAN), -1).expect("it opens");
    let weights = provider.load();
    let first = provider.alloc(4096);
    // A workspace that was not there when requests were recorded, and then what was.
    let workspace = provider.alloc(12_345);
    assert!(!(weights[0]..weights[0] + WHOLE).contains(&workspace));
    provider.free(workspace);
    provider.empty_cache();
    let second = provider.alloc(300);
    assert_eq!((first, second), (weights[0] + KEPT, weights[0] + KEPT + 4096));
    let figures = provider.figures();
    assert_eq!((figures.missed, figures.outside_bytes), (1, 0));
    assert_eq!(figures.most_outside_bytes, 12_345);
    assert_eq!((fake.calls().bytes, fake.calls().most), (WHOLE, WHOLE + 12_345));
    // Nobody has it: it is not handed to the device.
    provider.free(0xdead_0000);
    provider.free(0);
    assert_eq!(fake.calls().wrong, 0);
    assert_eq!(provider.alloc(0), 0);
}

#[test]
fn without_a_plan_everything_has_memory_of_its_own_and_is_recorded() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(None, -1).expect("it opens");
    let weights = provider.load();
    let [.., output] = provider.run();
    let mut events = [RecordedEvent {
        address: 0,
        bytes: 0,
        thread: 0,
    }; 16];
    let number = usize::try_from(provider.0.session).expect("it is one");
    // SAFETY: there is room for so many.
    let found = unsafe { remat_arena_events(number, events.as_mut_ptr(), events.len()) };
    let bytes: Vec<u64> = events[..found].iter().map(|event| event.bytes).collect();
    assert_eq!(bytes, [1000, 5000, 0, 100, 4096, 300, 0, 4000, 0]);
    let figures = provider.figures();
    assert_eq!((figures.at_load, figures.missed, fake.calls().mallocs), (3, 3, 6));
    [weights, vec![output]]
        .concat()
        .into_iter()
        .for_each(|one| provider.free(one));
    assert_eq!((fake.calls().bytes, fake.calls().frees), (0, 6));
}

#[test]
fn a_device_without_room_gives_null_and_a_block_that_does_not_fit_is_done_without() {
    let _alone = alone();
    let fake = Fake::new();
    // Room for the weights and each buffer, and not for the block.
    fake.limit(WHOLE - 1);
    let provider = fake.open(Some(PLAN), -1).expect("it opens");
    let weights = provider.load();
    assert!(weights.iter().all(|&weight| weight != 0));
    assert_eq!(provider.alloc(1 << 20), 0);
    assert!(fake.calls().failed >= 2);
    let [first, ..] = provider.run();
    assert_ne!(first, 0);
    // The device forgets that it had none.
    // SAFETY: the function has this type.
    let last: Symbol<'_, unsafe extern "C" fn() -> i32> =
        unsafe { fake.library.get(b"cudaGetLastError") }.expect("it is there");
    // SAFETY: as above.
    assert_eq!(unsafe { last() }, 0);
}

#[test]
fn memory_is_that_of_the_device_that_is_said_and_threads_keep_theirs() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(Some(PLAN), 1).expect("it opens");
    let weights = provider.load();
    assert_eq!(fake.calls().second, WHOLE);
    // SAFETY: the function has this type.
    let device: Symbol<'_, unsafe extern "C" fn(*mut i32) -> i32> =
        unsafe { fake.library.get(b"cudaGetDevice") }.expect("it is there");
    let mut now = -1;
    // SAFETY: there is room for a number.
    assert_eq!((unsafe { device(&raw mut now) }, now), (0, 0));
    weights.into_iter().for_each(|weight| provider.free(weight));
    // There is no such device: nothing can be had.
    let none = fake.open(Some(PLAN), 7).expect("it opens");
    assert_eq!(none.alloc(4096), 0);
}

#[test]
fn runs_of_many_threads_and_two_sessions_never_overlap() {
    const THREADS: usize = 8;
    const RUNS: usize = 200;
    let _alone = alone();
    let fake = Fake::new();
    let providers = [(); 2].map(|()| fake.open(Some(PLAN), -1).expect("it opens"));
    let weights = providers.each_ref().map(Provider::load);
    let live: Mutex<std::collections::BTreeMap<u64, u64>> = Mutex::default();
    let take = |provider: &Provider, bytes: u64| {
        let address = provider.alloc(bytes);
        assert_eq!(address % 256, 0);
        let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
        let below = live
            .range(..address + bytes)
            .next_back()
            .map(|(&start, &bytes)| start + bytes);
        assert!(below.is_none_or(|end| end <= address));
        live.insert(address, bytes);
        address
    };
    let give = |provider: &Provider, address: u64| {
        live.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        provider.free(address);
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (provider, take, give) = (&providers[thread % 2], &take, &give);
            scope.spawn(move || {
                for run in 0..RUNS {
                    let first = take(provider, 4096);
                    // Some runs need something that no plan has.
                    let extra = (run % 7 == thread).then(|| take(provider, 777));
                    let second = take(provider, 300);
                    give(provider, first);
                    let output = take(provider, 4000);
                    give(provider, second);
                    extra.into_iter().for_each(|extra| give(provider, extra));
                    give(provider, output);
                }
            });
        }
    });
    for (provider, weights) in providers.iter().zip(weights) {
        let figures = provider.figures();
        assert_eq!(figures.runs, (THREADS * RUNS / 2) as u64);
        assert_eq!(figures.placed, figures.runs * 3);
        assert!(figures.most_blocks <= THREADS as u64 / 2);
        weights.into_iter().for_each(|weight| provider.free(weight));
    }
    let calls = fake.calls();
    assert_eq!((calls.bytes, calls.wrong), (0, 0));
}

#[test]
fn sessions_of_the_same_options_have_weights_apart_and_take_turns_in_the_block_of_runs() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(Some(PLAN), -1).expect("it opens");
    let weights = [provider.load(), provider.load()];
    // The second session loads into a block of its own, without room for runs.
    assert_eq!(fake.calls().bytes, 2 * WHOLE);
    let [first, _, output] = provider.run();
    assert_eq!(first, weights[0][0] + KEPT);
    provider.free(output);
    weights[0].iter().for_each(|&weight| provider.free(weight));
    assert_eq!(fake.calls().bytes, 2 * WHOLE, "runs go on in it");
    let [_, _, output] = provider.run();
    provider.free(output);
    weights[1].iter().for_each(|&weight| provider.free(weight));
    assert_eq!(fake.calls().bytes, 0);
}

#[test]
fn a_block_that_goes_to_another_thread_waits_for_the_device() {
    let _alone = alone();
    let fake = Fake::new();
    let provider = fake.open(Some(PLAN), -1).expect("it opens");
    let weights = provider.load();
    let run = || provider.free(provider.run()[2]);
    run();
    run();
    assert_eq!(fake.calls().waits, 0);
    std::thread::scope(|scope| scope.spawn(run).join().expect("it runs"));
    assert_eq!((fake.calls().waits, fake.calls().bytes), (1, WHOLE));
    weights.into_iter().for_each(|weight| provider.free(weight));
}

#[test]
fn plans_that_are_for_something_else_are_declined_and_functions_come_back() {
    let _alone = alone();
    let fake = Fake::new();
    let (head, runs) = PLAN.split_once("cuda recorded").expect("it has such a line");
    let (_, runs) = runs.split_once("plan ").expect("it has one");
    let processor = format!("{head}plan {runs}");
    let why = fake.open(Some(&processor), -1).err().expect("it is declined");
    assert!(why.contains("is a plan for the processor"), "{why}");
    let why = fake.open(Some("remat-arena 1\n"), -1).err().expect("it is declined");
    assert!(why.contains("line 1"), "{why}");
    let mut open = Vec::new();
    let why = loop {
        match fake.open(None, -1) {
            Ok(provider) => open.push(provider),
            Err(why) => break why,
        }
    };
    assert!(why.contains("64 sets of functions"), "{why}");
    // One that still has something keeps its functions.
    let held = open[0].alloc(64);
    assert_ne!(held, 0);
    let first = open.remove(0);
    let function = first.0.free;
    drop(first);
    assert!(fake.open(None, -1).is_err());
    // SAFETY: it is that of the one that was closed.
    unsafe { function(held as *mut c_void) };
    assert!(fake.open(None, -1).is_ok());
}

#[test]
fn a_prediction_of_the_offsets_is_what_the_functions_give() {
    let file = ArenaPlanFile::parse(PLAN).expect("it is well-formed");
    let (runs, load) = (Plans::new(&file), Plans::new(&file.of_load().expect("it has one")));
    assert_eq!((runs.block_bytes(), load.block_bytes()), (RUN, WHOLE));
    let shape = runs.shape(0, &[]).expect("it is small");
    assert_eq!(shape.offsets(), [Some(0), Some(4096), Some(0)]);
}
