//! The fused model with stretches tile by tile, as a strategy that comes before all others.

use std::collections::VecDeque;

use remat::{Model, tile};
use remat_plan::{Stretch, Tiling};
use remat_solve::Activity;

use crate::clock::Clock;
use crate::error::Rejection;
use crate::{DeployError, DeployRequest};

/// Share of the time for finding stretches and weighing them.
const SHARE: f64 = 0.4;

/// The models with stretches tile by tile that are still to be tried, the most promising first.
#[derive(Default)]
pub(crate) struct Tilings {
    next: VecDeque<Model>,
    /// Stretches whose tiles have other bits, by their ends.
    forbidden: Vec<(String, String)>,
}

impl Tilings {
    /// The model with the stretches tile by tile that the plan names, or else with those that pay.
    pub(crate) fn of(request: &DeployRequest<'_>, model: &Model, clock: &Clock<'_>) -> Result<Self, DeployError> {
        let given = request.plan.and_then(|plan| plan.setup.as_ref()?.tiling.as_ref());
        let next = match (given, request.fission) {
            (Some(tiling), _) => VecDeque::from([model.tiled(tiling, request.load)?]),
            (None, None) => VecDeque::new(),
            (None, Some(fission)) => {
                clock.begins(Activity::Plan, "tiles");
                let control = clock.search(clock.left(), SHARE);
                tile(model, request.load, request.solve, fission, &control)?.into()
            }
        };
        Ok(Self {
            next,
            forbidden: Vec::new(),
        })
    }

    /// The next one without a stretch that is forbidden.
    pub(crate) fn pop(&mut self) -> Option<Model> {
        let forbidden = &self.forbidden;
        let is_free = |stretch: &Stretch| !forbidden.iter().any(|(first, last)| is_like(stretch, first, last));
        self.next
            .retain(|model| model.tiling().is_none_or(|tiling| tiling.stretches.iter().all(is_free)));
        self.next.pop_front()
    }

    /// After the file of `rejected` was: where its bits differ, stretches that `has_bits` denies, each looked at by itself, are forbidden, and
    /// what is left of its tiling is tried next.
    pub(crate) fn rejects(
        &mut self,
        rejected: &Model,
        whole: &Model,
        request: &DeployRequest<'_>,
        reason: &Rejection,
        mut has_bits: impl FnMut(&Model) -> bool,
    ) {
        let Some(tiling) = rejected.tiling() else {
            return;
        };
        if request.plan.is_some() || !matches!(reason, Rejection::OutputDiffers { .. }) {
            return;
        }
        let tiled = |stretches: Vec<Stretch>| {
            let again = tiling.again.clone();
            whole.tiled(&Tiling { again, stretches }, request.load).ok()
        };
        let (good, bad): (Vec<Stretch>, Vec<Stretch>) = tiling
            .stretches
            .iter()
            .cloned()
            .partition(|stretch| tiled(vec![stretch.clone()]).is_some_and(|model| has_bits(&model)));
        tracing::info!(
            good = good.len(),
            bad = bad.len(),
            "stretches were looked at one by one"
        );
        let ends = |stretch: &Stretch| (stretch.first.clone(), stretch.last.clone());
        self.forbidden.extend(bad.iter().map(ends));
        if !good.is_empty() && !bad.is_empty() {
            self.next.extend(tiled(good.clone()));
            self.next.rotate_right(1);
        }
    }
}

/// Whether a stretch has an end of a forbidden one.
fn is_like(stretch: &Stretch, first: &str, last: &str) -> bool {
    stretch.first == first || stretch.last == last
}
