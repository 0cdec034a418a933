//! A block that is scheduled on its own: the block of a function, one of several, or that of a region of an `scf` operation.

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, RegionLike, RegionRef};

use crate::error::{Diagnosed, ImportError};
use crate::ffi;
use crate::function::{Function, Severity};

/// A block that is scheduled on its own.
#[derive(Clone, Debug)]
pub struct Body<'c> {
    /// The function, or the operation with the region.
    holder: OperationRef<'c, 'c>,
    block: BlockRef<'c, 'c>,
    name: String,
}

impl<'c> Body<'c> {
    /// The blocks of a region, in the order of the text. An only block has the name of the region.
    pub(crate) fn of_region(holder: OperationRef<'c, 'c>, region: RegionRef<'c, 'c>, name: &str) -> Vec<Self> {
        let mut bodies = Vec::new();
        let mut next = region.first_block();
        while let Some(block) = next {
            bodies.push(Self {
                holder,
                block,
                name: name.to_owned(),
            });
            next = block.next_in_region();
        }
        if bodies.len() > 1 {
            for (number, body) in bodies.iter_mut().enumerate() {
                body.name = format!("{name} ^bb{number}");
            }
        }
        bodies
    }

    pub(crate) fn holder(&self) -> OperationRef<'c, 'c> {
        self.holder
    }

    pub(crate) fn block(&self) -> BlockRef<'c, 'c> {
        self.block
    }

    /// The name of the function; of one of several blocks also its number, from 0, as in `main ^bb1`; of a region the name of its operation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Emits an MLIR diagnostic at the end of the block.
    pub fn emit(&self, severity: Severity, text: &str) {
        let at = self.block.terminator().unwrap_or(self.holder);
        ffi::emit(at, severity.number(), text);
    }
}

impl<'c> Function<'c> {
    /// The blocks of the function, in the order of the text: each is scheduled on its own.
    ///
    /// # Errors
    /// [`ImportError::NotAFunction`].
    pub fn bodies(self) -> Result<Vec<Body<'c>>, Diagnosed<'c, ImportError>> {
        let name = || self.op().name().as_string_ref().as_str().unwrap_or_default().to_owned();
        let region = self.op().regions().next().filter(|_| ffi::is_function(self.op()));
        let bodies = region.map(|region| Body::of_region(self.op(), region, &self.name()));
        let bodies = bodies.filter(|bodies| !bodies.is_empty());
        bodies.ok_or_else(|| Diagnosed::at(self.op(), ImportError::NotAFunction(name())))
    }
}
