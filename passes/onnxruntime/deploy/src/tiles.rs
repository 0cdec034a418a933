//! The fused model with fused chains tile by tile, as a strategy that comes before all others.

use std::collections::VecDeque;

use remat::{FissionRequest, Model, TileChoice, TiledModel, tile_to_measure};
use remat_plan::{Again, FusedChain, Structure, Tiling};
use remat_solve::Activity;

use crate::DeployError;
use crate::candidate::Opened;
use crate::clock::Share;
use crate::context::Context;
use crate::error::Rejection;
use crate::request::DeployRequest;
use crate::strategy::{is_for_two_passes, runtime_of};

/// So many searches follow each other where tiles are weighed: for fused chains, and for plans with the best of them.
const SEARCHES: u32 = 3;

/// Share of the time for tiles in which it is estimated what plans take outside of blocks of channels.
const OTHER_KERNELS: f64 = 0.2;

/// Estimated time may be above the limit by this share of it, as a divisor, where times are measured: estimates are rough.
const SLACK: u64 = 2;

/// Bytes that a loaded session has for each op that tiles add: its node, its kernel, and about half an order anchor (measured on tilings of
/// EfficientNetV2-S with 126 and with 2,500 ops more: 9,900 and 10,000).
const OP_BYTES: u64 = 10_000;

/// Share of a measured peak, in thousandths, that tiles must be estimated to take at most to be measured beside it.
const LOWER_PERMILLE: u64 = 970;

/// The models with fused chains tile by tile that are still to be tried, the most promising first.
#[derive(Default)]
pub(crate) struct Tilings {
    next: VecDeque<TiledModel>,
    /// Fused chains whose tiles have other bits.
    forbidden: Vec<FusedChain>,
    /// Ops that have other bits when they run again.
    forbidden_again: Vec<Again>,
}

impl Tilings {
    /// The model with the fused chains tile by tile that the plan names, or else with those that pay; where files are measured, also some that are
    /// estimated to take somewhat longer than is asked for. `without_whole`: files of whole ops miss the budget.
    pub(crate) fn of(context: &Context<'_, '_>, model: &Model, without_whole: bool) -> Result<Self, DeployError> {
        let (request, clock) = (context.request, context.clock);
        let given = request.plan.and_then(|plan| plan.setup.as_ref()?.tiling.as_ref());
        let next = match (given, request.fission) {
            (Some(tiling), _) => VecDeque::from([TiledModel {
                model: model.tiled(tiling, request.load)?,
                peak: 0,
                op_bytes: 0,
                max_overhead: request.solve.max_overhead,
            }]),
            (None, None) => VecDeque::new(),
            (None, Some(fission)) => {
                clock.begins(Activity::Plan, "tiles");
                clock.keep_half_for_whole_ops(!without_whole && may_be_whole(context, model));
                let most = clock.most_for(model.problem().ops.len()).map(|most| most * SEARCHES);
                let left = clock
                    .left_for_tiles()
                    .map(|left| most.map_or(left, |most| left.min(most)));
                let control = clock.search(left, Share::Tiles);
                let is_timed = context.measures.is_some() && clock.is_timed();
                let slack = request.solve.most_overhead().filter(|_| is_timed).unwrap_or(0) / SLACK;
                let choice = TileChoice { slack, without_whole };
                let fission = FissionRequest {
                    exactness: match request.lays_out() {
                        true => fission.exactness.in_blocks(),
                        false => fission.exactness,
                    },
                    two_passes: runtime_of(model).is_some_and(is_for_two_passes),
                    // A budget is for buffers alone.
                    op_bytes: if request.is_bounded() { 0 } else { OP_BYTES },
                    ..fission.clone()
                };
                tile_to_measure(model, request.load, request.solve, &fission, choice, &control)?.into()
            }
        };
        Ok(Self {
            next,
            ..Self::default()
        })
    }

    /// The model without tiles, for kernels that round otherwise than those of blocks of channels.
    ///
    /// # Errors
    /// Those of [`Model::tiled`].
    pub(crate) fn other_kernels(context: &Context<'_, '_>, model: &Model) -> Result<Self, DeployError> {
        let (request, clock) = (context.request, context.clock);
        let DeployRequest { load, solve, .. } = *request;
        clock.begins(Activity::Plan, "other kernels");
        let control = clock.search(clock.left_for_tiles(), Share::Tiles);
        let planned = remat::solve(model, solve, &control.share_of_time(OTHER_KERNELS));
        let tiling = Tiling {
            close: true,
            ..Tiling::default()
        };
        let next = TiledModel {
            model: model.tiled(&tiling, load)?,
            peak: planned.map_or_else(|_| need(model), |planned| planned.replay.peak),
            op_bytes: 0,
            max_overhead: solve.max_overhead,
        };
        Ok(Self {
            next: VecDeque::from([next]),
            ..Self::default()
        })
    }

