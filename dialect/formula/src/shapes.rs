//! Shapes of ranges: sizes of all dimensions.

use std::collections::{BTreeMap, BTreeSet};

use crate::Ranges;

/// Most shapes at the corners of ranges that are looked at.
const MOST_CORNERS: usize = 64;

/// Random shapes that are drawn for each one that is wanted, because some come twice.
const TRIES: usize = 8;

/// A size of every dimension, by name.
pub type Shape = BTreeMap<String, u64>;

impl Ranges {
    /// How many shapes there are; the largest number if there are more.
    #[must_use]
    pub fn shapes(&self) -> u64 {
        self.names()
            .map(|name| self.count(name))
            .fold(1, |product: u64, count| product.saturating_mul(count))
    }

    /// The shape at a place among all, the last dimension counted fastest.
    #[must_use]
    pub fn shape(&self, mut place: u64) -> Shape {
        let names: Vec<&str> = self.names().collect();
        let mut shape = Shape::new();
        for name in names.into_iter().rev() {
            let count = self.count(name).max(1);
            shape.extend(self.nth(name, place % count).map(|size| (name.to_owned(), size)));
            place /= count;
        }
        shape
    }

    /// The shapes in which every dimension has its smallest or its largest size, some of them if there are more than 64; the largest is the last.
    #[must_use]
    pub fn corners(&self) -> Vec<Shape> {
        let mut corners = vec![Shape::new()];
        for name in self.names() {
            let Some((least, most)) = self.ends(name) else { continue };
            let both = least < most && corners.len() * 2 <= MOST_CORNERS;
            let sizes = [Some(least).filter(|_| both), Some(most)];
            let with = |size: u64| {
                let add = move |corner: &Shape| {
                    let mut corner = corner.clone();
                    corner.insert(name.to_owned(), size);
                    corner
                };
                corners.iter().map(add).collect::<Vec<_>>()
            };
            corners = sizes.into_iter().flatten().flat_map(with).collect();
        }
        corners
    }

    /// So many random shapes, the same ones for the same seed; some may come twice.
    #[must_use]
    pub fn sample(&self, count: usize, seed: u64) -> Vec<Shape> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut state = seed.wrapping_add(1);
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below.max(1)
        };
        let mut one = || {
            let size = |name: &str| Some((name.to_owned(), self.nth(name, next(self.count(name)))?));
            self.names().filter_map(size).collect()
        };
        (0..count).map(|_| one()).collect()
    }

    /// The shapes by which a property of all is judged: all of them if there are no more than `most`, else the corners and random ones, `most`
    /// together. None comes twice.
    #[must_use]
    pub fn to_judge(&self, most: usize) -> Vec<Shape> {
        let all = self.shapes();
        if all <= most as u64 {
            return (0..all).map(|place| self.shape(place)).collect();
        }
        let mut shapes: Vec<Shape> = self.corners();
        shapes.truncate(most);
        let mut seen: BTreeSet<Shape> = shapes.iter().cloned().collect();
        let random = self.sample(most.saturating_mul(TRIES), 0).into_iter();
        let left = most - shapes.len();
        shapes.extend(random.filter(|shape| seen.insert(shape.clone())).take(left));
        shapes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::read;

    #[test]
    fn every_shape_has_a_place() {
        let ranges = read("h=64..128:32,200,n=1..3");
        assert_eq!(ranges.shapes(), 12);
        let all: BTreeSet<Shape> = (0..12).map(|place| ranges.shape(place)).collect();
        assert!(all.len() == 12 && all.iter().all(|shape| ranges.contains(shape)));
        assert_eq!(
            (ranges.shape(0), ranges.shape(11)),
            (ranges.smallest(), ranges.largest())
        );
    }

    #[test]
    fn corners_have_the_ends_of_every_dimension() {
        let corners = read("h=64..128:32,200,n=1..3,x=7").corners();
        assert_eq!(corners.len(), 4);
        assert_eq!(corners.last(), Some(&read("h=64..128:32,200,n=1..3,x=7").largest()));
        let many: Vec<String> = (0..20).map(|dim| format!("d{dim}=1..9")).collect();
        let many = read(&many.join(","));
        let corners = many.corners();
        assert_eq!((corners.len(), corners.last()), (MOST_CORNERS, Some(&many.largest())));
    }

    #[test]
    fn few_shapes_are_judged_one_by_one_and_of_many_some() {
        assert_eq!(read("n=1..3,m=5,9").to_judge(6).len(), 6);
        let ranges = read("n=1..1000,m=1..1000");
        let judged = ranges.to_judge(100);
        let distinct: BTreeSet<&Shape> = judged.iter().collect();
        assert!(judged.len() == 100 && distinct.len() == judged.len());
        assert!(judged.iter().all(|shape| ranges.contains(shape)));
        assert!(ranges.corners().iter().all(|corner| judged.contains(corner)));
        assert_eq!(judged, ranges.to_judge(100));
    }
}
