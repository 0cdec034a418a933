//! Which shapes of a model are run, so that what it allocates can be told as formulas of its open dimensions.
//!
//! A walk goes on from what works: some sizes are none of a model's, because windows do not fit, or because halves are joined with what
//! was halved before. It looks for the smallest shape that works, and for each dimension for the smallest step from there. Lines through that
//! shape then show each dimension by itself, and shapes off these lines how the dimensions go together.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use remat_formula::Shape as Dims;
use remat_formula::{Range, Ranges};

/// Places, from 0, of sizes that are tried for all dimensions at once, until some work.
const BASES: [u64; 7] = [0, 1, 3, 7, 15, 31, 63];
/// And then these parts of the place that is known to work, as divisors: a sound has thousands of samples at least.
const PARTS: [u64; 4] = [16, 8, 4, 2];
/// Steps that are tried in each dimension.
const STEPS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// How many steps the shapes of a line are apart from the smallest: the near ones of all lines come first, the others last.
const NEAR: [u64; 7] = [1, 2, 3, 4, 5, 7, 9];
/// Between that and the shape that is known to work, by their distance, in eighths: windows that move by hundreds show there only.
const BETWEEN: [u64; 3] = [4, 2, 6];
const FAR: [u64; 7] = [12, 16, 17, 24, 33, 48, 64];
/// Shapes off the lines for each dimension, and how many steps they are apart at most.
const MIXED: u64 = 8;
const MOST_STEPS: u64 = 11;

/// The largest size, at least, of a dimension of which no range is stated.
const MOST_UNSTATED: u64 = 4096;

/// Ranges of all dimensions that a model leaves open: those that are stated, and of others the sizes from 1 to some that are larger than any that
/// is known to work.
#[must_use]
pub fn complete_ranges(stated: &Ranges, open: &BTreeSet<String>, works: &BTreeMap<String, u64>) -> Ranges {
    let unstated = open.iter().filter(|name| !stated.has(name));
    let range = |name: &String| {
        let most = works
            .get(name)
            .copied()
            .unwrap_or(1)
            .saturating_mul(4)
            .max(MOST_UNSTATED);
        (
            name.clone(),
            Range {
                least: 1,
                most,
                step: 1,
            },
        )
    };
    let kept = stated.clone().only(|name| open.contains(name));
    kept.or(&unstated.map(range).collect())
}

/// Runs shapes of these ranges, beginning with one that works, until `run` says that there was enough: `None`. Else it says whether the model runs
/// with a shape.
pub(crate) fn walk(ranges: &Ranges, works: &Dims, run: &mut dyn FnMut(&Dims) -> Option<bool>) {
    let mut known: BTreeMap<Dims, bool> = BTreeMap::new();
    let mut run = |dims: &Dims| {
        if let Some(&worked) = known.get(dims) {
            return Some(worked);
        }
        let worked = run(dims)?;
        known.insert(dims.clone(), worked);
        Some(worked)
    };
    let _ = steps(ranges, works, &mut run);
}

/// The same; `None` when there was enough.
fn steps(ranges: &Ranges, works: &Dims, run: &mut dyn FnMut(&Dims) -> Option<bool>) -> Option<()> {
    run(works)?;
    let names: Vec<&str> = ranges.names().filter(|name| ranges.count(name) > 1).collect();
    if names.is_empty() {
        return None;
    }
    // A shape, by the places of its sizes in the ranges.
    let at = |places: &[u64]| {
        let sizes = names.iter().zip(places);
        let sizes = sizes.filter_map(|(name, &place)| Some(((*name).to_owned(), ranges.nth(name, place)?)));
        works.clone().into_iter().chain(sizes).collect::<Dims>()
    };
    // The smallest shape that works, of those that are no larger than the one that is known to.
    let place_of = |name: &&str| {
        let size = works.get(*name).copied().unwrap_or(1);
        let is_below = |place: &u64| ranges.nth(name, *place).is_some_and(|found| found < size);
        partition(ranges.count(name), is_below)
    };
    let mut base: Vec<u64> = names.iter().map(place_of).collect();
    let known = base.clone();
    // Parts of fewer than 64 are among the others.
    let places_below = |most: u64| {
        let parts = PARTS.map(|part| (most / part).max(most.min(64)));
        BASES.into_iter().map(move |place| place.min(most)).chain(parts)
    };
    for tried in 0..BASES.len() + PARTS.len() {
        let below = |&most: &u64| places_below(most).nth(tried).unwrap_or(most);
        let smaller: Vec<u64> = base.iter().map(below).collect();
        if run(&at(&smaller))? {
            base = smaller;
            break;
        }
    }
    for dim in 0..names.len() {
        for place in places_below(base[dim]).filter(|&place| place < base[dim]) {
            let smaller = with(&base, dim, place);
            if run(&at(&smaller))? {
                base = smaller;
                break;
            }
        }
    }
    let mut step = Vec::new();
    for (dim, name) in names.iter().enumerate() {
        let mut found = 0;
        for tried in STEPS.into_iter().filter(|tried| base[dim] + tried < ranges.count(name)) {
            if run(&at(&with(&base, dim, base[dim] + tried)))? {
                found = tried;
                break;
            }
        }
        step.push(found);
    }
    let line = |steps: &[u64], run: &mut dyn FnMut(&Dims) -> Option<bool>| {
        for &steps in steps {
            for (dim, step) in step.iter().enumerate() {
                run(&at(&with(&base, dim, base[dim] + steps * step)))?;
            }
        }
        Some(())
    };
    let between = |eighths: &[u64], run: &mut dyn FnMut(&Dims) -> Option<bool>| {
        for eighths in eighths {
            for (dim, &step) in step.iter().enumerate() {
                let steps = (known[dim] - base[dim]) * eighths / 8 / step.max(1);
                run(&at(&with(&base, dim, base[dim] + steps * step)))?;
            }
        }
        Some(())
    };
    between(&BETWEEN[..1], run)?;
    line(&NEAR, run)?;
    between(&BETWEEN[1..], run)?;
    // Numbers that look random, the same in every walk.
    let mut state = 1u64;
    let mut any = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % (MOST_STEPS + 1)
    };
    for _ in 0..MIXED * names.len() as u64 {
        let places = base.iter().zip(&step).map(|(place, step)| place + step * any());
        run(&at(&places.collect::<Vec<u64>>()))?;
    }
    line(&FAR, run)
}

