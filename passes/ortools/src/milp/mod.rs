//! Mixed-integer programs in floating point, and HiGHS, which solves them.
//!
//! A [`Program`] has columns with bounds and costs, and sparse rows. [`highs`] solves it, from a known solution where there is one, and
//! [`relaxation`] keeps its linear relaxation while rows are added and columns fixed.
//!
//! HiGHS counts in floating point: solutions are rounded and judged in integers by the caller. [`certain`] rounds a bound
//! down far enough to cover the tolerances.

pub(crate) mod highs;
pub(crate) mod highs_capi;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) mod quiet;
pub(crate) mod relaxation;
pub(crate) mod watch;

/// One variable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Column {
    pub(crate) cost: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    pub(crate) integer: bool,
}

/// Sparse rows, one after another: `lower <= sum of coefficient * column <= upper`. Terms are numbered in `i32`, as a [`Program`] is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Where each row starts in `columns` and `coefficients`.
    pub(crate) starts: Vec<i32>,
    pub(crate) columns: Vec<i32>,
    pub(crate) coefficients: Vec<f64>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

impl Rows {
    /// Adds a row.
    pub(crate) fn push(&mut self, terms: impl IntoIterator<Item = (u32, f64)>, lower: f64, upper: f64) {
        let index = |value: usize| i32::try_from(value).expect("formulations refuse programs that large");
        self.starts.push(index(self.columns.len()));
        for (column, coefficient) in terms {
            self.columns.push(index(column as usize));
            self.coefficients.push(coefficient);
        }
        self.lower.push(lower);
        self.upper.push(upper);
    }

    pub(crate) fn len(&self) -> usize {
        self.lower.len()
    }
}

/// Minimize the cost of columns within their bounds and the rows.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What a cost of 1 stands for: a power of two.
    pub(crate) price: f64,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Rows,
}

/// By how much a bound may be too high, as a share of it; the tolerance of HiGHS is 1e-6.
const SLACK: f64 = 1e-5;

/// The least integer objective that a floating-point bound certainly allows, where costs are integers and not negative.
pub(crate) fn certain(bound: f64) -> i64 {
    let certain = bound - SLACK * bound.abs().max(1.0);
    if certain.is_finite() {
        certain.ceil().max(0.0) as i64
    } else {
        0
    }
}
