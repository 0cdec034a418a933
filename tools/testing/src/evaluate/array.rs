//! Arrays of integers.

use std::ops::Range;

/// A dense array in row-major order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// Its elements.
    pub data: Vec<i64>,
}

impl Array {
    /// Small numbers that look random and follow from a name.
    #[must_use]
    pub fn of_name(name: &str, dims: Vec<usize>) -> Self {
        let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap_or(0) % 19 - 9
        };
        let count = dims.iter().product();
        Self {
            dims,
            data: (0..count).map(|_| next()).collect(),
        }
    }

    /// A part of it: rows of every axis.
    #[must_use]
    pub fn part(&self, ranges: &[Range<u64>]) -> Self {
        let small = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        let dims = ranges.iter().map(|rows| small(rows.end - rows.start)).collect();
        Self::from_fn(dims, |at| {
            let at = at.iter().zip(ranges).map(|(&at, rows)| at + small(rows.start));
            self.at(&at.collect::<Vec<usize>>())
        })
    }

    /// An array of these elements, by place.
    pub(super) fn from_fn(dims: Vec<usize>, mut element: impl FnMut(&[usize]) -> i64) -> Self {
        let mut data = Vec::with_capacity(dims.iter().product());
        each(&dims, |at| data.push(element(at)));
        Self { dims, data }
    }

    /// The element at a place.
    pub(super) fn at(&self, at: &[usize]) -> i64 {
        assert_eq!(at.len(), self.dims.len(), "a place among {:?}", self.dims);
        let index = at.iter().zip(&self.dims).fold(0, |index, (&at, &dim)| {
            assert!(at < dim, "{at} among {dim}");
            index * dim + at
        });
        self.data[index]
    }

    /// The element at a place of what the array is broadcast to.
    pub(super) fn at_right(&self, at: &[usize]) -> i64 {
        let at = &at[at.len() - self.dims.len()..];
        let own: Vec<usize> = at
            .iter()
            .zip(&self.dims)
            .map(|(&at, &dim)| if dim == 1 { 0 } else { at })
            .collect();
        self.at(&own)
    }
}

/// What two shapes are broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[usize], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(axis) => dims[axis],
        None => 1,
    };
    (0..rank).map(|axis| dim(a, axis).max(dim(b, axis))).collect()
}

/// Every place of a shape, in row-major order.
pub(super) fn each(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut at = vec![0; dims.len()];
    loop {
        visit(&at);
        let Some(axis) = (0..dims.len()).rev().find(|&axis| at[axis] + 1 < dims[axis]) else {
            return;
        };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}
