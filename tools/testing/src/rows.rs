//! Numbers with dimensions, in double precision.

/// Numbers in rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Numbers {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Elements, the last axis innermost.
    pub data: Vec<f64>,
}

impl Numbers {
    /// Of these dimensions, each from its place.
    #[must_use]
    pub fn from_fn(dims: &[usize], element: impl FnMut(Vec<usize>) -> f64) -> Self {
        let data = places(dims).into_iter().map(element).collect();
        Self {
            dims: dims.to_vec(),
            data,
        }
    }

    /// The element at a place; along axes of one element any place will do.
    pub(super) fn at(&self, place: &[usize]) -> f64 {
        let skipped = place.len() - self.dims.len();
        let index = self
            .dims
            .iter()
            .zip(&place[skipped..])
            .fold(0, |index, (&dim, &at)| index * dim + if dim == 1 { 0 } else { at });
        self.data[index]
    }

    /// Elements of the first two axes together with those of all others: `N`, `C`, the rest.
    pub(super) fn channels(&self) -> [usize; 3] {
        [self.dims[0], self.dims[1], self.dims[2..].iter().product()]
    }
}

/// Every place of a tensor, the last axis innermost.
pub(super) fn places(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &dim in dims {
        all = all
            .into_iter()
            .flat_map(|place| (0..dim).map(move |at| [place.as_slice(), &[at]].concat()))
            .collect();
    }
    all
}

/// One after the other along an axis.
pub(super) fn concat(operands: &[&Numbers], axis: usize) -> Numbers {
    let mut dims = operands[0].dims.clone();
    dims[axis] = operands.iter().map(|operand| operand.dims[axis]).sum();
    Numbers::from_fn(&dims, |mut place| {
        for operand in operands {
            if place[axis] < operand.dims[axis] {
                return operand.at(&place);
            }
            place[axis] -= operand.dims[axis];
        }
        unreachable!("the place lies in one of them")
    })
}
