//! A sequence of requests, as a program makes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Allocator, Device, Figures, OutOfMemory, Settings};

/// What a program asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// A block under a name of the program's, for work of a stream.
    Malloc {
        /// The name.
        id: u64,
        /// Its bytes.
        bytes: u64,
        /// The stream.
        stream: u64,
    },
    /// The block of that name is freed. Where there is none, nothing happens.
    Free {
        /// The name.
        id: u64,
    },
    /// All goes back that can.
    EmptyCache,
}

/// What came of requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// At the end, with the peaks of the whole.
    pub figures: Figures,
    /// The request, from 0, after which most was given out.
    pub allocated_peak_at: usize,
    /// The request after which most was reserved.
    pub reserved_peak_at: usize,
    /// The request that failed, at which the sequence ends, and why.
    pub failed: Option<(usize, OutOfMemory)>,
}

/// Makes the requests on a device from which nothing is taken yet.
#[must_use]
pub fn simulate(settings: Settings, device: Device, requests: &[Request]) -> Outcome {
    let mut allocator = Allocator::new(settings, device);
    let mut addresses: BTreeMap<u64, u64> = BTreeMap::new();
    let mut outcome = Outcome {
        figures: Figures::default(),
        allocated_peak_at: 0,
        reserved_peak_at: 0,
        failed: None,
    };
    for (place, request) in requests.iter().enumerate() {
        match *request {
            Request::Malloc { id, bytes, stream } => match allocator.malloc(bytes, stream, None) {
                Ok(address) => {
                    addresses.insert(id, address);
                }
                Err(error) => {
                    outcome.failed = Some((place, error));
                    break;
                }
            },
            Request::Free { id } => {
                if let Some(address) = addresses.remove(&id) {
                    // It was given out there.
                    let _ = allocator.free(address);
                }
            }
            Request::EmptyCache => allocator.empty_cache(),
        }
        let figures = allocator.figures();
        if figures.allocated_peak > outcome.figures.allocated_peak {
            outcome.allocated_peak_at = place;
        }
        if figures.reserved_peak > outcome.figures.reserved_peak {
            outcome.reserved_peak_at = place;
        }
        outcome.figures = figures;
    }
    outcome.figures = allocator.figures();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn peaks_are_found_and_the_request_that_fails_ends_it() {
        let malloc = |id, mib: u64| Request::Malloc {
            id,
            bytes: mib * MB,
            stream: 0,
        };
        let requests = [
            malloc(1, 10),
            malloc(2, 30),
            Request::Free { id: 2 },
            Request::Free { id: 7 },
            malloc(3, 20),
            malloc(4, 100),
        ];
        let device = Device {
            total_bytes: 120 * MB,
            free_bytes: 100 * MB,
        };
        let outcome = simulate(Settings::default(), device, &requests[..5]);
        assert_eq!((outcome.allocated_peak_at, outcome.reserved_peak_at), (1, 1));
        assert_eq!(outcome.figures.allocated_peak, 40 * MB);
        let failed = simulate(Settings::default(), device, &requests).failed;
        assert_eq!(
            failed.map(|(place, error)| (place, error.requested)),
            Some((5, 100 * MB))
        );
    }
}
