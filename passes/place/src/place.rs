//! Placing buffers: parts that never meet in time are placed apart.

use std::collections::BTreeMap;
use std::ops::Range;

use remat_files::shown;
use remat_plan::{
    Blocks, Buffer, BufferError, BufferId, Place, Placement, PlacementCertificate, PlacementProof, Status, StopReason,
    validate_buffers,
};
use remat_solve::{Packer, SolveControl};
use thiserror::Error;
use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::control::Meter;
use crate::instance::{Demand, Instance, Item};
use crate::minimise::{Aim, BestPlacement, heuristics, search};
use crate::second::Second;
use crate::space::Space;

/// Why buffers are not placed at all.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// A buffer contradicts itself, or all are too large.
    #[error(transparent)]
    Buffers(#[from] BufferError),
    /// Two pinned buffers need the same bytes at the same time.
    #[error("buffers `{}` and `{}` are pinned to the same bytes at the same time", shown(.0), shown(.1))]
    PinnedTogether(String, String),
    /// There is no block.
    #[error("there is no block to place buffers in")]
    NoBlock,
    /// Several blocks are given, and no address suits all alignments.
    #[error("sizes of blocks and alignments are too large to place buffers in several blocks")]
    Alignments,
}

/// What came of placing buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The best placement; `None` where none was found that the given blocks hold.
    pub placement: Option<Placement>,
    /// What is claimed about it.
    pub certificate: PlacementCertificate,
}

/// Places buffers as low as possible, or in blocks of given sizes, where the first placement that fits is taken. It starts from `warm_start`,
/// if that is valid. Of `control` count the deadline, the seed, the flag to cancel, and the limit of steps: how often a buffer is tried at an
/// offset. Without a deadline, the result depends on nothing but the buffers, the seed, that limit and the warm start.
///
/// # Errors
/// [`PlaceError`] for buffers that cannot be placed anywhere. That given blocks do not hold them is an [`Outcome`].
pub fn place(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    warm_start: Option<&Placement>,
    control: &SolveControl<'_>,
) -> Result<Outcome, PlaceError> {
    place_with(buffers, blocks, warm_start, None, control)
}

/// Places buffers as [`place`] does, and asks another method where the search gets no further: once for buffers that are connected in time,
/// for half of the time that is left, with the threads and the limit of memory of `control`. What it places is checked, what it proves is
/// believed, and the certificate says so.
///
/// # Errors
/// Those of [`place`].
pub fn place_with(
    buffers: &TiSlice<BufferId, Buffer>,
    blocks: &Blocks,
    warm_start: Option<&Placement>,
    packer: Option<&dyn Packer>,
    control: &SolveControl<'_>,
) -> Result<Outcome, PlaceError> {
    validate_buffers(buffers)?;
    if matches!(blocks, Blocks::Given(sizes) if sizes.is_empty()) {
        return Err(PlaceError::NoBlock);
    }
    check_pinned(buffers)?;
    let ends = buffers.iter().filter_map(|buffer| Some(buffer.pinned? + buffer.size));
    let pinned_end = ends.max().unwrap_or(0);
    if matches!(blocks, Blocks::Given(sizes) if pinned_end > sizes[0]) {
        return Ok(Outcome::pinned_outside(pinned_end, control.seed));
    }
    let demands = buffers.iter().map(demand);
    let filled: Vec<Demand> = demands.filter(|demand| demand.size > 0).collect();
    let unit = Instance::new(&filled).unit;
    let alignments = buffers.iter().map(|buffer| buffer.alignment);
    let space = Space::new(blocks, alignments, unit).map_err(|_| PlaceError::Alignments)?;
    let mut meter = Meter::new(control);
    let mut parts = parts(buffers, &space, warm_start, &mut meter);
    let second = packer.map(|packer| Second { packer, control });
    solve(&mut parts, &space, second, control.seed, pinned_end, &mut meter);
    Ok(outcome(buffers, &space, &parts, pinned_end, control.seed, &meter))
}

impl Outcome {
    /// A pinned buffer ends behind its block.
    fn pinned_outside(end: u64, seed: u64) -> Self {
        Self {
            placement: None,
            certificate: PlacementCertificate {
                status: Status::Infeasible,
                height: None,
                bound: end,
                proof: PlacementProof::Load,
                stop: StopReason::Proved,
                seed,
                tries: 0,
            },
        }
    }
}

