//! The fused model with stretches tile by tile, as a strategy that comes before all others.

use remat::{Model, tile};
use remat_solve::Activity;

use crate::clock::Clock;
use crate::{DeployError, DeployRequest};

/// Share of the time for finding stretches and weighing them.
const SHARE: f64 = 0.4;

/// The model with the stretches tile by tile that the plan names, or else with those that pay; `None` where none does.
pub(crate) fn in_tiles(
    request: &DeployRequest<'_>,
    model: &Model,
    clock: &Clock<'_>,
) -> Result<Option<Model>, DeployError> {
    let given = request.plan.and_then(|plan| plan.setup.as_ref()?.tiling.as_ref());
    if let Some(tiling) = given {
        return Ok(Some(model.tiled(tiling, request.load)?));
    }
    let Some(fission) = request.fission else {
        return Ok(None);
    };
    clock.begins(Activity::Plan, "tiles");
    Ok(tile(
        model,
        request.load,
        request.solve,
        fission,
        &clock.search(clock.left(), SHARE),
    )?)
}
