//! PyTorch's caching allocator, simulated, for Python.

use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remat_pytorch_allocator::{Device, Entry, Figures, Outcome, Request, Settings};

/// Figures by name.
type Counts = BTreeMap<&'static str, u64>;

/// What came of requests: the figures, where most was allocated and reserved, and what failed.
type Simulated = (Counts, (usize, usize), Option<(usize, String)>);

/// Makes requests on a device from which nothing is taken yet. `requests`: the name of a block with its bytes, which are negative where it is freed.
/// The figures by name, the places of the requests after which most was allocated and reserved, and that of the one that failed, with why.
///
/// `ValueError` for settings that PyTorch refuses or nobody simulates.
#[pyfunction]
#[pyo3(signature = (settings, total_bytes, free_bytes, requests, allowed_bytes=None))]
#[expect(clippy::needless_pass_by_value, reason = "an interpreter hands over values")]
pub(crate) fn simulate_allocations(
    py: Python<'_>,
    settings: &str,
    total_bytes: u64,
    free_bytes: u64,
    requests: Vec<(u64, i64)>,
    allowed_bytes: Option<u64>,
) -> PyResult<Simulated> {
    let settings = parsed(settings, allowed_bytes)?;
    let device = Device {
        total_bytes,
        free_bytes,
    };
    let requests = requests
        .iter()
        .map(|&(id, bytes)| match u64::try_from(bytes) {
            Ok(bytes) => Request::Malloc { id, bytes, stream: 0 },
            Err(_) => Request::Free { id },
        })
        .collect::<Vec<_>>();
    Ok(simulated(py, settings, device, &requests))
}

/// Asks for what a recorded program asked for, with settings of another run. `entries`: as of [`replay_allocations`]. As [`simulate_allocations`].
///
/// `ValueError` for settings that PyTorch refuses or nobody simulates.
#[pyfunction]
#[pyo3(signature = (settings, total_bytes, free_bytes, entries, allowed_bytes=None))]
pub(crate) fn rerun_allocations(
    py: Python<'_>,
    settings: &str,
    total_bytes: u64,
    free_bytes: u64,
    entries: Vec<(String, u64, u64, u64)>,
    allowed_bytes: Option<u64>,
) -> PyResult<Simulated> {
    let settings = parsed(settings, allowed_bytes)?;
    let device = Device {
        total_bytes,
        free_bytes,
    };
    let requests = remat_pytorch_allocator::requests(&recorded(entries));
    Ok(simulated(py, settings, device, &requests))
}

fn simulated(py: Python<'_>, settings: Settings, device: Device, requests: &[Request]) -> Simulated {
    let found: Outcome = py.detach(|| remat_pytorch_allocator::simulate(settings, device, requests));
    let failed = found.failed.map(|(place, why)| (place, why.to_string()));
    (
        counts(&found.figures),
        (found.allocated_peak_at, found.reserved_peak_at),
        failed,
    )
}

fn recorded(entries: Vec<(String, u64, u64, u64)>) -> Vec<Entry> {
    let entries = entries.into_iter().map(|(action, address, bytes, stream)| Entry {
        action,
        address,
        bytes,
        stream,
    });
    entries.collect()
}

/// Does what a recorded program did, and compares all that its allocator did. `entries`: action, address, bytes and stream, as in the `device_traces` of
/// a snapshot. The figures at each entry `snapshot`, those at the end, and the segments then: address, bytes, and their blocks' bytes with whether they
/// are given out.
///
/// `ValueError` for settings that nobody simulates, and at the first entry at which record and simulation part.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "an interpreter takes tuples")]
pub(crate) fn replay_allocations(
    py: Python<'_>,
    settings: &str,
    total_bytes: u64,
    free_bytes: u64,
    entries: Vec<(String, u64, u64, u64)>,
) -> PyResult<(Vec<Counts>, Counts, Vec<(u64, u64, Vec<(u64, bool)>)>)> {
    let settings = parsed(settings, None)?;
    let device = Device {
        total_bytes,
        free_bytes,
    };
    let entries = recorded(entries);
    let found = py.detach(|| remat_pytorch_allocator::replay(settings, device, &entries));
    let found = found.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let segments = found.segments.into_iter().map(|segment| {
        let blocks = segment.blocks.iter().map(|block| (block.bytes, block.is_active));
        (segment.address, segment.bytes, blocks.collect())
    });
    Ok((
        found.snapshots.iter().map(counts).collect(),
        counts(&found.figures),
        segments.collect(),
    ))
}

/// The block that a request gets, in bytes. `ValueError` as for [`simulate_allocations`].
#[pyfunction]
pub(crate) fn rounded_allocation(settings: &str, bytes: u64) -> PyResult<u64> {
    Ok(remat_pytorch_allocator::rounded(&parsed(settings, None)?, bytes))
}

fn parsed(settings: &str, allowed_bytes: Option<u64>) -> PyResult<Settings> {
    let settings = Settings::parse(settings).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Settings {
        allowed_bytes,
        ..settings
    })
}

fn counts(figures: &Figures) -> Counts {
    BTreeMap::from([
        ("allocated", figures.allocated),
        ("allocated_peak", figures.allocated_peak),
        ("requested", figures.requested),
        ("requested_peak", figures.requested_peak),
        ("reserved", figures.reserved),
        ("reserved_peak", figures.reserved_peak),
        ("segments_taken", figures.segments_taken),
    ])
}
