//! Opening: the model of the next strategy, and what it means that none is left.

use std::time::{Duration, Instant};

use super::{Machine, State, settled};
use crate::attempt::Attempt;
use crate::clock::LeftOut;
use crate::error::{Rejected, Rejection, least_refusal};
use crate::fission::Tilings;
use crate::open::{lay_out, open};
use crate::padding::Padding;
use crate::{DeployError, Strategy};

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    pub(super) fn open(&mut self) -> Result<State<'c, 'a>, DeployError> {
        let Some(strategy) = self.strategies.next().or_else(|| self.tiles_after_whole()) else {
            return self.exhausted();
        };
        let recipe = strategy.recipe();
        if !self.rejected.is_empty() && recipe.rewrites && !self.clock.has(Duration::ZERO) {
            self.clock.leave_out(LeftOut::Strategies);
            return Ok(State::Open);
        }
        let started = Instant::now();
        let bench = self.bench.as_ref();
        let mut tiles = None;
        let is_same = |opened: &remat::Model| opened.is_fused() == recipe.fuses && self.bodies.may_be_in(opened);
        let opened = match self.opened.take().filter(is_same) {
            Some(model) => Ok(model),
            None => open(self.request, bench, recipe.fuses, self.clock, self.scratch.path()),
        };
        let opened = match (opened, bench.filter(|_| recipe.lays_out)) {
            (Ok(model), Some(bench)) => match lay_out(self.request, bench, model, self.clock, self.scratch.path()) {
                Ok(Ok((model, portable))) => {
                    let graphs = model.graph().zip(portable.model.graph());
                    self.padding = graphs.and_then(|(graph, nodes)| Padding::of(graph, nodes, self.peak.bytes));
                    Ok((model, Some(portable)))
                }
                Ok(Err(model)) => {
                    self.opened = Some(*model);
                    return Ok(State::Open);
                }
                Err(error) => Err(error),
            },
            (opened, _) => opened.map(|model| (model, None)),
        };
        let opened = opened.map(|(model, portable)| {
            let model = model.ordered_for(self.request.order.name());
            (model.with_baseline_peak(self.peak), portable)
        });
        let opened = match opened {
            Ok((model, None)) if recipe.rewrites => {
                let planned = self.bodies.plan(self.request, model, self.clock);
                planned.map(|model| (model, None))
            }
            opened => opened,
        };
        let opened = match opened {
            Ok((model, None)) if recipe.tiles => {
                match Tilings::of(
                    self.request,
                    &model,
                    self.baseline.is_some(),
                    self.tiles_are_last,
                    self.clock,
                ) {
                    Ok(tilings) => {
                        self.tilings = tilings;
                        let Some(next) = self.tilings.pop(None) else {
                            self.opened = Some(model);
                            return Ok(State::Open);
                        };
                        self.had_tiles = true;
                        self.in_blocks(next).map(|next| {
                            tiles = Some(next);
                            (model, None)
                        })
                    }
                    Err(error) => Err(error),
                }
            }
            opened => opened,
        };
        match opened {
            Ok((model, portable)) => {
                let (solve, opening) = (self.request.solve, started.elapsed());
                let mut attempt = match tiles {
                    Some(tiles) => {
                        let whole = self.bodies.without(&model, self.request.order)?;
                        self.lays_out |= tiles.portable.is_some();
                        self.opened = Some(model);
                        Attempt::in_tiles(strategy, tiles, solve, whole, opening)
                    }
                    None if model.bodies().is_empty() => Attempt::new(strategy, model, solve, opening),
                    None => {
                        let whole = self.bodies.without(&model, self.request.order)?;
                        Attempt::new(strategy, model, solve, opening).beside(whole)
                    }
                };
                if portable.is_some() {
                    self.lays_out = true;
                    attempt.portable = portable;
                }
                Ok(State::Plan(attempt))
            }
            Err(error) if recipe.fuses && !self.clock.is_cancelled() => {
                let reason = Rejection::NotFused(Box::new(error));
                self.rejected.push(Rejected { strategy, reason });
                Ok(State::Open)
            }
            Err(error) => Err(error),
        }
    }

    /// Tiles, where plans of whole ops seemed to keep the budget for so little time that none were looked for, and their files do not keep it.
    fn tiles_after_whole(&mut self) -> Option<Strategy> {
        let may_follow = self.closest.is_some()
            && !self.had_tiles
            && !self.tiles_are_last
            && self.request.allows(Strategy::Tiled, self.peak, self.bench.is_some())
            && self.has_time_for_other_tiles(false);
        self.tiles_are_last |= may_follow;
        may_follow.then_some(Strategy::Tiled)
    }

    /// What it means that no strategy is left: the file that is closest to the budget is the result, else why there is none.
    fn exhausted(&mut self) -> Result<State<'c, 'a>, DeployError> {
        if let Some((_, attempt, planned, check)) = self.closest.take() {
            self.rejected.retain(|one| one.strategy != attempt.strategy);
            // What is not written needs no further measurements.
            return Ok(match self.request.force {
                true => settled(attempt, planned, check),
                false => State::Done(attempt, planned, check),
            });
        }
        let mut rejected = std::mem::take(&mut self.rejected);
        if let Some(refusal) = least_refusal(&mut rejected) {
            return Err(refusal);
        }
        Err(if self.clock.left_out().contains(&LeftOut::Strategies) {
            DeployError::NoTime { rejected }
        } else {
            DeployError::AllRejected { rejected }
        })
    }
}
