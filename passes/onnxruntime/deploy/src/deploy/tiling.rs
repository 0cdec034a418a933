//! Tiles: others that may be better than those of a file that was measured or rejected.

use super::{Machine, State};
use crate::attempt::{Attempt, Tiles};
use crate::error::Rejection;
use crate::file::Planned;
use crate::measure::{Baseline, Check};
use crate::open::lay_out;
use crate::{DeployError, Strategy};

/// Other tiles are measured, beside what is known of the model as it came, if there is time to measure the model so often.
const LEFT_FOR_OTHER_TILES: u32 = 5;
/// The same where no file was found yet.
const LEFT_FOR_FIRST_TILES: u32 = 2;

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    /// A file that was measured is the result, unless others in tiles may be better and there is time to measure them: then the best of all is.
    pub(super) fn weigh(&mut self, attempt: Attempt, planned: Planned, check: Check) -> State<'c, 'a> {
        if !attempt.strategy.recipe().tiles || self.request.is_bounded() {
            return State::Done(attempt, planned, Some(check));
        }
        let most = self.request.solve.most_overhead();
        if attempt.is_slow(most) && !most.is_some_and(|most| check.is_within(most)) {
            return self.reject(attempt, Rejection::TooSlow);
        }
        let rank = |(_, planned, check): &(Attempt, Planned, Check)| {
            let peak = check.after.exact.unwrap_or(planned.prediction.peak_bytes);
            let is_slow = most.is_some_and(|most| check.time_ratio.is_some() && !check.is_within(most));
            (is_slow, peak)
        };
        let found = (attempt, planned, check);
        let best = match self.in_tiles.take() {
            Some(known) if rank(&known) <= rank(&found) => known,
            _ => found,
        };
        let (is_slow, peak) = rank(&best);
        let next = self.has_time_for_other_tiles(true).then(|| {
            let next = self.tilings.pop((!is_slow).then_some(peak))?;
            self.attempt_in_tiles(&best.0, next)
        });
        if let Some(next) = next.flatten() {
            tracing::info!(peak, is_slow, "other tiles may be better");
            self.in_tiles = Some(best);
            return State::Plan(next);
        }
        let (attempt, planned, check) = best;
        State::Done(attempt, planned, Some(check))
    }

    /// The attempt with other tiles; `None` if the runtime does not lay them out.
    fn attempt_in_tiles(&mut self, attempt: &Attempt, tiles: Tiles) -> Option<Attempt> {
        let tiles = self.in_blocks(tiles);
        let tiles = tiles
            .inspect_err(|error| tracing::warn!(%error, "tiles are not laid out"))
            .ok()?;
        self.lays_out |= tiles.portable.is_some();
        attempt.with_other_tiles(tiles)
    }

    /// Tiles as the runtime lays them out, where that matters.
    pub(super) fn in_blocks(&self, tiles: Tiles) -> Result<Tiles, DeployError> {
        let is_here = self
            .bench
            .as_ref()
            .filter(|_| self.request.lays_out_tiles(&tiles.model));
        let Some(bench) = is_here else {
            return Ok(tiles);
        };
        let (model, portable) = match lay_out(self.request, bench, tiles.model, self.clock, self.scratch.path())? {
            Ok((model, portable)) => (model, Some(portable)),
            Err(model) => (*model, None),
        };
        Ok(Tiles {
            model,
            portable,
            ..tiles
        })
    }

    /// The attempt with other tiles that follows one whose file exceeds the budget, if there are some and there is time.
    pub(super) fn other_tiles_for_budget(&mut self, attempt: &Attempt) -> Option<Attempt> {
        if !attempt.strategy.recipe().tiles || !self.has_time_for_other_tiles(self.in_tiles.is_some()) {
            return None;
        }
        let next = self.tilings.pop(None)?;
        self.attempt_in_tiles(attempt, next)
    }

    /// `has_file`: whether one was found already, which others may be better than.
    pub(super) fn has_time_for_other_tiles(&self, has_file: bool) -> bool {
        let took = self.baseline.as_ref().map(Baseline::took).unwrap_or_default();
        let times = if has_file {
            LEFT_FOR_OTHER_TILES
        } else {
            LEFT_FOR_FIRST_TILES
        };
        let left = self.clock.left_for_tiles();
        !self.clock.is_cancelled() && left.is_none_or(|left| !left.is_zero() && left >= took * times)
    }

    /// The attempt with other tiles that follows one that was rejected, if there are some and there is time.
    pub(super) fn with_other_tiles(&mut self, attempt: &Attempt, reason: &Rejection) -> Option<Attempt> {
        if !self.has_time_for_other_tiles(self.in_tiles.is_some()) {
            return None;
        }
        let whole = self.opened.as_ref()?;
        let measuring = self.bench.as_ref().zip(self.baseline.as_ref());
        let path = self.scratch.path().join("remat-stretch.onnx");
        let has_bits = |model: &remat::Model| {
            let Some((bench, baseline)) = measuring else {
                return true;
            };
            let written = model.onnx().map(|onnx| onnx.save_proto(onnx.proto(), &path));
            written.is_some_and(|written| written.is_ok()) && baseline.has_bits(bench, &path)
        };
        self.tilings.rejects(attempt, whole, self.request, reason, has_bits);
        let best = self.in_tiles.as_ref();
        let next = self.tilings.pop(best.and_then(|(_, _, check)| check.after.exact))?;
        tracing::info!(%reason, "other tiles may do");
        self.attempt_in_tiles(attempt, next)
    }
}
