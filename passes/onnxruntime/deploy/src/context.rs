//! What all steps of a deployment share, and none of them changes.

use std::path::Path;
use std::time::Duration;

use remat::BaselinePeak;
use remat_onnxruntime_lower::OrderHint;

use crate::clock::Clock;
use crate::measure::{Bench, Measures};
use crate::relax::Relaxation;
use crate::request::DeployRequest;

/// What is asked for, and what there is to answer it with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c, 'a> {
    pub(crate) request: &'c DeployRequest<'c>,
    pub(crate) clock: &'c Clock<'a>,
    /// The runtime, if one is here.
    pub(crate) bench: Option<&'c Bench<'c, 'a>>,
    /// What measures files beside the original model; absent where nothing is to be measured.
    pub(crate) measures: Option<&'c dyn Measures>,
    /// Where files on the way go.
    pub(crate) scratch: &'c Path,
    /// What the original model takes: what a budget in per cent is a share of.
    pub(crate) peak: BaselinePeak,
    /// What is taken out of files that are rejected.
    pub(crate) relaxations: &'c [Relaxation],
}

impl Context<'_, '_> {
    /// What a process takes that measures the original model, or one made of it.
    pub(crate) fn took(&self) -> Duration {
        self.measures.map(Measures::took).unwrap_or_default()
    }

    /// The budget in bytes, where there is one.
    pub(crate) fn budget(&self) -> Option<u64> {
        let budget = self.request.solve.budget.bytes(self.peak.bytes);
        budget.filter(|_| self.request.plan.is_none())
    }

    /// Whether the caller said that everything is to end, where that means something is missing: measurements.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.clock.is_cancelled() && self.measures.is_some()
    }

    /// Whether a file is rejected that takes more than the original model with the arena off. What takes more is above a lower budget, too: of
    /// such files the closest is told.
    pub(crate) fn must_be_lower(&self) -> bool {
        let is_held_against_less = self.budget().is_some_and(|budget| budget < self.peak.bytes);
        self.request.order == OrderHint::Any && !self.request.force && !is_held_against_less
    }
}
