//! Ranges of sizes of open dimensions, as a user states them: `batch=1..64,sequence=1..512`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Largest size.
const MOST: u64 = 1 << 40;

/// Sizes from the smallest to the largest one, in steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Range {
    /// The smallest, at least 1.
    pub least: u64,
    /// The largest, reached by whole steps from the smallest.
    pub most: u64,
    /// From one to the next, at least 1.
    pub step: u64,
}

/// The sizes that open dimensions have, by name: for each dimension at least one range.
///
/// Written as `NAME=SIZES,..` where sizes are numbers, ranges `LEAST..MOST`, both ends among them, and ranges in steps
/// `LEAST..MOST:STEP`, with commas between them: `batch=1,4,8..16,height=64..1024:32`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ranges(BTreeMap<String, Vec<Range>>);

/// What is wrong with ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangesError(String);

impl fmt::Display for RangesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RangesError {}

impl Range {
    /// One size.
    #[must_use]
    pub fn one(size: u64) -> Self {
        Self {
            least: size,
            most: size,
            step: 1,
        }
    }

    /// How many sizes there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        (self.most - self.least) / self.step + 1
    }

    fn contains(&self, size: u64) -> bool {
        (self.least..=self.most).contains(&size) && (size - self.least).is_multiple_of(self.step)
    }
}

impl Ranges {
    /// Every dimension has one size.
    #[must_use]
    pub fn fixed(dims: &BTreeMap<String, u64>) -> Self {
        let one = |(name, &size): (&String, &u64)| (name.clone(), vec![Range::one(size)]);
        Self(dims.iter().map(one).collect())
    }

    /// The smallest ranges with all of these sizes.
    #[must_use]
    pub fn around<'s>(shapes: impl IntoIterator<Item = &'s BTreeMap<String, u64>>) -> Self {
        let mut ranges: BTreeMap<String, Vec<Range>> = BTreeMap::new();
        for (name, &size) in shapes.into_iter().flatten() {
            let range = ranges.entry(name.clone()).or_insert_with(|| vec![Range::one(size)]);
            for range in range {
                (range.least, range.most) = (range.least.min(size), range.most.max(size));
            }
        }
        Self(ranges)
    }

    /// The dimensions and their ranges, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Range])> {
        self.0.iter().map(|(name, ranges)| (name.as_str(), ranges.as_slice()))
    }

    /// Names of the dimensions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is no dimension.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this dimension has ranges.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// These and those of others, where these say nothing of a dimension.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        for (name, ranges) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| ranges.clone());
        }
        self
    }

    /// Those of some dimensions.
    #[must_use]
    pub fn only(mut self, is_one: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|name, _| is_one(name));
        self
    }

    /// How many sizes a dimension has; 0 where nothing is said of it.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.0
            .get(name)
            .map_or(0, |ranges| ranges.iter().map(Range::count).sum())
    }

    /// The size at a place among those of a dimension, from the smallest on; the largest where there are fewer.
    #[must_use]
    pub fn nth(&self, name: &str, mut place: u64) -> Option<u64> {
        let ranges = self.0.get(name)?;
        for range in ranges {
            if place < range.count() {
                return Some(range.least + place * range.step);
            }
            place -= range.count();
        }
        ranges.last().map(|range| range.most)
    }

    /// Smallest and largest size of a dimension.
    #[must_use]
    pub fn ends(&self, name: &str) -> Option<(u64, u64)> {
        let ranges = self.0.get(name)?;
        Some((ranges.first()?.least, ranges.last()?.most))
    }

    /// The smallest size of every dimension.
    #[must_use]
    pub fn smallest(&self) -> BTreeMap<String, u64> {
        self.each(|ranges| ranges.first().map_or(1, |range| range.least))
    }

    /// The largest size of every dimension.
    #[must_use]
    pub fn largest(&self) -> BTreeMap<String, u64> {
        self.each(|ranges| ranges.last().map_or(1, |range| range.most))
    }

    fn each(&self, of: impl Fn(&[Range]) -> u64) -> BTreeMap<String, u64> {
        self.0.iter().map(|(name, ranges)| (name.clone(), of(ranges))).collect()
    }

    /// Whether every dimension has one of its sizes.
    #[must_use]
    pub fn contains(&self, dims: &BTreeMap<String, u64>) -> bool {
        let is_in = |(name, ranges): (&String, &Vec<Range>)| {
            dims.get(name)
                .is_some_and(|&size| ranges.iter().any(|range| range.contains(size)))
        };
        self.0.iter().all(is_in)
    }
}

impl FromIterator<(String, Range)> for Ranges {
    fn from_iter<T: IntoIterator<Item = (String, Range)>>(ranges: T) -> Self {
        Self(ranges.into_iter().map(|(name, range)| (name, vec![range])).collect())
    }
}

impl FromStr for Ranges {
    type Err = RangesError;

