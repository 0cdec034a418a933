//! The functions that C programs call.
//!
//! Arguments are copied before anything is planned, and results are written when everything went well: nothing is read and written at one time.

use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_int;

use remat_planner::Tries;
use remat_planner::order::{self, MOST_OPS, Network, OrderError};
use remat_planner::place::{self, Blocks, Fault, Options, PlaceError};

/// `enum remat_planner_result`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
enum Refusal {
    Pointer = 1,
    Lifetime,
    Alignment,
    TooLarge,
    TooMany,
    Number,
    Circle,
    Internal,
}

/// `remat_buffer`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buffer {
    /// Bytes.
    pub size: u64,
    /// The first time at which it is needed.
    pub begin: u64,
    /// The first time at which it is needed no more.
    pub end: u64,
}

/// `remat_value`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Value {
    /// Its bytes.
    pub bytes: u64,
    /// The op that makes it; [`u32::MAX`] for an input.
    pub producer: u32,
    /// Not 0 for what stays to the end.
    pub stays: u32,
}

/// `remat_pair`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pair {
    /// The op that reads or waits.
    pub op: u32,
    /// The value that it reads, or the op that it waits for.
    pub other: u32,
}

/// `remat_dag`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Dag {
    /// How many ops there are.
    pub op_count: usize,
    /// Bytes of each while it runs; may be null.
    pub workspace: *const u64,
    /// What they make.
    pub values: *const Value,
    /// How many of these there are.
    pub value_count: usize,
    /// Who reads what.
    pub reads: *const Pair,
    /// How many of these pairs there are.
    pub read_count: usize,
    /// Who runs after whom for another reason.
    pub after: *const Pair,
    /// How many of these pairs there are.
    pub after_count: usize,
}

/// Offsets of buffers in one block; the result is one of `enum remat_planner_result`.
///
/// # Safety
/// `buffers` points to `count` buffers and `offsets` to room for as many numbers, or they are null. `height` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remat_place(
    buffers: *const Buffer,
    count: usize,
    alignment: u64,
    effort: u64,
    offsets: *mut u64,
    height: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's.
        let buffers = unsafe { copied(buffers, count) }?;
        if offsets.is_null() && count > 0 {
            return Err(Refusal::Pointer);
        }
        let buffers: Vec<place::Buffer> = buffers
            .iter()
            .map(|buffer| place::Buffer {
                alignment,
                ..place::Buffer::new(buffer.size, buffer.begin..buffer.end)
            })
            .collect();
        let mut limits = Tries::at_most(effort.saturating_add(place::tries_of_passes(count)));
        let placed = place::place(&buffers, &Blocks::Lowest, Options::default(), &mut limits);
        let placed = placed.map_err(refusal)?;
        let found: Vec<u64> = placed.places.iter().flatten().map(|place| place.offset).collect();
        // SAFETY: the caller's; there are as many offsets as buffers.
        unsafe {
            write(&found, offsets);
            write(&[placed.height.unwrap_or_default()], height);
        }
        Ok(())
    })
}

/// The largest sum of sizes that are needed at one time; the result is one of `enum remat_planner_result`.
///
/// # Safety
/// `buffers` points to `count` buffers, or is null. `load` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remat_load(buffers: *const Buffer, count: usize, load: *mut u64) -> c_int {
    guarded(|| {
        // SAFETY: the caller's.
        let buffers = unsafe { copied(buffers, count) }?;
        if buffers.iter().any(|buffer| buffer.begin >= buffer.end) {
            return Err(Refusal::Lifetime);
        }
        let buffers = buffers.iter();
        let buffers: Vec<place::Buffer> = buffers
            .map(|buffer| place::Buffer::new(buffer.size, buffer.begin..buffer.end))
            .collect();
        // SAFETY: the caller's.
        unsafe { write(&[place::load(&buffers)], load) };
        Ok(())
    })
}