    /// The next one without anything that is forbidden, and how many follow it; below `peak` by estimate, with what its graph takes, where that was
    /// measured of another one.
    pub(crate) fn pop(&mut self, peak: Option<u64>) -> Option<(TiledModel, usize)> {
        let (forbidden, forbidden_again) = (&self.forbidden, &self.forbidden_again);
        let is_free = |chain: &FusedChain| !forbidden.iter().any(|other| is_like(chain, other));
        let runs_free = |again: &Again| !forbidden_again.contains(again);
        let is_lower =
            |tiled: &TiledModel| peak.is_none_or(|peak| tiled.peak + tiled.op_bytes < peak / 1_000 * LOWER_PERMILLE);
        self.next.retain(|tiled| {
            let tiling = tiled.model.tiling();
            let has_bits = tiling
                .is_none_or(|tiling| tiling.fused_chains.iter().all(is_free) && tiling.again.iter().all(runs_free));
            has_bits && is_lower(tiled)
        });
        Some((self.next.pop_front()?, self.next.len()))
    }

    /// After the file of `rejected` was: where its bits differ, it is tried next as one that rounds otherwise, if that is permitted. Else ops that run again
    /// and fused chains that `has_bits` denies, each looked at by itself, are forbidden, and what is left of its tiling is tried next.
    pub(crate) fn rejects(
        &mut self,
        rejected: &Opened,
        whole: &Model,
        context: &Context<'_, '_>,
        reason: &Rejection,
        mut has_bits: impl FnMut(&Model) -> bool,
    ) {
        let Some(tiling) = rejected.model.tiling() else {
            return;
        };
        let request = context.request;
        if request.plan.is_some() || !reason.is_about_bits() {
            return;
        }
        let follow = |model: Model| {
            // What is left may take more, by an op that runs whole.
            let peak = rejected.estimated_peak.max(need(&model));
            let place = self.next.partition_point(|other| other.peak < peak);
            let (op_bytes, max_overhead) = (rejected.op_bytes, rejected.solve.max_overhead);
            self.next.insert(
                place,
                TiledModel {
                    model,
                    peak,
                    op_bytes,
                    max_overhead,
                },
            );
        };
        if request.permits_other_bits() {
            // What was to keep every bit is one more that rounds otherwise.
            let close = Tiling {
                close: true,
                ..tiling.clone()
            };
            whole.tiled(&close, request.load).into_iter().for_each(follow);
            return;
        }
        let tiled = |again: &[Again], fused_chains: Vec<FusedChain>| {
            let tiling = Tiling {
                again: again.to_vec(),
                fused_chains,
                ..tiling.clone()
            };
            whole.tiled(&tiling, request.load).ok()
        };
        let mut again = tiling.again.clone();
        if !again.is_empty() && !tiled(&again, Vec::new()).is_some_and(|model| has_bits(&model)) {
            self.forbidden_again.append(&mut again);
        }
        let is_without_clones = again.len() < tiling.again.len();
        let (good, bad): (Vec<FusedChain>, Vec<FusedChain>) = tiling
            .fused_chains
            .iter()
            .cloned()
            .partition(|chain| tiled(&again, vec![chain.clone()]).is_some_and(|model| has_bits(&model)));
        tracing::info!(
            good = good.len(),
            bad = bad.len(),
            is_without_clones,
            "fused chains were looked at one by one"
        );
        let has_less = is_without_clones || !bad.is_empty();
        self.forbidden.extend(bad);
        if has_less && !good.is_empty() {
            tiled(&again, good).into_iter().for_each(follow);
        }
    }
}

/// Whether plans of whole ops may keep the budget, if one is asked for: no op needs more by itself.
fn may_be_whole(context: &Context<'_, '_>, model: &Model) -> bool {
    context.budget().is_some_and(|budget| need(model) <= budget)
}

/// The most bytes that an op needs by itself.
fn need(model: &Model) -> u64 {
    let problem = model.problem();
    problem.bottleneck(&Structure::of(problem)).map_or(0, |most| most.bytes)
}

/// Whether a fused chain has an end of another one, and is cut along the same axis.
fn is_like(chain: &FusedChain, other: &FusedChain) -> bool {
    chain.axis == other.axis && (chain.first == other.first || chain.last == other.last)
}

#[cfg(test)]
#[path = "tiles_tests.rs"]
mod tests;
