//! Fused chains of operations that run tile by tile.

use remat::solver::SolveControl;
use remat::{FissionRequest, LoadOptions, Model, SecondMemory};

use crate::{PassError, PassOptions};

/// Share of the time for finding fused chains that run tile by tile.
const TILING: f64 = 0.4;

/// The function with those fused chains tile by tile that pay.
pub(crate) fn in_tiles<'c>(
    whole: Model,
    fission: &FissionRequest,
    options: &PassOptions,
    control: &SolveControl<'_>,
) -> Result<Model, PassError<'c>> {
    let load = &options.model.load;
    if moves(load) {
        return Err(PassError::Schedule(
            "tiles do not move to a second memory: leave out `fission` or `paging`".to_owned(),
        ));
    }
    let tiled = remat::tile(&whole, load, &options.request, fission, &control.share_of_time(TILING))?;
    Ok(tiled.into_iter().next().unwrap_or(whole))
}

/// Whether plans may move tensors to a second memory.
pub(crate) fn moves(load: &LoadOptions) -> bool {
    matches!(load.second_memory, Some(SecondMemory::Used { .. }))
}
