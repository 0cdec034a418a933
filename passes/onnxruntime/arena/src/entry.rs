//! The functions that others call: the runtime when it registers the library, and programs that ask how it went.
//!
//! A panic never crosses them: a function with the interface of C ends the process instead, and the library is built to do so at once.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use crate::api::{Api, ApiBase, Status, text, version};
use crate::counted;
use crate::counts::{AllocationCounts, RecordedEvent};
use crate::cuda::{self, DeviceSession};
use crate::failing::can_fail;
use crate::limit::Limit;
use crate::memory::trim_heap;
use crate::messages::{Purpose, pass_on, say};
use crate::paging::{self, Store};
use crate::plans::Plans;
use crate::read::read_plan;
use crate::session::{Environment, Options, Session};
use crate::share::Shared;
use crate::stream::Stream;
use crate::uses::WeightUse;
use crate::{touches, watch};

/// The plans that a session follows: a file.
const PLAN: &CStr = c"remat.arena.plan";
/// `1`: the allocations of the session are recorded.
const RECORD: &CStr = c"remat.arena.record";
/// `1`, with records: the memory pattern stays as the session sets it.
const PATTERN: &CStr = c"remat.arena.pattern";
/// The number that `remat_cuda_open` gave: sessions of these options have the CUDA provider with its functions.
const CUDA: &CStr = c"remat.arena.cuda";
/// `0`: blocks lie in small pages.
const HUGE_PAGES: &CStr = c"remat.arena.huge_pages";
/// The least severity, from 0 to 4, of messages of the runtime that are printed [default: 2, warnings].
const LOG: &CStr = c"remat.arena.log";
/// `0`: the runtime's log function is left alone.
const HOOK: &CStr = c"remat.arena.hook";

/// The most bytes of the process with which runs of the session go on: what runs of all sessions use, outside of blocks, too, but not what
/// sessions allocate while they load.
const LIMIT: &CStr = c"remat.arena.limit";
/// `wait`, until other runs made room, or `fail` [default: wait].
const ACTION: &CStr = c"remat.arena.limit.action";

/// The most bytes of the file of the weights that stay in the memory, where the plan says which of them runs read.
const RESIDENT: &CStr = c"remat.weights.resident";

/// With which other sessions its runs have one block: `process`, all of this process that say so, or the absolute path of a file, all of the machine
/// that name it.
const SHARE: &CStr = c"remat.arena.share";

/// The oldest runtime that lets an allocator take the place of another one.
const OLDEST: [u32; 2] = [1, 23];

/// Called by the runtime when the library is registered in session options.
///
/// # Safety
/// The arguments are what the runtime hands to libraries of custom operators.
#[cfg_attr(arena_library, unsafe(no_mangle))]
#[expect(non_snake_case, reason = "the runtime looks for this name")]
pub unsafe extern "C" fn RegisterCustomOps(options: *mut c_void, base: *const ApiBase) -> *mut c_void {
    // SAFETY: the caller's.
    let (version, api) = unsafe { (version(base), Api::of(base)) };
    let Some(api) = api.filter(|_| is_known(&version)) else {
        let [major, minor] = OLDEST;
        say(&format!(
            "ONNX Runtime {version} is older than {major}.{minor}: the session runs without the plan"
        ));
        return null_mut();
    };
    register(api, options, &version).err().unwrap_or_else(null_mut)
}

