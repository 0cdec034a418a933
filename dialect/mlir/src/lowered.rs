//! What a function takes once its tensors are buffers, and what a pass needs to try several forms of a function: copies of its body.

use melior::ir::Operation;

use crate::ffi::lowered as queries;
use crate::function::Function;

/// The body of a function as it was.
pub struct FormerBody<'c>(Operation<'c>);

impl<'c> Function<'c> {
    /// Bytes of the heap at the peak of the function, its results included, by the documented passes: `one-shot-bufferize`,
    /// `buffer-deallocation-pipeline`, `optimize-allocation-liveness`, on a copy. `None` where these do not take the function as it stands
    /// (operations that are to be lowered first, calls, several blocks), or where data decide what is freed when.
    #[must_use]
    pub fn lowered_peak(self) -> Option<u64> {
        queries::peak(self.op())
    }

    /// The body as it is.
    #[must_use]
    pub fn body_as_it_is(self) -> FormerBody<'c> {
        FormerBody((*self.op()).clone())
    }

    /// Gives the function a body that it had.
    pub fn restore(self, body: &FormerBody<'c>) {
        queries::restore(self.op(), &body.0);
    }

    /// Puts an allocation in the place of each empty tensor, right before the first operation that writes into it. Readers of one keep
    /// sharing it; passes that merge equal operations make no others share it.
    pub fn own_empties(self) {
        queries::own_empties(self.op());
    }

    /// Has operations that compute element by element write their results where operands are that nobody reads later; bufferization does the
    /// rest. Empty tensors become an allocation for each operation that writes into them. Returns whether there is such a result.
    #[must_use]
    pub fn reuse_operands(self) -> bool {
        queries::reuse_operands(self.op())
    }

    /// Whether the function allocates buffers, so that its tensors are buffers already.
    #[must_use]
    pub fn is_bufferized(self) -> bool {
        queries::allocates_buffers(self.op())
    }
}
