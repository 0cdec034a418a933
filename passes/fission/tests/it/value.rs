//! Dense arrays of `f64` for the reference interpreter.

/// An array in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Value {
    pub(crate) dims: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Value {
    /// An array whose elements a function of their position gives.
    pub(crate) fn from_fn(dims: &[usize], mut element: impl FnMut(&[usize]) -> f64) -> Self {
        let count: usize = dims.iter().product();
        let mut at = vec![0; dims.len()];
        let mut data = Vec::with_capacity(count);
        for _ in 0..count {
            data.push(element(&at));
            for axis in (0..dims.len()).rev() {
                at[axis] += 1;
                if at[axis] < dims[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        let dims = dims.to_vec();
        Self { dims, data }
    }

    fn index(&self, at: &[usize]) -> usize {
        assert_eq!(at.len(), self.dims.len());
        at.iter().zip(&self.dims).fold(0, |index, (&at, &dim)| {
            assert!(at < dim, "{at} of {dim}");
            index * dim + at
        })
    }

    pub(crate) fn at(&self, at: &[usize]) -> f64 {
        self.data[self.index(at)]
    }

    pub(crate) fn add_at(&mut self, at: &[usize], term: f64) {
        let index = self.index(at);
        self.data[index] += term;
    }

    /// The element that broadcasts to a position of a result.
    pub(crate) fn broadcast(&self, at: &[usize]) -> f64 {
        let own = &at[at.len() - self.dims.len()..];
        let own: Vec<usize> = own
            .iter()
            .zip(&self.dims)
            .map(|(&at, &dim)| if dim == 1 { 0 } else { at })
            .collect();
        self.at(&own)
    }

    /// A box of it.
    pub(crate) fn part(&self, ranges: &[std::ops::Range<u64>]) -> Self {
        let small = |number: u64| usize::try_from(number).unwrap();
        let dims: Vec<usize> = ranges.iter().map(|range| small(range.end - range.start)).collect();
        Self::from_fn(&dims, |at| {
            let at: Vec<usize> = at
                .iter()
                .zip(ranges)
                .map(|(&at, range)| at + small(range.start))
                .collect();
            self.at(&at)
        })
    }

    pub(crate) fn ints(&self) -> Vec<i64> {
        self.data.iter().map(|&number| number as i64).collect()
    }
}
