//! Placing buffers: parts that never meet in time are placed apart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::dense::{Id, Table};
use crate::limits::{Limits, Meter};
use crate::place::buffer::{Blocks, Buffer, Place, PlaceError, height, load, validate};
use crate::place::instance::{Instance, Item, unit};
use crate::place::minimise::{Aim, BestPlacement, Proof, heuristics, search};
use crate::place::second::Second;
use crate::place::space::Space;
use crate::place::windows;

/// Wishes of the caller; the default has none.
#[derive(Default)]
pub struct Options<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// Places to start from, by the positions of the buffers: the answer is never higher than these, if they are a placement.
    pub warm_start: Option<&'a [Option<Place>]>,
    /// Who is asked where the search gets no further: once for buffers that are connected in time.
    pub second: Option<&'a mut dyn Second>,
}

/// How good a placement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// No placement is lower, or the blocks are given and hold all buffers.
    Optimal,
    /// A lower one may exist.
    Feasible,
    /// The given blocks cannot hold the buffers.
    Infeasible,
    /// Neither a placement nor a proof that there is none was found.
    Unknown,
}

/// What came of placing buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Where each buffer lies; `None` where no placement was found that the given blocks hold.
    pub places: Option<Vec<Place>>,
    /// How good it is.
    pub status: Status,
    /// The height of all blocks together, in bytes.
    pub height: Option<u64>,
    /// No placement is lower.
    pub bound: u64,
    /// What the bound, or the claim that there is no placement, rests on.
    pub proof: Proof,
    /// How often a buffer was tried at an offset.
    pub tries: u64,
}

/// Places buffers as low as possible, or in blocks of given sizes, where the first placement that fits is taken. There is a placement in one
/// block whatever the limits. The result depends on nothing but the buffers, the options and when the limits end the search.
///
/// # Errors
/// [`PlaceError`] for buffers that cannot be placed anywhere. That given blocks do not hold them is a [`Placement`] without places.
pub fn place(
    buffers: &[Buffer],
    blocks: &Blocks,
    options: Options<'_>,
    limits: &mut dyn Limits,
) -> Result<Placement, PlaceError> {
    validate(buffers)?;
    if matches!(blocks, Blocks::Given(sizes) if sizes.is_empty()) {
        return Err(PlaceError::NoBlock);
    }
    check_pinned(buffers)?;
    let ends = buffers.iter().filter_map(|buffer| Some(buffer.pinned? + buffer.size));
    let pinned_end = ends.max().unwrap_or(0);
    if matches!(blocks, Blocks::Given(sizes) if pinned_end > sizes[0]) {
        return Ok(Placement::pinned_outside(pinned_end));
    }
    let filled = buffers.iter().filter(|buffer| buffer.size > 0);
    let alignments = buffers.iter().map(|buffer| buffer.alignment);
    let space = Space::new(blocks, alignments, unit(filled)).map_err(|_| PlaceError::Alignments)?;
    let mut meter = Meter::new(limits);
    let mut parts = parts(buffers, &space, options.warm_start, &mut meter);
    solve(&mut parts, &space, options.second, options.seed, pinned_end, &mut meter);
    Ok(outcome(buffers, &space, &parts, pinned_end, &meter))
}

impl Placement {
    /// A pinned buffer ends behind its block.
    fn pinned_outside(end: u64) -> Self {
        Self {
            places: None,
            status: Status::Infeasible,
            height: None,
            bound: end,
            proof: Proof::Load,
            tries: 0,
        }
    }
}

/// Refuses pinned buffers that are in each other's way.
fn check_pinned(buffers: &[Buffer]) -> Result<(), PlaceError> {
    let pinned = buffers.iter().enumerate().filter(|(_, buffer)| buffer.size > 0);
    let mut events: Vec<(u64, bool, usize, u64)> = pinned
        .filter_map(|(id, buffer)| Some((id, buffer, buffer.pinned?)))
        .flat_map(|(id, buffer, offset)| {
            let times = buffer.taken();
            times.flat_map(move |times| [(times.start, true, id, offset), (times.end, false, id, offset)])
        })
        .collect();
    // What ends makes room for what begins.
    events.sort_unstable();
    let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
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
            return Err(PlaceError::PinnedTogether(other, id));
        }
        taken.insert(offset, id);
    }
    Ok(())
}