/// An order of all ops with a low peak; the result is one of `enum remat_planner_result`.
///
/// # Safety
/// `dag` is null or points to a graph whose arrays have as many elements as it says, or are null. `order` points to room for as many numbers as there are
/// ops, or is null. `peak` and `bound` are null or point to a number each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remat_order(
    dag: *const Dag,
    effort: u64,
    order: *mut u32,
    peak: *mut u64,
    bound: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's.
        let dag = *unsafe { copied(dag, 1) }?.first().ok_or(Refusal::Pointer)?;
        if order.is_null() && dag.op_count > 0 {
            return Err(Refusal::Pointer);
        }
        // SAFETY: the caller's.
        let network = unsafe { network(&dag) }?;
        let found = order::order(&network, &mut Tries::at_most(effort));
        // SAFETY: the caller's; there are as many numbers as ops.
        unsafe {
            write(&found.ops, order);
            write(&[found.peak], peak);
            write(&[found.bound], bound);
        }
        Ok(())
    })
}

/// # Safety
/// The arrays of the graph have as many elements as it says, or are null.
unsafe fn network(dag: &Dag) -> Result<Network, Refusal> {
    if dag.op_count > MOST_OPS {
        return Err(Refusal::TooMany);
    }
    let workspace = if dag.workspace.is_null() {
        vec![0; dag.op_count]
    } else {
        // SAFETY: the caller's.
        unsafe { copied(dag.workspace, dag.op_count) }?
    };
    // SAFETY: the caller's.
    let (values, reads, after) = unsafe {
        (
            copied(dag.values, dag.value_count)?,
            copied(dag.reads, dag.read_count)?,
            copied(dag.after, dag.after_count)?,
        )
    };
    let value = |value: &Value| order::Value {
        bytes: value.bytes,
        producer: Some(value.producer).filter(|&producer| producer != u32::MAX),
        stays: value.stays != 0,
    };
    let pairs = |pairs: &[Pair]| -> Vec<(u32, u32)> { pairs.iter().map(|pair| (pair.op, pair.other)).collect() };
    let network = Network::new(&order::Dag {
        workspace: &workspace,
        values: &values.iter().map(value).collect::<Vec<_>>(),
        reads: &pairs(&reads),
        after: &pairs(&after),
    });
    network.map_err(|error| match error {
        OrderError::NoOp(_) | OrderError::NoValue(_) => Refusal::Number,
        OrderError::Circle(_) => Refusal::Circle,
        OrderError::TooLarge => Refusal::TooLarge,
        OrderError::TooMany => Refusal::TooMany,
    })
}

fn refusal(error: PlaceError) -> Refusal {
    match error {
        PlaceError::Buffer(_, Fault::Lifetime) => Refusal::Lifetime,
        PlaceError::Buffer(_, Fault::Alignment) => Refusal::Alignment,
        PlaceError::Buffer(_, Fault::TooLarge) => Refusal::TooLarge,
        PlaceError::TooMany => Refusal::TooMany,
        // Neither gaps nor pins nor several blocks can be told.
        PlaceError::Buffer(..) | PlaceError::PinnedTogether(..) | PlaceError::NoBlock | PlaceError::Alignments => {
            Refusal::Internal
        }
    }
}

/// The elements of an array.
///
/// # Safety
/// `from` points to `count` elements, or is null.
unsafe fn copied<T: Copy>(from: *const T, count: usize) -> Result<Vec<T>, Refusal> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let bytes = count.checked_mul(size_of::<T>());
    if from.is_null() || bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Refusal::Pointer);
    }
    // SAFETY: it is not null, and the caller promises so many elements.
    Ok(unsafe { core::slice::from_raw_parts(from, count) }.to_vec())
}

/// Writes results, unless nobody wants them.
///
/// # Safety
/// `to` points to room for as many elements, or is null.
unsafe fn write<T: Copy>(found: &[T], to: *mut T) {
    if !to.is_null() {
        // SAFETY: the caller promises the room, and `found` is a vector of our own.
        unsafe { to.copy_from_nonoverlapping(found.as_ptr(), found.len()) }
    }
}

/// The code of what came of it. No panic gets out.
#[cfg(feature = "std")]
fn guarded(work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    let work = std::panic::AssertUnwindSafe(work);
    let result = std::panic::catch_unwind(work).unwrap_or(Err(Refusal::Internal));
    result.map_or_else(|refusal| refusal as c_int, |()| 0)
}

/// The code of what came of it. A panic ends in a function of the program.
#[cfg(not(feature = "std"))]
fn guarded(work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    work().map_or_else(|refusal| refusal as c_int, |()| 0)
}
