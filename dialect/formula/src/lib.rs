//! Dimensions that a model leaves open: which sizes they have, and other sizes as formulas of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `formula` | polynomials in the open dimensions, and in what is derived from these |
//! | `arithmetic` | sums, products and exact quotients of formulas |
//! | `variables` | what is derived, in one form |
//! | `sums` | names of dimensions that say a sum |
//! | `names` | formulas in the names of their variables |
//! | `fit` | formulas for numbers that are known for some sizes |
//! | `ranges` | ranges of sizes, as a user states them |
//! | `shapes` | the shapes of ranges: all, corners, and random ones |
//! | `parts` | parts of a range, halved until a bound is tight |
//! | `within` | what all shapes take at most, and in which of them a budget holds |

mod arithmetic;
mod fit;
mod formula;
mod names;
mod parts;
mod ranges;
mod shapes;
mod sums;
mod variables;
mod within;

pub use fit::Fit;
pub use formula::{Derived, Formula, Interval, MOST_VARIABLES, OpenDim, intervals, values};
pub use names::Names;
pub use parts::{Bound, Part, parts};
pub use ranges::{Range, Ranges, RangesError};
pub use shapes::Shape;
pub use sums::{Summand, size_of, summands};
pub use variables::Variables;
pub use within::{PeakBound, Proof, Within};
