//! The shapes for which a plan is made, placed, tried and reported.

use std::collections::BTreeMap;

use remat_formula::{OpenDim, Range, Ranges, Shape as Dims};
use remat_onnxruntime_run::{Recorded, complete_ranges};

/// Shapes within the ranges that are tried, besides those that are frequent, and the largest.
const TRIED: usize = 8;
/// Any shapes whose blocks are to be low: so many within the ranges, within the lower half of each, the lowest quarter, and so on.
const EACH_SCALE: usize = 10;
const SCALES: u32 = 5;
/// Frequent shapes that are tried, and reported.
const FREQUENT: usize = 8;
/// Sizes of which nothing is stated are tried up to this multiple of those that are known.
const BEYOND: u64 = 2;
/// And up to this one, where that is more.
const LEAST_BEYOND: u64 = 64;

/// Which shapes there are.
pub(super) struct Samples {
    /// Sizes of the dimensions that the model leaves open, those with more than one size.
    pub(super) ranges: Ranges,
    /// The sizes of runs that are tried.
    near: Ranges,
    /// The shape of the settings.
    known: Dims,
    /// The largest shape, where ranges are stated.
    largest: Option<Dims>,
    frequent: Vec<Dims>,
    /// Shapes that were recorded last.
    recorded: Vec<Dims>,
    /// Changes which shapes are tried.
    round: u64,
}

impl Samples {
    /// Of a model that is known to run with some sizes, for stated ranges and shapes that are frequent.
    pub(super) fn new(dims: &Dims, stated: &Ranges, frequent: &[(Dims, u64)], recorded: &Recorded) -> Self {
        let size = |name: &String| (name.clone(), dims.get(name).copied().unwrap_or(1));
        let known: Dims = recorded.open.iter().map(size).collect();
        let ranges = complete_ranges(stated, &recorded.open, &known);
        let is_open: Vec<String> = ranges
            .names()
            .filter(|name| ranges.count(name) > 1)
            .map(str::to_owned)
            .collect();
        let ranges = ranges.only(|name| is_open.iter().any(|open| open == name));
        let unstated = ranges.names().filter(|name| !stated.has(name)).map(|name| {
            let size = known.get(name).copied().unwrap_or(1);
            let most = size.saturating_mul(BEYOND).max(LEAST_BEYOND);
            let range = Range {
                least: 1,
                most,
                step: 1,
            };
            (name.to_owned(), range)
        });
        let unstated: Ranges = unstated.collect();
        let stated = stated.clone().only(|name| ranges.has(name));
        let is_stated = !stated.is_empty() && unstated.is_empty();
        let mut frequent: Vec<(Dims, u64)> = frequent.to_vec();
        frequent.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        Self {
            largest: is_stated.then(|| ranges.largest()),
            near: stated.or(&unstated),
            frequent: frequent.into_iter().take(FREQUENT).map(|(dims, _)| dims).collect(),
            recorded: recorded
                .recordings
                .iter()
                .rev()
                .take(2)
                .map(|one| one.dims.clone())
                .collect(),
            ranges,
            known,
            round: 0,
        }
    }

    /// The dimensions with more than one size.
    pub(super) fn open(&self) -> Vec<OpenDim> {
        let dims = self.ranges.names().filter_map(|name| {
            let (least, most) = self.ranges.ends(name)?;
            let name = name.to_owned();
            Some(OpenDim { name, least, most })
        });
        dims.collect()
    }

    /// Sizes of the open dimensions in their order.
    pub(super) fn sizes(&self, dims: &Dims) -> Vec<u64> {
        let size = |name| dims.get(name).or_else(|| self.known.get(name)).copied().unwrap_or(1);
        self.ranges.names().map(size).collect()
    }

    /// The same with their names.
    pub(super) fn named(&self, dims: &Dims) -> Dims {
        self.ranges.names().map(str::to_owned).zip(self.sizes(dims)).collect()
    }

    /// Halves the widest range of those that are not stated; whether there was one that goes on beyond what is known.
    pub(super) fn narrow(&mut self, stated: &Ranges) -> bool {
        let beyond = |name: &&str| {
            let known = self.known.get(*name).copied().unwrap_or(1);
            self.ranges.ends(name).map_or(0, |(_, most)| most / known.max(1))
        };
        let widest = self.ranges.names().filter(|name| !stated.has(name)).max_by_key(beyond);
        let Some(name) = widest.filter(|name| beyond(name) > 1).map(str::to_owned) else {
            return false;
        };
        let most = self.ranges.ends(&name).map_or(1, |(_, most)| most / 2);
        let narrow: Ranges = [(
            name,
            Range {
                least: 1,
                most,
                step: 1,
            },
        )]
        .into_iter()
        .collect();
        self.ranges = narrow.or(&self.ranges);
        true
    }

    /// Other shapes are tried from now on.
    pub(super) fn vary(&mut self) {
        self.round += 1;
    }

    /// Shapes whose blocks are to be low, the most important first, and any others.
    pub(super) fn to_place(&self) -> [Vec<Dims>; 2] {
        let first = self
            .frequent
            .iter()
            .chain([&self.known])
            .chain(&self.largest)
            .chain(&self.recorded)
            .cloned();
        let first = distinct(first);
        let mut others: Vec<Dims> = (0..SCALES).flat_map(|scale| self.scaled(scale)).collect();
        others.retain(|dims| !first.contains(dims));
        [first, others]
    }

    /// Shapes that are run with the plan, the cheap ones first.
    pub(super) fn to_compare(&self) -> Vec<Dims> {
        let mut any = self.any(TRIED);
        any.sort_by_key(|dims| dims.values().fold(1u64, |product, &size| product.saturating_mul(size)));
        let first = [self.known.clone()].into_iter().chain(any);
        distinct(first.chain(self.frequent.iter().chain(&self.largest).cloned()))
    }

    /// Shapes that are reported beside one.
    pub(super) fn to_report(&self, known: &Dims) -> Vec<Dims> {
        let known = self.named(known);
        let all = distinct(self.frequent.iter().chain(&self.largest).cloned());
        all.into_iter().filter(|dims| self.named(dims) != known).collect()
    }

    /// The ranges as they are stated.
    pub(super) fn stated(&self) -> BTreeMap<String, String> {
        let one = |(name, ranges): (&str, &[Range])| {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            (name.to_owned(), ranges.join(","))
        };
        self.ranges.iter().map(one).collect()
    }

    /// Some shapes within the lowest part of the ranges, which is halved so often.
    fn scaled(&self, scale: u32) -> Vec<Dims> {
        let part = |name: &str| {
            let (least, most) = self.near.ends(name)?;
            let most = least + ((most - least) >> scale);
            Some((name.to_owned(), Range { least, most, step: 1 }))
        };
        let part: Ranges = self.near.names().filter_map(part).collect();
        part.sample(EACH_SCALE, self.round)
    }

    /// Some shapes within the ranges, the same for each round.
    fn any(&self, count: usize) -> Vec<Dims> {
        self.near.sample(count, self.round)
    }
}

fn distinct(dims: impl Iterator<Item = Dims>) -> Vec<Dims> {
    let mut all: Vec<Dims> = Vec::new();
    for dims in dims {
        if !all.contains(&dims) {
            all.push(dims);
        }
    }
    all
}
