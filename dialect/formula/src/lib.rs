//! Dimensions that a model leaves open: which sizes they have, and other sizes as formulas of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `formula` | polynomials in the open dimensions, and in what is derived from these |
//! | `arithmetic` | sums, products and exact quotients of formulas |
//! | `variables` | what is derived, in one form |
//! | `names` | formulas in the names of their variables |
//! | `fit` | formulas for numbers that are known for some sizes |
//! | `ranges` | ranges of sizes, as a user states them |

mod arithmetic;
mod fit;
mod formula;
mod names;
mod ranges;
mod variables;

pub use fit::Fit;
pub use formula::{Derived, Formula, Interval, MOST_VARIABLES, OpenDim, intervals, values};
pub use names::Names;
pub use ranges::{Range, Ranges, RangesError};
pub use variables::Variables;