/// Buffers that are connected in time; the walls between blocks come after them.
struct Part {
    ids: Vec<usize>,
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
fn parts(buffers: &[Buffer], space: &Space, warm_start: Option<&[Option<Place>]>, meter: &mut Meter<'_>) -> Vec<Part> {
    let mut ids: Vec<usize> = (0..buffers.len()).filter(|&id| buffers[id].size > 0).collect();
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
        let members = ids.iter().map(|&id| buffers[id].clone()).chain(space.walls(times));
        let instance = Instance::new(&members.collect::<Vec<_>>());
        let order = warm_start.map(|places| warm_order(&ids, &instance, space, places));
        let found = heuristics(&instance, order.as_ref(), meter);
        parts.push(Part { ids, instance, found });
    }
    parts
}

/// The addresses of a placement, to place the buffers in their order: those without a place come last.
fn warm_order(ids: &[usize], instance: &Instance, space: &Space, places: &[Option<Place>]) -> Table<Item, i64> {
    let mut order = Table::filled(i64::MAX, instance.len());
    for (item, &id) in ids.iter().enumerate() {
        let place = places.get(id).copied().flatten();
        let address = place.and_then(|place| space.address(place));
        order[Item::at(item)] = address
            .and_then(|address| i64::try_from(address).ok())
            .unwrap_or(i64::MAX);
    }
    order
}

/// Searches where it helps, highest part first. A part that is not higher than another one can be is low enough.
fn solve(
    parts: &mut [Part],
    space: &Space,
    mut second: Option<&mut (dyn Second + '_)>,
    seed: u64,
    pinned_end: u64,
    meter: &mut Meter<'_>,
) {
    parts.sort_by_key(|part| Reverse(part.bytes(part.found.height)));
    let bounds = parts.iter().map(|part| part.bytes(part.found.bound));
    let mut enough = bounds.max().unwrap_or(0).max(pinned_end);
    for part in parts {
        let aim = part.aim(space, enough);
        windows::mend(&part.instance, &mut part.found, aim, seed, meter);
        search(&part.instance, &mut part.found, aim, second.as_deref_mut(), seed, meter);
        enough = enough.max(part.bytes(part.found.height));
        if part.found.is_impossible(aim) {
            return;
        }
    }
}

fn outcome(buffers: &[Buffer], space: &Space, parts: &[Part], pinned_end: u64, meter: &Meter<'_>) -> Placement {
    let highest = parts
        .iter()
        .map(|part| part.bytes(part.found.height))
        .max()
        .unwrap_or(0);
    let highest = highest.max(pinned_end);
    let fits = space.capacity.is_none_or(|capacity| highest <= capacity);
    let is_impossible = parts.iter().any(|part| part.found.is_impossible(part.aim(space, 0)));
    let places = fits.then(|| placed(buffers, space, parts));
    let height = places.as_ref().map(|places| height(buffers, places));
    let (bound, proof) = bound(buffers, space, parts, pinned_end);
    let is_optimal = fits && (space.capacity.is_some() || height == Some(bound));
    let status = match () {
        () if is_optimal => Status::Optimal,
        () if fits => Status::Feasible,
        () if is_impossible => Status::Infeasible,
        () => Status::Unknown,
    };
    Placement {
        places,
        status,
        height,
        bound,
        proof,
        tries: meter.tries(),
    }
}

/// What no placement undercuts. In several blocks it is the load: addresses count the walls too.
fn bound(buffers: &[Buffer], space: &Space, parts: &[Part], pinned_end: u64) -> (u64, Proof) {
    if space.is_one_block() {
        let highest = parts.iter().max_by_key(|part| part.bytes(part.found.bound));
        let of_parts = highest.map(|part| (part.bytes(part.found.bound), part.found.proof));
        let of_pinned = (pinned_end, Proof::Load);
        return of_parts.filter(|&(bound, _)| bound >= pinned_end).unwrap_or(of_pinned);
    }
    // What is left at the end of a block may be what is missing: the load alone proves nothing then.
    let load = load(buffers);
    let impossible = parts.iter().find(|part| part.found.is_impossible(part.aim(space, 0)));
    let refuted = impossible.filter(|_| load <= space.bytes());
    // That the walls and the sizes of the blocks leave no room is no load.
    let proof = refuted.map(|part| match part.found.proof {
        Proof::Load => Proof::Refutation,
        proof => proof,
    });
    (load, proof.unwrap_or(Proof::Load))
}

fn placed(buffers: &[Buffer], space: &Space, parts: &[Part]) -> Vec<Place> {
    let pinned_or_first = |buffer: &Buffer| Place {
        block: 0,
        offset: buffer.pinned.unwrap_or(0),
    };
    let mut places: Vec<Place> = buffers.iter().map(pinned_or_first).collect();
    for part in parts {
        for (&id, &offset) in part.ids.iter().zip(&part.found.offsets) {
            places[id] = space.place(part.bytes(offset));
        }
    }
    places
}
