//! Normalizations, softmax and the best along an axis in two passes ([`STREAMED_DOMAIN`]) as nodes of ONNX.
//!
//! What ops of this domain find stays in two values of `N x C x 1 x 1`, a mean and squares or a factor and a summand: only where an op of
//! another domain reads both, they stand side by side in one.
//!
//! | op | nodes |
//! |---|---|
//! | `Moments` | `ReduceMean`, `Sub`, `ReduceSumSquare`, each of rows before all: kernels add up one number after the other, and lose 7e-5 of a sum of 512 x 512 squares; the difference may take the place of the part, where that is not read again |
//! | `CombineMoments` | means relative to the first one, weighted; squares with what lies between the means added |
//! | `Normalizer` | `f = scale * factor / sqrt(variance + epsilon)`, `o = bias * factor + summand - mean * f`: the factor that is multiplied by is the one that is subtracted with, so that its rounding does not matter where means are large |
//! | `Normalizer` of statistics alone | `1 / sqrt(variance + epsilon)`, and the mean |
//! | `Normalize` | `Mul`, `Add`: in place; with numbers for each element `Sub`, `Mul` and what these are: means are subtracted first, as the runtime does |
//! | `CombineMeans` | `Mean`; with unequal counts a `Sum` of products |
//! | `Exponentials` | `ReduceMax`, no less than the least finite number, `Sub`, `Exp`, `ReduceSum`: two values, with one row along the axis |
//! | `Weigh` | the same, and a `MatMul` of the exponentials: a third value |
//! | `CombineExponentials` | `Max`; each sum times the exponential of what its maximum differs from that, `Sum` |
//! | `Soften` | `Sub`, `Exp`, `Div`; with `log` two differences |
//! | `Weighed` | `Div` |
//! | `Best` | `ArgMax` or `ArgMin` and `GatherElements`, of several `TopK`; `Add` of the first row: two values, elements and places |
//! | `CombineBest` | `Concat` of both in the order of rows, the same again, and `GatherElements` of places: of equal elements the first stays first |
//! | `BestValues`, `BestPlaces` | `Identity`; of places without the axis `Squeeze` |
//!
//! Statistics of halves are kept in single precision, and halves multiplied there: the squares of a part would not fit, nor would the factor of a
//! small variance.

mod best;
mod nodes;
mod normalize;
mod softmax;
mod state;
mod sums;

use onnx_protobuf::NodeProto;
use remat_ir::Op;
use remat_operators::STREAMED_DOMAIN;

use self::nodes::Nodes;
use self::state::unsupported;
pub(crate) use self::state::{Streamed, is_streamed};
use crate::opsets::opsets;
use crate::tiles::Tiles;
use crate::{OnnxError, OnnxModel};

/// The first version of ONNX's operators that the nodes are written for.
const FIRST_VERSION: u64 = 11;

impl OnnxModel {
    /// Whether what runs in two passes can be written: it takes operators of version 11.
    #[must_use]
    pub fn may_stream(&self) -> bool {
        let version = opsets(&self.proto.opset_import).get("").copied();
        version.is_some_and(|version| version >= FIRST_VERSION)
    }
}

impl<'a> Streamed<'a> {
    /// The nodes of an op of this domain, the last of them with the name of the op if it gives a value of its own.
    ///
    /// # Errors
    /// [`OnnxError::Unsupported`] for models without ONNX's operators of version 11, and for ops that do not keep the rules of the domain.
    pub(crate) fn nodes(&mut self, op: &'a Op, tiles: &Tiles<'a>) -> Result<Vec<NodeProto>, OnnxError> {
        let version = self.version.filter(|&version| version >= FIRST_VERSION);
        let version = version.ok_or_else(|| {
            let have = self
                .version
                .map_or_else(|| "none".to_owned(), |version| version.to_string());
            unsupported(
                op,
                &format!(
                    "what runs in two passes needs version {FIRST_VERSION} of ONNX's operators, the model has {have}"
                ),
            )
        })?;
        let mut nodes = Nodes::new(self, tiles, op, version)?;
        match op.op_type.as_str() {
            "Moments" => nodes.moments()?,
            "CombineMoments" => nodes.combine_moments()?,
            "Normalizer" => nodes.normalizer()?,
            "Normalize" => nodes.normalize()?,
            "CombineMeans" => nodes.combine_means()?,
            "Exponentials" => nodes.exponentials(false)?,
            "Weigh" => nodes.exponentials(true)?,
            "CombineExponentials" => nodes.combine_exponentials()?,
            "Soften" => nodes.soften()?,
            "Weighed" => nodes.weighed()?,
            "Best" => nodes.best()?,
            "CombineBest" => nodes.combine_best()?,
            "BestValues" => nodes.best_values()?,
            "BestPlaces" => nodes.best_places()?,
            other => {
                return Err(unsupported(
                    op,
                    &format!("the domain {STREAMED_DOMAIN} has no operator `{other}`"),
                ));
            }
        }
        Ok(nodes.written)
    }
}
