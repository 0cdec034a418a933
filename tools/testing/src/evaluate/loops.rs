//! Operations of MLIR whose loops the importer states: at each point of the loops, the product of what the operands hold at their indices is
//! added to the result. And paddings whose amounts are attributes.

use super::Call;
use super::array::{Array, each};

impl Call<'_> {
    pub(super) fn loops(&self) -> Array {
        let size = |extent: i64| usize::try_from(extent).unwrap_or_else(|_| panic!("a loop of `{}`", self.op.name));
        let known = |name: &str| {
            self.ints(name)
                .unwrap_or_else(|| panic!("`{name}` of `{}`", self.op.name))
        };
        let extents: Vec<usize> = known("extents").into_iter().map(size).collect();
        let width = extents.len() + 1;
        let index = |map: &[i64], point: &[usize]| -> Vec<usize> {
            let row = |row: &[i64]| {
                let at = row.iter().zip(point).map(|(&by, &at)| by * at as i64).sum::<i64>();
                size(at + row[width - 1])
            };
            map.chunks(width).map(row).collect()
        };
        let result = known("result_map");
        let last: Vec<usize> = extents.iter().map(|&extent| extent - 1).collect();
        let dims: Vec<usize> = index(&result, &last).into_iter().map(|last| last + 1).collect();
        let maps: Vec<(Vec<i64>, &Array)> = (0..self.op.inputs.len())
            .filter_map(|place| Some((self.ints(&format!("map{place}"))?, self.given(place)?)))
            .collect();
        let mut sums = Array::from_fn(dims.clone(), |_| 0);
        each(&extents, |point| {
            let product = maps.iter().fold(1_i64, |product, (map, operand)| {
                product.wrapping_mul(operand.at(&index(map, point)))
            });
            let at = index(&result, point)
                .iter()
                .zip(&dims)
                .fold(0, |at, (&own, &dim)| at * dim + own);
            sums.data[at] = sums.data[at].wrapping_add(product);
        });
        sums
    }

    pub(super) fn pad_by_attributes(&self) -> Array {
        let x = self.operand(0);
        let amounts = |name: &str| {
            self.ints(name)
                .unwrap_or_else(|| panic!("`{name}` of `{}`", self.op.name))
        };
        let (low, high) = (amounts("static_low"), amounts("static_high"));
        let added = low.iter().zip(&high).map(|(low, high)| low + high);
        let dims = x
            .dims
            .iter()
            .zip(added)
            .map(|(&dim, added)| dim + usize::try_from(added).unwrap_or(0));
        Array::from_fn(dims.collect(), |at| {
            let inside = at.iter().zip(&low).zip(&x.dims).map(|((&at, &low), &dim)| {
                let at = usize::try_from(at as i64 - low).ok()?;
                (at < dim).then_some(at)
            });
            inside.collect::<Option<Vec<usize>>>().map_or(0, |at| x.at(&at))
        })
    }
}