/// Refuses pinned buffers that are in each other's way.
fn check_pinned(buffers: &TiSlice<BufferId, Buffer>) -> Result<(), PlaceError> {
    let pinned = buffers.iter_enumerated().filter(|(_, buffer)| buffer.size > 0);
    let mut events: Vec<(u64, bool, BufferId, u64)> = pinned
        .filter_map(|(id, buffer)| Some((id, buffer, buffer.pinned?)))
        .flat_map(|(id, buffer, offset)| {
            let times = buffer.taken();
            times.flat_map(move |times| [(times.start, true, id, offset), (times.end, false, id, offset)])
        })
        .collect();
    // What ends makes room for what begins.
    events.sort_unstable();
    let mut taken: BTreeMap<u64, BufferId> = BTreeMap::new();
    for (_, begins, id, offset) in events {
        if !begins {
            taken.remove(&offset);
            continue;
        }
        let below = taken.range(..=offset).next_back();
        let below = below.filter(|&(&start, &other)| start + buffers[other].size > offset);
        let above = taken
            .range(offset..)
            .next()
            .filter(|&(&start, _)| start < offset + buffers[id].size);
        if let Some((_, &other)) = below.or(above) {
            let name = |id: BufferId| buffers[id].name.clone();
            return Err(PlaceError::PinnedTogether(name(other), name(id)));
        }
        taken.insert(offset, id);
    }
    Ok(())
}

fn demand(buffer: &Buffer) -> Demand {
    Demand {
        size: buffer.size,
        alignment: buffer.alignment,
        taken: buffer.taken().collect(),
        pinned: buffer.pinned,
    }
}

/// Buffers that are connected in time; the walls between blocks come after them.
struct Part {
    ids: Vec<BufferId>,
    instance: Instance,
    found: BestPlacement,
}

impl Part {
    fn bytes(&self, units: i64) -> u64 {
        units.unsigned_abs() * self.instance.unit
    }

    /// The most units that lie within these bytes.
    fn units(&self, bytes: u64) -> i64 {
        i64::try_from(bytes / self.instance.unit).unwrap_or(i64::MAX)
    }

    fn aim(&self, space: &Space, enough: u64) -> Aim {
        let within = space.capacity.map(|capacity| Aim::Within(self.units(capacity)));
        within.unwrap_or_else(|| Aim::Lowest(self.units(enough)))
    }
}

/// The parts, each with what the heuristics find.
fn parts(
    buffers: &TiSlice<BufferId, Buffer>,
    space: &Space,
    warm_start: Option<&Placement>,
    meter: &mut Meter<'_>,
) -> Vec<Part> {
    let mut ids: Vec<BufferId> = buffers.keys().filter(|&id| buffers[id].size > 0).collect();
    ids.sort_by_key(|&id| buffers[id].lifetime.start);
    let mut parts = Vec::new();
    let mut rest = &ids[..];
    while let Some(&first) = rest.first() {
        let mut times: Range<u64> = buffers[first].lifetime.clone();
        let connected = rest.iter().take_while(|&&id| {
            let lifetime = &buffers[id].lifetime;
            let meets = lifetime.start < times.end;
            times.end = if meets { times.end.max(lifetime.end) } else { times.end };
            meets
        });
        let (ids, others) = rest.split_at(connected.count());
        rest = others;
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        let demands = ids.iter().map(|&id| demand(&buffers[id])).chain(space.walls(times));
        let instance = Instance::new(&demands.collect::<Vec<_>>());
        let order = warm_start.map(|placement| warm_order(&ids, &instance, space, placement));
        let found = heuristics(&instance, order.as_ref(), meter);
        parts.push(Part { ids, instance, found });
    }
    parts
}

/// The addresses of a placement, to place the buffers in their order: those without a place come last.
fn warm_order(ids: &[BufferId], instance: &Instance, space: &Space, placement: &Placement) -> TiVec<Item, i64> {
    let mut order = ti_vec![i64::MAX; instance.len()];
    for (item, &id) in ids.iter().enumerate() {
        let place = placement.places.get(id).copied().flatten();
        let address = place.and_then(|place| space.address(place));
        order[Item::new(item)] = address
            .and_then(|address| i64::try_from(address).ok())
            .unwrap_or(i64::MAX);
    }
    order
}

/// Searches where it helps, highest part first. A part that is not higher than another one can be is low enough.
fn solve(
    parts: &mut [Part],
    space: &Space,
    second: Option<Second<'_>>,
    seed: u64,
    pinned_end: u64,
    meter: &mut Meter<'_>,
) {
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes(part.found.height)));
    let bounds = parts.iter().map(|part| part.bytes(part.found.bound));
    let mut enough = bounds.max().unwrap_or(0).max(pinned_end);
    for part in parts {
        let aim = part.aim(space, enough);
        search(&part.instance, &mut part.found, aim, second, seed, meter);
        enough = enough.max(part.bytes(part.found.height));
        if part.found.is_impossible(aim) {
            return;
        }
    }
}

