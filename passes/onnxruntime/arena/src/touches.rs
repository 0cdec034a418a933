//! Records which weights a run reads, in which order: the mappings of their file are closed, and the first access to each opens it again.
//!
//! Few mappings are open at one time, those that were read last, so that a weight that is read again much later is seen again. This takes the
//! signal of invalid accesses while it records, so it is for programs that record runs, and for no others.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::mapped::{Mapping, mappings};
use crate::uses::WeightUse;

/// So many mappings are open at one time.
const OPEN: usize = 8;
/// Most accesses that are recorded.
const MOST: usize = 1 << 16;
const SIGSEGV: c_int = 11;
const SA_SIGINFO: c_int = 4;
/// Where the address stands in what the system tells of an invalid access.
const ADDRESS_AT: usize = 16;

/// `struct sigaction` of Linux's C libraries on processors with 64 bits.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

// SAFETY: the C library of every Linux has these functions, with these signatures.
unsafe extern "C" {
    fn mprotect(address: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    fn sigaction(signal: c_int, action: *const Action, before: *mut Action) -> c_int;
}

/// What is recorded. The handler of the signal reads it without locks, so it lives for ever.
struct Table {
    /// By address; and whether each is closed.
    mappings: Vec<(Mapping, AtomicBool)>,
    /// Mappings by number, in the order of accesses.
    log: Vec<AtomicU32>,
    count: AtomicUsize,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
/// What was done with the signal before.
static BEFORE: Mutex<Option<Action>> = Mutex::new(None);
/// The same for the handler.
static OLD: AtomicPtr<Action> = AtomicPtr::new(null_mut());

fn protect(mapping: &Mapping, protection: c_int) {
    let addresses = &mapping.addresses;
    // SAFETY: the addresses are those of a mapping of the file of the weights, which lives while its session does, and the session
    // runs on behalf of who records it. A closed mapping is opened by the handler when it is accessed.
    unsafe { mprotect(addresses.start as *mut c_void, addresses.len(), protection) };
}

/// Begins to record which parts of a file are read.
pub(crate) fn begin(file: &Path) {
    end();
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    // They stand in the order of their addresses.
    let found = mappings(&file);
    let table: &Table = Box::leak(Box::new(Table {
        mappings: found
            .into_iter()
            .map(|mapping| (mapping, AtomicBool::new(true)))
            .collect(),
        log: (0..MOST).map(|_| AtomicU32::new(0)).collect(),
        count: AtomicUsize::new(0),
    }));
    let action = Action {
        handler: on_access as *const () as usize,
        mask: [0; 16],
        flags: SA_SIGINFO,
        restorer: 0,
    };
    let mut before = Action { handler: 0, ..action };
    let mut kept = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    TABLE.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
    // SAFETY: the handler has the signature that its flag says, and does only what handlers may; both structures live as long as the call.
    if unsafe { sigaction(SIGSEGV, &raw const action, &raw mut before) } != 0 {
        TABLE.store(null_mut(), Ordering::Release);
        return;
    }
    OLD.store(Box::leak(Box::new(before)), Ordering::Release);
    *kept = Some(before);
    table.mappings.iter().for_each(|(mapping, _)| protect(mapping, 0));
}

/// Ends it: what was read since [`begin`], in the order of accesses.
pub(crate) fn end() -> Vec<WeightUse> {
    let mut kept = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = kept.take() else { return Vec::new() };
    // SAFETY: it is null, or a table that lives for ever.
    let Some(table) = (unsafe { TABLE.load(Ordering::Acquire).as_ref() }) else {
        return Vec::new();
    };
    table
        .mappings
        .iter()
        .for_each(|(mapping, _)| protect(mapping, mapping.protection));
    // SAFETY: this is what the function gave when the handler was set.
    unsafe { sigaction(SIGSEGV, &raw const before, null_mut()) };
    let count = table.count.load(Ordering::Acquire).min(MOST);
    let one = |place: &AtomicU32| {
        let (mapping, _) = table.mappings.get(place.load(Ordering::Acquire) as usize)?;
        let bytes = mapping.addresses.len() as u64;
        Some(WeightUse {
            offset: mapping.offset,
            bytes,
        })
    };
    table.log[..count].iter().filter_map(one).collect()
}

unsafe extern "C" fn on_access(_signal: c_int, info: *const u8, _context: *mut c_void) {
    // SAFETY: the system tells the address at this place of what it hands over.
    let address = unsafe { info.add(ADDRESS_AT).cast::<usize>().read_unaligned() };
    // SAFETY: it is null, or a table that lives for ever.
    if unsafe { TABLE.load(Ordering::Acquire).as_ref() }.is_none_or(|table| !table.opens(address)) {
        let before = OLD.load(Ordering::Acquire);
        // SAFETY: this is what the function gave when the handler was set; the access is tried again, and ends as it would without this handler.
        unsafe { sigaction(SIGSEGV, before, null_mut()) };
    }
}

impl Table {
    /// Opens the mapping at an address, and notes the access; whether there is one.
    fn opens(&self, address: usize) -> bool {
        let place = self
            .mappings
            .partition_point(|(mapping, _)| mapping.addresses.end <= address);
        let Some((mapping, is_closed)) = self.mappings.get(place) else {
            return false;
        };
        if address < mapping.addresses.start {
            return false;
        }
        let was_closed = is_closed.swap(false, Ordering::AcqRel);
        protect(mapping, mapping.protection);
        if was_closed {
            let count = self.count.fetch_add(1, Ordering::AcqRel);
            if let Some(entry) = self.log.get(count) {
                entry.store(u32::try_from(place).unwrap_or(u32::MAX), Ordering::Release);
                self.close(count);
            }
        }
        true
    }

    /// Closes the mapping that was opened longest ago, where too many are open.
    fn close(&self, count: usize) {
        let Some(old) = count.checked_sub(OPEN).and_then(|at| self.log.get(at)) else {
            return;
        };
        if let Some((mapping, is_closed)) = self.mappings.get(old.load(Ordering::Acquire) as usize) {
            is_closed.store(true, Ordering::Release);
            protect(mapping, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::address_space::{self, PRIVATE};

    /// Bytes of a part: a multiple of every size of pages.
    const PART: usize = 1 << 16;

    #[test]
    fn accesses_are_noted_in_their_order_and_again_after_many_others() {
        const PARTS: usize = OPEN + 2;
        let path = std::env::temp_dir().join(format!("remat-touches-{}", std::process::id()));
        let content: Vec<u8> = (0..PARTS * PART)
            .map(|at| u8::try_from(at / PART).unwrap_or(0))
            .collect();
        std::fs::write(&path, content).expect("there is space");
        let file = File::open(&path).expect("it is there");
        let parts: Vec<*const u8> = (0..PARTS)
            .map(|part| {
                let start = address_space::map(PART, PRIVATE, Some(&file), (part * PART) as u64);
                start.expect("there is address space") as *const u8
            })
            .collect();
        // The kernel joins mappings that follow each other in memory and file alike; here each part lies below the one before.
        begin(&path);
        let order: Vec<usize> = (0..PARTS).rev().chain([PARTS - 1, PARTS - 1]).collect();
        for &part in &order {
            // SAFETY: the mapping has so many bytes, and the handler opens it.
            let read = unsafe { parts[part].add(PART / 2).read_volatile() };
            assert_eq!(usize::from(read), part);
        }
        let noted: Vec<usize> = end()
            .iter()
            .map(|part| usize::try_from(part.offset).unwrap_or(0) / PART)
            .collect();
        assert_eq!(noted, order[..=PARTS]);
        assert_eq!(end(), []);
        // SAFETY: as above.
        parts.iter().for_each(|&part| _ = unsafe { part.read_volatile() });
        std::fs::remove_file(&path).expect("it is there");
    }
}
