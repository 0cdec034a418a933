//! Planning: a plan for the model of a strategy whose file keeps the budget.

use remat::{ErrorKind, SolveError};
use remat_plan::StopReason;

use super::{Machine, State};
use crate::attempt::Attempt;
use crate::error::Rejection;
use crate::round::{Round, without_search};
use crate::{DeployError, Strategy};

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    /// The next state of an attempt that cannot go on: the best file that was measured stays. Where a budget is refused, the next strategy may
    /// keep it; every other error is that of the deployment.
    pub(super) fn settle(&mut self, mut attempt: Attempt, error: DeployError) -> Result<State<'c, 'a>, DeployError> {
        if attempt.best.is_none()
            && let Some((attempt, planned, check)) = self.in_tiles.take()
        {
            return Ok(State::Done(attempt, planned, Some(check)));
        }
        let is_refused = matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit)
            && matches!(error, DeployError::Pipeline(_))
            && self.request.plan.is_none();
        let is_untraced = attempt.portable.is_some() && !matches!(error, DeployError::Pipeline(_));
        match attempt.best.take() {
            Some((planned, check)) => Ok(self.best_so_far(attempt, planned, check)),
            None if self.laid_out.is_some() => Ok(State::Reject(attempt, Rejection::Refused(Box::new(error)))),
            None if is_refused && !self.clock.is_cancelled() => {
                Ok(State::Reject(attempt, Rejection::Refused(Box::new(error))))
            }
            None if is_untraced && !self.clock.is_cancelled() => {
                Ok(State::Reject(attempt, Rejection::NotFused(Box::new(error))))
            }
            None => Err(error),
        }
    }

    pub(super) fn plan(&mut self, mut attempt: Attempt) -> Result<State<'c, 'a>, DeployError> {
        let effort = attempt.effort(self.request, self.clock, self.baseline.as_ref());
        let task = self.task(&attempt);
        let begun = match without_search(&task) {
            Ok(Some(solution)) => task.file(solution, &effort).map(Err),
            Ok(None) => Round::begin(&task, effort, attempt.margin).map(Ok),
            Err(error) => Err(error),
        };
        match begun {
            Ok(Ok(round)) => Ok(State::Search(attempt, round)),
            Ok(Err(planned)) => Ok(State::Verify(attempt, planned)),
            Err(error) => self.settle(attempt, error),
        }
    }

    pub(super) fn search(
        &mut self,
        mut attempt: Attempt,
        mut round: Round<'c, 'a>,
    ) -> Result<State<'c, 'a>, DeployError> {
        let start = attempt.best.as_ref().map(|(planned, _)| &planned.solution.plan);
        match round.search(&self.task(&attempt), start) {
            Ok(None) => Ok(State::Search(attempt, round)),
            Ok(Some(planned)) => Ok(State::Verify(attempt, planned)),
            // A short round found nothing within the budget: the one that follows has more time.
            Err(error) if is_out_of_time(&error) && attempt.may_search_longer(self.clock) => Ok(State::Plan(attempt)),
            // The budget leaves no room for the calibration margin, or the time is over.
            Err(error) => self.settle(attempt, error),
        }
    }
}

/// Whether a search ended because its time was over.
fn is_out_of_time(error: &DeployError) -> bool {
    let DeployError::Pipeline(remat::Error::Solve(error)) = error else {
        return false;
    };
    let cause = match error {
        SolveError::Refused(refusal) => &refusal.cause,
        other => other,
    };
    matches!(
        cause,
        SolveError::NoPlan {
            stop: StopReason::TimeLimit,
            ..
        }
    )
}
