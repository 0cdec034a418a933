//! Placements: where buffers lie, held against the rules of the family `P`.
//!
//! The checker goes through all times at which a buffer begins or ends to take its bytes, with the buffers that take them now in the
//! order of their offsets. It knows no solver, and takes time `n log n`.

use std::collections::BTreeMap;

use remat_files::shown;
use remat_plan::{
    Blocks, Buffer, BufferId, Place, Placement, PlacementCertificate, PlacementProof, Status, StopReason,
};
use typed_index_collections::TiSlice;

use crate::rejection::Findings;
use crate::{Code, Rejection};

/// The figures of a valid placement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacementFigures {
    /// The end of the buffer that ends last, for each block that is used or given.
    pub heights: Vec<u64>,
    /// The largest sum of sizes that are taken at one time.
    pub load: u64,
}

impl PlacementFigures {
    /// The height of all blocks together.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.heights.iter().fold(0, |sum, height| sum.saturating_add(*height))
    }
}

/// Checks a placement.
///
/// # Errors
/// [`Rejection`] with all rules that it breaks: those of single buffers in the order of the buffers, then overlaps in the order of time.
pub fn check_placement(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    placement: &Placement,
) -> Result<PlacementFigures, Rejection> {
    let mut findings = Findings::default();
    let figures = judge(buffers, blocks, placement, &mut findings);
    findings.judge(figures)
}

/// Checks what is claimed about buffers, and about their placement where there is one.
///
/// # Errors
/// [`Rejection`] with all rules that placement and certificate break. That a bound by refutation is right cannot be checked; that it lies
/// above a placement that is there can.
pub fn check_placement_certificate(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    placement: Option<&Placement>,
    certificate: &PlacementCertificate,
) -> Result<Option<PlacementFigures>, Rejection> {
    let mut findings = Findings::default();
    let figures = placement.map(|placement| judge(buffers, blocks, placement, &mut findings));
    let height = figures.as_ref().map(PlacementFigures::height);
    claims(buffers, blocks, height, 0, certificate, &mut findings);
    findings.judge(figures)
}

/// The rules of a placement; the figures are those of the placement where nothing is found.
pub(crate) fn judge(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    placement: &Placement,
    findings: &mut Findings,
) -> PlacementFigures {
    let sizes = match blocks {
        Blocks::Lowest => None,
        Blocks::Given(sizes) => Some(&sizes[..]),
    };
    let mut heights = vec![0; sizes.map_or(1, <[u64]>::len)];
    let mut placed: Vec<(BufferId, Place)> = Vec::new();
    for (id, buffer) in buffers.iter_enumerated() {
        let Some(place) = placement.places.get(id).copied().flatten() else {
            findings.add(Code::P004, None, || {
                format!("buffer `{}` has no place", shown(&buffer.name))
            });
            continue;
        };
        own_rules(buffer, place, sizes, findings);
        if let Some(height) = heights.get_mut(place.block) {
            *height = place.offset.saturating_add(buffer.size).max(*height);
        }
        placed.push((id, place));
    }
    if placement.places.len() > buffers.len() {
        let (more, count) = (placement.places.len(), buffers.len());
        findings.add(Code::P004, None, || {
            format!("{more} places are given for {count} buffers")
        });
    }
    overlaps(buffers, &placed, findings);
    PlacementFigures {
        heights,
        load: load(buffers),
    }
}