/// The same places, but for one.
fn with(places: &[u64], dim: usize, place: u64) -> Vec<u64> {
    let mut places = places.to_vec();
    places[dim] = place;
    places
}

/// The first of so many places that does not hold, where all before it do.
fn partition(count: u64, holds: impl Fn(&u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count.saturating_sub(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(&middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(ranges: &str, works: &[(&str, u64)], is_one: impl Fn(&Dims) -> bool) -> Vec<Dims> {
        let ranges: Ranges = ranges.parse().expect("they are ranges");
        let works = works.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
        let mut ran = Vec::new();
        walk(&ranges, &works, &mut |dims| {
            assert!(ran.len() < 10_000);
            let worked = is_one(dims);
            ran.extend(worked.then(|| dims.clone()));
            Some(worked)
        });
        ran
    }

    fn sizes(ran: &[Dims], name: &str) -> Vec<u64> {
        let mut sizes: Vec<u64> = ran.iter().map(|dims| dims[name]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    #[test]
    fn shapes_are_small_and_no_shape_is_run_twice() {
        let ran = ran(
            "batch=1..64,sequence=1..512",
            &[("batch", 1), ("sequence", 128)],
            |_| true,
        );
        assert_eq!(ran[0]["sequence"], 128);
        assert!(ran[1].values().all(|&size| size == 1));
        let mut once = ran.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ran.len());
        assert!(ran.len() < 64, "{}", ran.len());
        assert!(ran.iter().any(|dims| dims["batch"] > 1 && dims["sequence"] > 1));
    }

    #[test]
    fn sizes_that_do_not_work_are_passed_over() {
        let is_one = |dims: &Dims| dims["h"].is_multiple_of(32) && dims["w"].is_multiple_of(32) && dims["h"] >= 64;
        let ran = ran("h=1..640,n=1..8,w=1..640", &[("h", 256), ("n", 1), ("w", 256)], is_one);
        assert!(sizes(&ran, "h").len() > 8 && sizes(&ran, "n").len() == 8, "{ran:?}");
        assert!(sizes(&ran, "w").contains(&32));
        assert!(
            ran.iter()
                .any(|dims| dims["h"] != 64 && dims["w"] != 64 && dims["n"] > 1)
        );
    }

    #[test]
    fn windows_that_move_by_hundreds_show() {
        let is_one = |dims: &Dims| dims["samples"] >= 400;
        let ran = ran(
            "batch=1..64,samples=1..64000",
            &[("batch", 1), ("samples", 16_000)],
            is_one,
        );
        let soon: Vec<u64> = ran.iter().take(8).map(|dims| dims["samples"] / 320).collect();
        let different: BTreeSet<u64> = soon.iter().copied().collect();
        assert!(different.len() >= 3, "{soon:?}");
        assert!(ran.iter().skip(1).all(|dims| dims["samples"] < 16_000), "{ran:?}");
        assert!(ran.len() < 80, "{}", ran.len());
    }

    #[test]
    fn a_model_without_open_dimensions_runs_once() {
        assert_eq!(ran("n=4", &[("n", 4)], |_| true).len(), 1);
    }

    #[test]
    fn a_walk_ends_when_there_was_enough() {
        let mut left = 5;
        let ranges = "n=1..9".parse().expect("it is a range");
        walk(&ranges, &Dims::from([("n".to_owned(), 3)]), &mut |_| {
            left -= 1;
            (left > 0).then_some(true)
        });
        assert_eq!(left, 0);
    }
}
