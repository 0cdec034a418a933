//! Normalizations and softmax in two passes, which fission makes of one op where sums may be split: a pass that keeps statistics only, and one that
//! applies them. So are searches for the largest or smallest elements, which keep every bit.
//! In a file each stands as ops of ONNX (`remat-onnx`).
//!
//! | op | operands | result |
//! |---|---|---|
//! | `Moments` | `x`, `N x C x ...` | `N x C x 1 x 2`: of each channel of each image the mean, and the sum of the squares of what differs from it |
//! | `CombineMoments` | `Moments` of parts of one `x` | `Moments` of all of it; `counts` says how many elements of a channel each part has |
//! | `Normalizer` | `Moments`, and where given scale and bias (of each group or channel), and a factor and a summand that follow, which have an element for each channel | `N x C x 1 x 2`: by what each channel is multiplied, and what is added; `count`: elements of a channel, `groups`, `epsilon` |
//! | `Normalize` | `x`, `Normalizer`, and where given a factor and a summand for each element | `x`, multiplied and added to |
//! | `CombineMeans` | means of parts | their mean, weighted by `counts` |
//! | `Exponentials` | `x` | `x` with one row along `axis`, of two numbers each: the maximum, and the sum of the exponentials of what differs from it |
//! | `Weigh` | `x`, and `v` with as many rows as `x` has columns, which `axis` are | of each row of `x` the maximum, this sum, and the product of these exponentials and `v` |
//! | `CombineExponentials` | one of these of parts along `axis` | that of all of it |
//! | `Soften` | `x`, `Exponentials` | the softmax along `axis`, or, with `log`, the logarithm of it |
//! | `Weighed` | `Weigh` | the product of the softmax and `v` |
//! | `Best` | `x` | the first `count` elements along `axis` by size, or all where there are fewer, each with its place, of two numbers each: the `largest` first (1) or the smallest (0); of equal ones the first, or with `last` the last; `from` is the place of the first row |
//! | `CombineBest` | `Best` of parts along `axis`, in order | `Best` of all of it; `axis`, `count`, `largest` and `last` are those of the parts |
//! | `BestValues` | `Best` | the elements |
//! | `BestPlaces` | `Best` | their places; without `axis` where `keepdims` is 0 |

use crate::columns::{Combine, Formula as F, Movement, ResultType as R, Split as S, Workspace as W};
use crate::operator::Operator;

/// The domain of normalizations in two passes.
pub const STREAMED_DOMAIN: &str = "com.remat.streamed";

/// The op that finds statistics.
pub const MOMENTS: &str = "Moments";

/// The op that makes of statistics what is multiplied and added.
pub const NORMALIZER: &str = "Normalizer";

/// The op that multiplies and adds.
pub const NORMALIZE: &str = "Normalize";

/// The op that finds maxima and sums of exponentials.
pub const EXPONENTIALS: &str = "Exponentials";

/// The op that finds what exponentials weigh, too.
pub const WEIGH: &str = "Weigh";

/// The op that makes a softmax of exponentials.
pub const SOFTEN: &str = "Soften";

/// The op that divides what exponentials weigh by their sum.
pub const WEIGHED: &str = "Weighed";

/// The op that finds the largest or smallest elements along an axis, and their places.
pub const BEST: &str = "Best";

/// The op that gives the elements of [`BEST`].
pub const BEST_VALUES: &str = "BestValues";

/// The op that gives the places of [`BEST`].
pub const BEST_PLACES: &str = "BestPlaces";

const COMBINE_BEST: &str = "CombineBest";
const COMBINE_EXPONENTIALS: &str = "CombineExponentials";
const COMBINE_MEANS: &str = "CombineMeans";
const COMBINE_MOMENTS: &str = "CombineMoments";

impl Combine {
    /// Domain and name of the op that puts results over parts together; `None` where none does.
    #[must_use]
    pub fn operator(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Never => None,
            Self::Sum => Some(("", "Sum")),
            Self::Mean => Some((STREAMED_DOMAIN, COMBINE_MEANS)),
            Self::Maximum => Some(("", "Max")),
            Self::Minimum => Some(("", "Min")),
            Self::Moments => Some((STREAMED_DOMAIN, COMBINE_MOMENTS)),
            Self::Exponentials => Some((STREAMED_DOMAIN, COMBINE_EXPONENTIALS)),
            Self::Best => Some((STREAMED_DOMAIN, COMBINE_BEST)),
        }
    }
}

const fn streamed(name: &'static str) -> Operator {
    Operator::new(STREAMED_DOMAIN, name)
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Operator] = &[
    streamed(BEST).split(S::CombineAlong).cost(F::Reduce(1)).combine(Combine::Best),
    streamed(BEST_PLACES).cost(F::Move(Movement::Copy)),
    streamed(BEST_VALUES).cost(F::Move(Movement::Copy)),
    streamed(COMBINE_BEST).cost(F::Variadic),
    streamed(COMBINE_EXPONENTIALS).cost(F::Transcendental(20)).results(&[R::Like(0)]),
    streamed(COMBINE_MEANS).cost(F::Variadic).results(&[R::Like(0)]),
    streamed(COMBINE_MOMENTS).cost(F::Variadic).results(&[R::Like(0)]),
    streamed(EXPONENTIALS).split(S::CombineAlong).cost(F::Softmax(20)).workspace(W::Operand(0)).combine(Combine::Exponentials),
    streamed(MOMENTS).cost(F::Reduce(4)).workspace(W::Operand(0)).combine(Combine::Moments),
    streamed(NORMALIZE).split(S::ByChannel).cost(F::Elementwise(2)).results(&[R::Like(0)]).overwrites(0),
    streamed(NORMALIZER).cost(F::Elementwise(8)).results(&[R::Like(0)]),
    streamed(SOFTEN).split(S::Soften).cost(F::Transcendental(20)).results(&[R::Like(0)]).overwrites(0),
    streamed(WEIGH).split(S::CombineAlong).cost(F::MatMul).workspace(W::Operand(0)).combine(Combine::Exponentials),
    streamed(WEIGHED).cost(F::Elementwise(1)),
];