/// Gives the session the operators of pages, and, where it follows a plan or is recorded, an allocator and what that takes.
fn register(api: Api, options: *mut c_void, version: &str) -> Result<(), Status> {
    if let Some(number) = api.entry(options, CUDA) {
        return cuda::listen(api, options, &number);
    }
    let is = |key: &CStr, value: &str| api.entry(options, key).as_deref() == Some(value);
    let resident = api.entry(options, RESIDENT);
    let resident = resident.map(|text| number_of_bytes("remat.weights.resident", &text));
    let resident = resident.transpose().map_err(|why| api.error(&why))?;
    let mut stream = None;
    let (plans, purpose) = match api.entry(options, PLAN) {
        Some(path) => {
            let file = read_plan(&path).map_err(|why| api.error(&format!("remat: {path}: {why}")))?;
            if file.cuda.is_some() {
                return Err(api.error(&format!(
                    "remat: {path} is for the CUDA provider: open it with `remat_cuda_open`"
                )));
            }
            if file.is_paged {
                paging::register(api, options)?;
            }
            if file.runtime != version {
                say(&format!(
                    "{path} was made in ONNX Runtime {}, this is {version}: it may not fit",
                    file.runtime
                ));
            }
            match (&file.weights, resident) {
                (Some(weights), Some(budget)) => {
                    let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
                    stream = Some(Stream::new(folder, weights, budget));
                }
                (None, Some(budget)) => say(&format!(
                    "{path} does not say which weights runs read: remat.weights.resident = {budget} does nothing"
                )),
                (_, None) => {}
            }
            (Plans::new(&file), Some(Purpose::new(&path, &file)))
        }
        None => {
            // It may be made for the operators only.
            paging::register(api, options)?;
            if !is(RECORD, "1") {
                return Ok(());
            }
            (Plans::default(), None)
        }
    };
    let severity = api.entry(options, LOG).and_then(|text| text.parse().ok()).unwrap_or(2);
    let (limit, waits) = limit(
        api.entry(options, LIMIT).as_deref(),
        api.entry(options, ACTION).as_deref(),
    )
    .map_err(|why| api.error(&why))?;
    let shared = api.entry(options, SHARE);
    if shared.is_some() && limit.is_some() {
        return Err(
            api.error("remat: remat.arena.share and remat.arena.limit: runs that share a block have no other limit")
        );
    }
    let shared = shared.map(|entry| Shared::find(&entry)).transpose();
    let shared = shared.map_err(|why| api.error(&why))?;
    let environment = Environment::of(api)?;
    let wanted = Options {
        plans,
        purpose,
        huge_pages: !is(HUGE_PAGES, "0"),
        limit,
        waits,
        shared,
        records: is(RECORD, "1"),
        severity,
        stream,
        watch: watch::start,
    };
    let session = Session::create(environment, wanted);
    let mut steps = vec![
        session.register_first(),
        api.set_entry(options, c"session.use_env_allocators", c"1"),
    ];
    if !(is(RECORD, "1") && is(PATTERN, "1")) {
        steps.push(api.disable_memory_pattern(options));
    }
    if !is(HOOK, "0") {
        steps.push(api.log_to(options, log, std::ptr::from_ref(session).cast_mut().cast()));
    }
    match steps.into_iter().find(|status| !status.is_null()) {
        Some(failed) => Err(failed),
        None => Ok(()),
    }
}

/// The limit of a session, and whether its runs wait, as its entries say.
fn limit(bytes: Option<&str>, action: Option<&str>) -> Result<(Option<u64>, bool), String> {
    let waits = match action {
        None | Some("wait") => true,
        Some("fail") => false,
        Some(other) => {
            return Err(format!(
                "remat: remat.arena.limit.action: `{other}` is neither `wait` nor `fail`"
            ));
        }
    };
    let Some(text) = bytes else {
        return Ok((None, waits));
    };
    let bytes = number_of_bytes("remat.arena.limit", text)?;
    if !can_fail() {
        return Err("remat: remat.arena.limit: here a run cannot be ended, for want of libstdc++.so.6".to_owned());
    }
    Ok((Some(bytes), waits))
}

/// The number of bytes that an entry says.
fn number_of_bytes(key: &str, text: &str) -> Result<u64, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = text
        .parse()
        .ok()
        .filter(|&bytes: &u64| is_plain && 0 < bytes && bytes < u64::MAX);
    bytes.ok_or_else(|| format!("remat: {key}: `{text}` is not a number of bytes"))
}

/// Whether a version such as `1.31.1` is one that the library works with.
fn is_known(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= OLDEST
}

/// The messages of a session: they say when it takes its allocator and when it is loaded. Those that a user wants to see go on.
unsafe extern "C" fn log(
    session: *mut c_void,
    severity: c_int,
    _category: *const c_char,
    id: *const c_char,
    place: *const c_char,
    message: *const c_char,
) {
    // SAFETY: the runtime hands back what `register` gave it, which lives for ever.
    let session: &Session = unsafe { &*session.cast() };
    // SAFETY: the runtime's texts end in a zero and live as long as the call.
    let [id, place, message] =
        [id, place, message].map(|given| unsafe { text(given) }.unwrap_or_default().to_string_lossy());
    session.learn(&message);
    if message.starts_with("This session will use the allocator registered") {
        session.load_begins();
    } else {
        session.has_taken();
    }
    if message.starts_with("Session successfully initialized") {
        session.load_ends();
    }
    pass_on(severity, session.severity, &id, &place, &message);
}