fn outcome(
    buffers: &TiSlice<BufferId, Buffer>,
    space: &Space,
    parts: &[Part],
    pinned_end: u64,
    seed: u64,
    meter: &Meter<'_>,
) -> Outcome {
    let highest = parts
        .iter()
        .map(|part| part.bytes(part.found.height))
        .max()
        .unwrap_or(0);
    let highest = highest.max(pinned_end);
    let fits = space.capacity.is_none_or(|capacity| highest <= capacity);
    let is_impossible = parts.iter().any(|part| part.found.is_impossible(part.aim(space, 0)));
    let placement = fits.then(|| placement(buffers, space, parts));
    let height = placement.as_ref().map(|placement| height(buffers, placement));
    let (bound, proof) = bound(buffers, space, parts, pinned_end);
    let is_optimal = fits && (space.capacity.is_some() || height == Some(bound));
    let status = match () {
        () if is_optimal => Status::Optimal,
        () if fits => Status::Feasible,
        () if is_impossible => Status::Infeasible,
        () => Status::Unknown,
    };
    let is_proved = matches!(status, Status::Optimal | Status::Infeasible);
    Outcome {
        placement,
        certificate: PlacementCertificate {
            status,
            height,
            bound,
            proof,
            stop: if is_proved { StopReason::Proved } else { meter.reason() },
            seed,
            tries: meter.tries(),
        },
    }
}

/// What no placement undercuts. In several blocks it is the load: addresses count the walls too.
fn bound(buffers: &TiSlice<BufferId, Buffer>, space: &Space, parts: &[Part], pinned_end: u64) -> (u64, PlacementProof) {
    if space.is_one_block() {
        let highest = parts.iter().max_by_key(|part| part.bytes(part.found.bound));
        let of_parts = highest.map(|part| (part.bytes(part.found.bound), part.found.proof));
        let of_pinned = (pinned_end, PlacementProof::Load);
        return of_parts.filter(|&(bound, _)| bound >= pinned_end).unwrap_or(of_pinned);
    }
    // What is left at the end of a block may be what is missing: the load alone proves nothing then.
    let load = load(buffers);
    let impossible = parts.iter().find(|part| part.found.is_impossible(part.aim(space, 0)));
    let refuted = impossible.filter(|_| load <= space.bytes());
    // That the walls and the sizes of the blocks leave no room is no load.
    let proof = refuted.map(|part| match part.found.proof {
        PlacementProof::Load => PlacementProof::Refutation,
        proof => proof,
    });
    (load, proof.unwrap_or(PlacementProof::Load))
}

fn placement(buffers: &TiSlice<BufferId, Buffer>, space: &Space, parts: &[Part]) -> Placement {
    let pinned_or_first = |buffer: &Buffer| Place {
        block: 0,
        offset: buffer.pinned.unwrap_or(0),
    };
    let mut places: TiVec<BufferId, Option<Place>> =
        buffers.iter().map(|buffer| Some(pinned_or_first(buffer))).collect();
    for part in parts {
        for (&id, &offset) in part.ids.iter().zip(&part.found.offsets) {
            places[id] = Some(space.place(part.bytes(offset)));
        }
    }
    Placement { places }
}

/// The height of all blocks together.
fn height(buffers: &TiSlice<BufferId, Buffer>, placement: &Placement) -> u64 {
    let mut heights: Vec<u64> = Vec::new();
    for (buffer, place) in buffers.iter().zip(&placement.places) {
        let Some(place) = place else { continue };
        heights.resize(heights.len().max(place.block + 1), 0);
        let height = &mut heights[place.block];
        *height = (*height).max(place.offset + buffer.size);
    }
    heights.iter().sum()
}

/// The largest sum of sizes that are taken at one time.
#[must_use]
pub fn load(buffers: &TiSlice<BufferId, Buffer>) -> u64 {
    let mut ends: Vec<(u64, bool, u64)> = Vec::new();
    for buffer in buffers {
        for times in buffer.taken() {
            ends.extend([(times.start, true, buffer.size), (times.end, false, buffer.size)]);
        }
    }
    ends.sort_unstable();
    let (mut load, mut most) = (0u64, 0);
    for (_, begins, size) in ends {
        if begins {
            load += size;
            most = most.max(load);
        } else {
            load -= size;
        }
    }
    most
}
