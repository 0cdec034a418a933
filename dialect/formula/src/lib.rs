//! Dimensions that a model leaves open: which sizes they have, and other sizes as formulas of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `formula` | polynomials in the open dimensions, and in what is derived from these |
//! | `fit` | formulas for numbers that are known for some sizes |
//! | `ranges` | ranges of sizes, as a user states them |

mod fit;
mod formula;
mod ranges;

pub use fit::Fit;
pub use formula::{Derived, Formula, Interval, MOST_VARIABLES, OpenDim, intervals, values};
pub use ranges::{Range, Ranges, RangesError};
