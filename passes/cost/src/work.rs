//! What an op does, free of any device.

use remat_ir::ElementType;

use crate::KernelClass;

/// The arithmetic and the traffic of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// Which efficiency applies.
    pub(crate) class: KernelClass,
    /// The element type that the arithmetic is done in.
    pub(crate) element: ElementType,
    /// Arithmetic operations, a multiply-add counted as two.
    pub(crate) flops: u128,
    /// Bytes of operands that are looked at.
    pub(crate) read_bytes: u128,
    /// Bytes of results.
    pub(crate) written_bytes: u128,
    /// What a CPU kernel does besides: unfolding, packing, short inner loops.
    pub(crate) detail: CpuDetail,
}

/// What the kernels of a CPU spend beyond the roofline. Kernels of accelerators hide it behind their parallelism.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CpuDetail {
    /// Bytes that go through buffers of the kernel's own: unfolded images, packed panels, blended branches.
    pub(crate) repacked_bytes: u128,
    /// Inner loops that are started: a loop over three elements costs little less than one over thirty.
    pub(crate) runs: u128,
    /// Length of the rows of a matrix product, which are padded to whole vectors.
    pub(crate) row: Option<u64>,
}

impl Work {
    /// The work of an op that costs nothing when the model runs.
    pub(crate) fn none(class: KernelClass) -> Self {
        Self {
            class,
            element: ElementType::Float32,
            flops: 0,
            read_bytes: 0,
            written_bytes: 0,
            detail: CpuDetail::default(),
        }
    }
}