/// The rules of one buffer: block, alignment, pinned offset.
fn own_rules(buffer: &Buffer, place: Place, sizes: Option<&[u64]>, findings: &mut Findings) {
    let name = || shown(&buffer.name).to_string();
    let count = sizes.map_or(1, <[u64]>::len);
    let end = place.offset.checked_add(buffer.size);
    if place.block >= count {
        findings.add(Code::P002, None, || {
            format!(
                "buffer `{}` lies in block {}, there are {count}, counted from 0",
                name(),
                place.block
            )
        });
    } else if end.is_none() {
        findings.add(Code::P002, None, || format!("buffer `{}` ends beyond 2^64", name()));
    } else if let (Some(sizes), Some(end)) = (sizes, end)
        && end > sizes[place.block]
    {
        let size = sizes[place.block];
        findings.add(Code::P002, None, || {
            format!(
                "buffer `{}` ends at {end}, block {} has {size} bytes",
                name(),
                place.block
            )
        });
    }
    if buffer.alignment == 0 || !place.offset.is_multiple_of(buffer.alignment) {
        findings.add(Code::P003, None, || {
            let (offset, alignment) = (place.offset, buffer.alignment);
            format!(
                "buffer `{}` lies at {offset}, which is not a multiple of its alignment {alignment}",
                name()
            )
        });
    }
    if let Some(offset) = buffer.pinned
        && (place != Place { block: 0, offset })
    {
        findings.add(Code::P005, None, || {
            let Place { block, offset: found } = place;
            format!(
                "buffer `{}` is pinned at {offset} in block 0, and lies at {found} in block {block}",
                name()
            )
        });
    }
}

/// Something that begins or ends at a time; what ends comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    begins: bool,
    id: BufferId,
}

fn events<'a>(buffers: &'a TiSlice<BufferId, Buffer>, ids: impl Iterator<Item = BufferId> + 'a) -> Vec<Event> {
    let mut events = Vec::new();
    for id in ids {
        for times in buffers[id].taken().filter(|times| !times.is_empty()) {
            for (time, begins) in [(times.start, true), (times.end, false)] {
                events.push(Event { time, begins, id });
            }
        }
    }
    events.sort_unstable();
    events
}

/// Buffers that take the same byte at the same time.
fn overlaps(buffers: &TiSlice<BufferId, Buffer>, placed: &[(BufferId, Place)], findings: &mut Findings) {
    let mut place_of: BTreeMap<BufferId, Place> = BTreeMap::new();
    for &(id, place) in placed.iter().filter(|(id, _)| buffers[*id].size > 0) {
        place_of.insert(id, place);
    }
    // What takes bytes now, by block and offset; no two of these overlap.
    let mut taken: BTreeMap<(usize, u64), BufferId> = BTreeMap::new();
    for event in events(buffers, place_of.keys().copied()) {
        let place = place_of[&event.id];
        let key = (place.block, place.offset);
        if !event.begins {
            if taken.get(&key) == Some(&event.id) {
                taken.remove(&key);
            }
            continue;
        }
        let end = place.offset.saturating_add(buffers[event.id].size);
        let below = taken.range(..=key).next_back().filter(|&(&(block, offset), &other)| {
            block == place.block && offset.saturating_add(buffers[other].size) > place.offset
        });
        let above = taken.range(key..).next();
        let above = above.filter(|&(&(block, offset), _)| block == place.block && offset < end);
        let Some((&(_, offset), &other)) = below.or(above) else {
            taken.insert(key, event.id);
            continue;
        };
        findings.add(Code::P001, None, || {
            format!(
                "buffer `{}` at {}..{end} and buffer `{}` at {offset}..{} both take bytes at time {}",
                shown(&buffers[event.id].name),
                place.offset,
                shown(&buffers[other].name),
                offset.saturating_add(buffers[other].size),
                event.time
            )
        });
    }
}

/// The largest sum of sizes at one time.
fn load(buffers: &TiSlice<BufferId, Buffer>) -> u64 {
    highest(buffers, buffers.keys(), |buffer| buffer.size)
}

fn highest(
    buffers: &TiSlice<BufferId, Buffer>,
    ids: impl Iterator<Item = BufferId>,
    size: impl Fn(&Buffer) -> u64,
) -> u64 {
    let (mut now, mut most) = (0u64, 0);
    for event in events(buffers, ids) {
        let size = size(&buffers[event.id]);
        if event.begins {
            now = now.saturating_add(size);
            most = now.max(most);
        } else {
            now = now.saturating_sub(size);
        }
    }
    most
}

