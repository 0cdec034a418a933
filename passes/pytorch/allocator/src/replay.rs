//! A recorded sequence, held against the simulation.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::memory::MOST_BYTES;
use crate::{Allocator, Device, Event, Figures, Request, Segment, Settings};

/// An entry of a record, as PyTorch's snapshots have it in `device_traces`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// `alloc`, `free_requested`, `free_completed`, `segment_alloc`, `segment_free`, `segment_map`, `segment_unmap`, `snapshot` or `oom`.
    pub action: String,
    /// Where.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The stream.
    pub stream: u64,
}

/// What the simulation did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Replayed {
    /// The figures at each `snapshot`, in order.
    pub snapshots: Vec<Figures>,
    /// The figures at the end.
    pub figures: Figures,
    /// The segments at the end.
    pub segments: Vec<Segment>,
}

/// Where the simulation and the record part.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("entry {entry}: recorded {recorded}, simulated {simulated}")]
pub struct Divergence {
    /// The place in the record, from 0.
    pub entry: usize,
    /// What the record has.
    pub recorded: String,
    /// What the simulation has.
    pub simulated: String,
}

/// Does what a program did, and compares all that the allocator did: which block each request got, what was taken from the device and what went back.
/// New segments lie where they were.
///
/// # Errors
/// [`Divergence`] at the first entry that differs.
pub fn replay(settings: Settings, device: Device, entries: &[Entry]) -> Result<Replayed, Divergence> {
    let mut allocator = Allocator::new(settings, device);
    let mut snapshots = Vec::new();
    // What the allocator did and the record does not have yet.
    let mut ahead: std::collections::VecDeque<Event> = std::collections::VecDeque::new();
    for (place, entry) in entries.iter().enumerate() {
        let diverges = |simulated: String| Divergence {
            entry: place,
            recorded: format!("{} {:#x} {}", entry.action, entry.address, entry.bytes),
            simulated,
        };
        if entry.address.max(entry.bytes) > MOST_BYTES {
            return Err(diverges("no device has such an address, or so many bytes".to_owned()));
        }
        let expected = event(entry);
        if expected.is_some() && ahead.is_empty() {
            // The request that leads to it stands behind it.
            let next = entries[place..]
                .iter()
                .find(|entry| !entry.action.starts_with("segment_"));
            match next.filter(|next| next.action == "alloc") {
                Some(request) if !gives_back(entry) => {
                    allocator.memory.next_address = first_address(&entries[place..]);
                    allocator
                        .malloc(request.bytes, request.stream, None)
                        .map_err(|error| diverges(error.to_string()))?;
                    allocator.memory.next_address = None;
                }
                _ => allocator.empty_cache(),
            }
            ahead.extend(allocator.take_events());
        }
        if let Some(expected) = expected {
            let found = ahead.pop_front();
            if found != Some(expected) {
                return Err(diverges(
                    found.map_or("nothing".to_owned(), |found| format!("{found:x?}")),
                ));
            }
            continue;
        }
        if let Some(more) = ahead.pop_front() {
            return Err(diverges(format!("{more:x?}")));
        }
        let done = match entry.action.as_str() {
            "free_requested" => {
                let is_used = !matches!(entries.get(place + 1), Some(next) if next.action == "free_completed" && next.address == entry.address);
                if is_used {
                    // By a stream that the record does not name.
                    allocator
                        .record_stream(entry.address, u64::MAX)
                        .and_then(|()| allocator.free(entry.address))
                } else {
                    allocator.free(entry.address)
                }
            }
            "free_completed" if is_awaited(entries, place) => allocator.complete(entry.address),
            "snapshot" => {
                snapshots.push(allocator.figures());
                Ok(())
            }
            _ => Ok(()),
        };
        done.map_err(|error| diverges(error.to_string()))?;
        ahead.extend(allocator.take_events());
    }
    Ok(Replayed {
        snapshots,
        figures: allocator.figures(),
        segments: allocator.segments(),
    })
}

/// What a program asked for, as a record has it: [`crate::simulate`] says what that takes with other settings. A block is named by its address, and
/// is free once the streams that use it are done. What the allocator gave back is what it gives back, since a record does not tell whether the program
/// wished it.
#[must_use]
pub fn requests(entries: &[Entry]) -> Vec<Request> {
    let mut before: Option<&Entry> = None;
    let mut found = Vec::new();
    for entry in entries {
        let id = entry.address;
        match entry.action.as_str() {
            "alloc" => found.push(Request::Malloc {
                id,
                bytes: entry.bytes,
                stream: entry.stream,
            }),
            "free_completed" => found.push(Request::Free { id }),
            // All that goes back at one time is one request.
            _ if gives_back(entry) && !before.is_some_and(gives_back) => found.push(Request::EmptyCache),
            _ => {}
        }
        before = Some(entry);
    }
    found
}

/// Whether what an entry completes was not completed with its release.
fn is_awaited(entries: &[Entry], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|before| entries.get(before));
    !matches!(before, Some(before) if before.action == "free_requested" && before.address == entries[place].address)
}

fn gives_back(entry: &Entry) -> bool {
    matches!(entry.action.as_str(), "segment_free" | "segment_unmap")
}

/// Where the next segment was placed.
fn first_address(entries: &[Entry]) -> Option<u64> {
    let taken = entries.iter().take_while(|entry| entry.action != "alloc");
    let mut placed = taken.filter(|entry| matches!(entry.action.as_str(), "segment_alloc" | "segment_map"));
    placed.next().map(|entry| entry.address)
}

/// What an entry says that the allocator did.
fn event(entry: &Entry) -> Option<Event> {
    let (address, bytes) = (entry.address, entry.bytes);
    match entry.action.as_str() {
        "alloc" => Some(Event::Alloc { address, bytes }),
        "segment_alloc" => Some(Event::SegmentAlloc { address, bytes }),
        "segment_free" => Some(Event::SegmentFree { address, bytes }),
        "segment_map" => Some(Event::SegmentMap { address, bytes }),
        "segment_unmap" => Some(Event::SegmentUnmap { address, bytes }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_program() {
        let entry = |(action, address): (&str, u64)| Entry {
            action: action.to_owned(),
            address,
            bytes: 512,
            stream: 3,
        };
        let record = [
            ("segment_alloc", 1),
            ("alloc", 1),
            ("free_requested", 1),
            ("free_completed", 1),
            ("segment_free", 1),
            ("segment_free", 9),
            ("snapshot", 0),
        ];
        let malloc = Request::Malloc {
            id: 1,
            bytes: 512,
            stream: 3,
        };
        assert_eq!(
            requests(&record.map(entry)),
            [malloc, Request::Free { id: 1 }, Request::EmptyCache]
        );
    }
}