/// Writes the figures of the `session`-th registered session options, or of all together where it is negative, to the first `bytes` bytes of
/// `figures`. How many bytes were written; 0 where there are no such options.
///
/// # Safety
/// `figures` points to that many bytes, aligned for 64-bit numbers.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub unsafe extern "C" fn remat_arena_stats(session: i64, figures: *mut AllocationCounts, bytes: usize) -> usize {
    let sessions = counted::all();
    let mut sum = AllocationCounts::default();
    match usize::try_from(session) {
        Ok(place) => match sessions.get(place) {
            Some(session) => sum = session.figures(),
            None => return 0,
        },
        Err(_) => {
            sessions.iter().for_each(|session| sum.add(&session.figures()));
            (sum.reserved_bytes, sum.most_reserved_bytes) = Limit::of_process().reserved();
            sum.shared_bytes = Shared::all_bytes();
        }
    }
    let moved = Store::moved();
    (sum.paged_out_bytes, sum.paged_in_bytes) = (moved.out, moved.back);
    (sum.second_memory_bytes, sum.most_second_memory_bytes) = (moved.held, moved.most);
    let bytes = bytes.min(size_of::<AllocationCounts>());
    // SAFETY: the caller gives room for so many bytes, and the sum has them.
    unsafe { std::ptr::copy_nonoverlapping((&raw const sum).cast::<u8>(), figures.cast::<u8>(), bytes) };
    bytes
}

/// All sessions give the memory of their blocks back to the system that neither a live buffer nor a run that goes on needs; how many bytes
/// that were. So does the heap of the process with what nobody uses, which does not count.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub extern "C" fn remat_arena_trim() -> u64 {
    let bytes = Session::trim_all() + DeviceSession::trim_all();
    trim_heap();
    bytes
}

/// Moves up to `most` recorded events of the `session`-th registered session options, the oldest first, to `events`. How many they were.
///
/// # Safety
/// `events` points to room for so many.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub unsafe extern "C" fn remat_arena_events(session: usize, events: *mut RecordedEvent, most: usize) -> usize {
    let Some(&session) = counted::all().get(session) else {
        return 0;
    };
    let recorded = session.take_events(most);
    for (place, event) in recorded.iter().take(most).enumerate() {
        // SAFETY: the caller gives room for `most`, and `place` is below that.
        unsafe { events.add(place).write(*event) };
    }
    recorded.len().min(most)
}

/// Begins to record which parts of a file runs of this process read that is mapped by sessions: the next access to each of its mappings is noted. Only
/// for programs that record runs, one at a time: it takes the signal of invalid accesses.
///
/// # Safety
/// `file` is a path that ends in a zero.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub unsafe extern "C" fn remat_arena_weights_begin(file: *const c_char) {
    // SAFETY: the caller's.
    let file = unsafe { CStr::from_ptr(file) };
    touches::begin(Path::new(OsStr::from_bytes(file.to_bytes())));
}

/// Ends what [`remat_arena_weights_begin`] began: up to `most` parts of the file that were read, in the order in which each was begun, are written
/// to `weights`. How many there are.
///
/// # Safety
/// `weights` points to room for `most`.
#[cfg_attr(arena_library, unsafe(no_mangle))]
pub unsafe extern "C" fn remat_arena_weights(weights: *mut WeightUse, most: usize) -> usize {
    let found = touches::end();
    for (place, part) in found.iter().take(most).enumerate() {
        // SAFETY: the caller gives room for `most`, and `place` is below that.
        unsafe { weights.add(place).write(*part) };
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_no_bytes_are_declined() {
        for wrong in [
            "",
            "0",
            "-1",
            "+1",
            "1.5",
            "1e9",
            "64 MiB",
            "18446744073709551615",
            "99999999999999999999",
        ] {
            assert!(
                limit(Some(wrong), None).is_err_and(|why| why.contains("is not a number of bytes")),
                "{wrong}"
            );
            let resident = number_of_bytes("remat.weights.resident", wrong);
            assert!(
                resident.is_err_and(|why| why.contains("remat.weights.resident: `")),
                "{wrong}"
            );
        }
        assert!(limit(Some("1"), Some("waits")).is_err_and(|why| why.contains("neither")));
        assert_eq!(limit(None, Some("fail")), Ok((None, false)));
        assert_eq!(limit(None, None), Ok((None, true)));
    }

    #[test]
    fn versions_before_1_23_are_declined() {
        for (version, is_new) in [
            ("1.31.1", true),
            ("1.23.0", true),
            ("1.22.2", false),
            ("2.0.0", true),
            ("", false),
        ] {
            assert_eq!(is_known(version), is_new, "{version}");
        }
    }
}