    fn from_str(text: &str) -> Result<Self, RangesError> {
        let wrong = |piece: &str, why: &str| RangesError(format!("`{piece}`: {why}"));
        let mut found: BTreeMap<String, Vec<Range>> = BTreeMap::new();
        let mut name = None;
        for piece in text.split(',') {
            let sizes = match piece.rsplit_once('=') {
                Some((of, sizes)) if !of.is_empty() => {
                    if found.contains_key(of) {
                        return Err(wrong(piece, "sizes of this dimension are stated before"));
                    }
                    name = Some(of.to_owned());
                    sizes
                }
                Some(_) => return Err(wrong(piece, "expected `NAME=SIZES`")),
                None => piece,
            };
            let Some(name) = &name else {
                return Err(wrong(piece, "expected `NAME=SIZES`, such as `batch=1..64`"));
            };
            let range = range(sizes).map_err(|why| wrong(piece, &why))?;
            found.entry(name.clone()).or_default().push(range);
        }
        for (name, ranges) in &mut found {
            ranges.sort_unstable();
            if let Some(pair) = ranges.windows(2).find(|pair| pair[0].most >= pair[1].least) {
                return Err(RangesError(format!(
                    "sizes of `{name}`: {} and {} overlap",
                    pair[0], pair[1]
                )));
            }
        }
        Ok(Self(found))
    }
}

/// `7`, `1..64`, `64..1024:32`.
fn range(text: &str) -> Result<Range, String> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let size = text.parse().ok().filter(|size| is_plain && (1..=MOST).contains(size));
        size.ok_or_else(|| format!("`{text}` is not a size from 1 to {MOST}"))
    };
    let Some((least, most)) = text.split_once("..") else {
        return Ok(Range::one(number(text)?));
    };
    let (most, step) = match most.split_once(':') {
        Some((most, step)) => (most, number(step)?),
        None => (most, 1),
    };
    let (least, most) = (number(least)?, number(most)?);
    if least > most {
        return Err(format!("from {least} to {most} there is no size"));
    }
    let most = least + (most - least) / step * step;
    Ok(Range { least, most, step })
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least == self.most, self.step) {
            (true, _) => write!(f, "{}", self.least),
            (false, 1) => write!(f, "{}..{}", self.least, self.most),
            (false, step) => write!(f, "{}..{}:{step}", self.least, self.most),
        }
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, ranges)) in self.0.iter().enumerate() {
            f.write_str(if place > 0 { "," } else { "" })?;
            write!(f, "{name}=")?;
            for (place, range) in ranges.iter().enumerate() {
                write!(f, "{}{range}", if place > 0 { "," } else { "" })?;
            }
        }
        Ok(())
    }
}

/// Ranges that a test states.
#[cfg(test)]
pub(crate) fn read(text: &str) -> Ranges {
    text.parse().expect("they are ranges")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        for text in ["batch=1..64,sequence=1..512", "n=1,4,8..16", "h=64..1024:32,x[0]=7"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("n=8,1..4").to_string(), "n=1..4,8");
        assert_eq!(read("n=1..10:4").to_string(), "n=1..9:4");
    }

    #[test]
    fn what_is_no_range_is_said() {
        for (text, why) in [
            ("", "``: expected `NAME=SIZES`, such as `batch=1..64`"),
            ("3", "`3`: expected `NAME=SIZES`, such as `batch=1..64`"),
            ("=3", "`=3`: expected `NAME=SIZES`"),
            ("n=0", "`n=0`: `0` is not a size from 1 to 1099511627776"),
            ("n=4..2", "`n=4..2`: from 4 to 2 there is no size"),
            ("n=1..4,3", "sizes of `n`: 1..4 and 3 overlap"),
            ("n=1,n=2", "`n=2`: sizes of this dimension are stated before"),
            ("n=1..4:0", "`n=1..4:0`: `0` is not a size from 1 to 1099511627776"),
        ] {
            assert_eq!(
                text.parse::<Ranges>().map_err(|error| error.to_string()),
                Err(why.to_owned())
            );
        }
    }

    #[test]
    fn sizes_are_counted_from_the_smallest() {
        let ranges = read("h=64..128:32,200,n=1..3");
        let sizes: Vec<u64> = (0..ranges.count("h"))
            .filter_map(|place| ranges.nth("h", place))
            .collect();
        assert_eq!(sizes, [64, 96, 128, 200]);
        assert_eq!(ranges.nth("h", 9), Some(200));
        assert_eq!(ranges.ends("h"), Some((64, 200)));
        let dims = |h, n| BTreeMap::from([("h".to_owned(), h), ("n".to_owned(), n)]);
        assert_eq!((ranges.smallest(), ranges.largest()), (dims(64, 1), dims(200, 3)));
        assert!(ranges.contains(&dims(96, 2)) && !ranges.contains(&dims(97, 2)) && !ranges.contains(&dims(96, 4)));
    }

    #[test]
    fn ranges_around_shapes_have_all_of_them() {
        let shapes = [3u64, 1, 9].map(|n| BTreeMap::from([("n".to_owned(), n)]));
        assert_eq!(Ranges::around(&shapes).to_string(), "n=1..9");
    }
}