/// What follows from the load, alignments and pinned offsets alone.
fn bound_by_load(buffers: &TiSlice<BufferId, Buffer>) -> u64 {
    let pinned = buffers
        .iter()
        .filter_map(|buffer| buffer.pinned?.checked_add(buffer.size));
    let mut bound = pinned.max().unwrap_or(0);
    let mut ids: Vec<BufferId> = buffers.keys().filter(|&id| buffers[id].size > 0).collect();
    ids.sort_by_key(|&id| buffers[id].lifetime.start);
    // What is never alive together with the others is looked at apart.
    let mut end = 0;
    let mut first = 0;
    for at in 0..=ids.len() {
        let lifetime = ids.get(at).map(|&id| &buffers[id].lifetime);
        if lifetime.is_none_or(|lifetime| lifetime.start >= end) {
            bound = bound.max(padded_load(buffers, &ids[first..at]));
            first = at;
        }
        end = lifetime.map_or(end, |lifetime| end.max(lifetime.end));
    }
    bound
}

/// Offsets are multiples of what all alignments have in common, so every buffer but the highest one of a time takes a multiple of it.
fn padded_load(buffers: &TiSlice<BufferId, Buffer>, ids: &[BufferId]) -> u64 {
    let all = || ids.iter().map(|&id| &buffers[id]);
    let common = remat_plan::gcd(all().map(|buffer| buffer.alignment)).max(1);
    let padded = |buffer: &Buffer| {
        let size = buffer.size.checked_next_multiple_of(common);
        size.unwrap_or(buffer.size)
    };
    let padding = all().map(|buffer| padded(buffer) - buffer.size).max().unwrap_or(0);
    let highest_padded = highest(buffers, ids.iter().copied(), padded).saturating_sub(padding);
    highest_padded.max(highest(buffers, ids.iter().copied(), |buffer| buffer.size))
}

/// The claims of a certificate, against the placement and against what follows from the load; the first `reserved` bytes are taken by
/// buffers that have to lie there.
pub(crate) fn claims(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    height: Option<u64>,
    reserved: u64,
    certificate: &PlacementCertificate,
    findings: &mut Findings,
) {
    let bytes = |height: Option<u64>| height.map_or_else(|| "none".to_owned(), |height| height.to_string());
    if certificate.height != height {
        findings.add(Code::P006, None, || {
            format!(
                "the height is claimed as {}, it is {}",
                bytes(certificate.height),
                bytes(height)
            )
        });
    }
    let bound = certificate.bound;
    if let Some(height) = height.filter(|&height| height < bound) {
        findings.add(Code::P007, None, || {
            format!("the bound of {bound} lies above the height {height} of the placement that it comes with")
        });
    }
    let follows = bound_by_load(buffers).max(reserved);
    if certificate.proof == PlacementProof::Load && bound > follows {
        findings.add(Code::P007, None, || {
            format!("the bound of {bound} is claimed to follow from the load, which proves {follows}")
        });
    }
    let is_given = matches!(blocks, Blocks::Given(_));
    let is_low_enough = is_given || height.is_some_and(|height| height <= bound);
    let is_beyond = match blocks {
        Blocks::Lowest => false,
        Blocks::Given(sizes) => {
            let first = sizes.first().copied().unwrap_or(0);
            let pinned = buffers
                .iter()
                .filter_map(|buffer| buffer.pinned?.checked_add(buffer.size));
            sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size)) < bound
                || pinned.max().is_some_and(|end| end > first)
        }
    };
    let is_proof = matches!(certificate.status, Status::Optimal | Status::Infeasible);
    let why = match certificate.status {
        Status::Optimal | Status::Feasible if height.is_none() => "there is no placement",
        Status::Infeasible | Status::Unknown if height.is_some() => "there is a placement",
        Status::Optimal if !is_low_enough => "the bound leaves room for a lower one",
        Status::Infeasible if certificate.proof == PlacementProof::Load && !is_beyond => {
            "the blocks hold what is needed at any one time"
        }
        _ if is_proof != (certificate.stop == StopReason::Proved) => "the search stopped for another reason",
        _ => return,
    };
    findings.add(Code::P008, None, || {
        let status = crate::certificate::name(certificate.status);
        format!("the status is claimed as `{status}`, but {why}")
    });
}
