//! Parts of a range of sizes, each with what is known of all sizes in it.

/// What is known of all sizes within a range: an upper bound.
pub trait Bound {
    /// The bound.
    fn most(&self) -> u64;
    /// Whether the largest sizes come to it, so that nothing lower is one.
    fn is_reached(&self) -> bool;
}

/// A part, and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<T> {
    /// Of each open dimension the smallest and the largest size.
    pub ranges: Vec<(u64, u64)>,
    /// What is known.
    pub known: T,
}

/// Parts that have all of `ranges` in them.
///
/// As long as there are fewer than `most`, the one of the highest bound is halved, unless its bound is reached: in the smaller parts intervals are
/// tighter. `used` has the dimensions on which anything depends, as bits; of them the one of the largest ratio is halved, which says most.
pub fn parts<T: Bound>(
    ranges: Vec<(u64, u64)>,
    used: u64,
    most: usize,
    mut of: impl FnMut(&[(u64, u64)]) -> T,
) -> Vec<Part<T>> {
    let mut part = |ranges: Vec<(u64, u64)>| Part {
        known: of(&ranges),
        ranges,
    };
    let mut parts = vec![part(ranges)];
    while parts.len() < most {
        let highest = parts.iter().enumerate().max_by_key(|(_, one)| one.known.most());
        let Some((place, highest)) = highest.filter(|(_, one)| !one.known.is_reached()) else {
            break;
        };
        let ratio = |&dim: &usize| {
            let (least, most) = highest.ranges[dim];
            (most as f64 + 1.0) / (least as f64 + 1.0)
        };
        let is_wide = |&dim: &usize| used >> dim & 1 == 1 && highest.ranges[dim].0 < highest.ranges[dim].1;
        let wide = (0..highest.ranges.len().min(64)).filter(is_wide);
        let Some(dim) = wide.max_by(|one, other| ratio(one).total_cmp(&ratio(other))) else {
            break;
        };
        let (least, most) = highest.ranges[dim];
        let middle = least + (most - least) / 2;
        let halves = [(least, middle), (middle + 1, most)].map(|half| {
            let mut ranges = highest.ranges.clone();
            ranges[dim] = half;
            ranges
        });
        parts.remove(place);
        parts.extend(halves.map(&mut part));
    }
    parts
}
