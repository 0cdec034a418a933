//! The answer, tried by other means: what plans promise may not be what can be had.

use remat_solve::SolveControl;

use super::interval::between;
use super::{BatchTrial, MaxBatch};

impl MaxBatch {
    /// Makes the largest size the answer that `attempt` finds to fit, of the one that was found and those below it, down to the one that fits as it
    /// is; as close as the search for it. `attempt` gives `None` where it finds out neither. Whether the answer was found to fit so.
    ///
    /// When the deadline of `control` is over, or after it was cancelled, nothing is tried any more. As long as no size was refuted, the answer
    /// stays; then it is the largest one that fits as far as is known.
    ///
    /// # Errors
    /// The first error of `attempt`.
    pub fn confirm<E>(
        &mut self,
        control: &SolveControl<'_>,
        mut attempt: impl FnMut(u64) -> Result<Option<BatchTrial>, E>,
    ) -> Result<bool, E> {
        let low = self.without.unwrap_or(0);
        let Some(with) = self.with.filter(|&with| with > low) else {
            return Ok(false);
        };
        let mut fits = |size: u64| {
            if control.is_cancelled() {
                return Ok(None);
            }
            if control.is_late() {
                self.is_out_of_time = true;
                return Ok(None);
            }
            let Some(trial) = attempt(size)? else { return Ok(None) };
            let fits = trial.finding.fits();
            self.trials.retain(|other| other.size != size);
            self.trials.push(trial);
            self.trials.sort_by_key(|trial| trial.size);
            Ok(Some(fits))
        };
        let first = fits(with)?;
        if first != Some(false) {
            return Ok(first.is_some());
        }
        let best = between(low, with, fits)?;
        self.with = (best > 0).then_some(best);
        (self.plan, self.form) = (None, None);
        Ok(best > low)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;
    use crate::{BatchFinding, ErrorKind};

    fn found(without: Option<u64>, with: Option<u64>) -> MaxBatch {
        MaxBatch {
            budget: 100,
            without,
            with,
            plan: None,
            form: None,
            trials: Vec::new(),
            is_out_of_time: false,
        }
    }

    fn trial(size: u64, fits: bool) -> BatchTrial {
        let finding = if fits {
            BatchFinding::Plan { peak: 1, duration: 1 }
        } else {
            let reason = "it takes more".to_owned();
            BatchFinding::NotFound { reason }
        };
        BatchTrial {
            size,
            baseline: None,
            baseline_duration: 1,
            finding,
            tiling: None,
            bodies: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }

    /// Tries sizes of which those up to `most` fit, as long as `tries` are left.
    fn confirmed(found: &mut MaxBatch, most: u64, mut tries: usize) -> bool {
        let attempt = |size: u64| {
            let may_try = tries > 0;
            tries = tries.saturating_sub(1);
            Ok::<_, Infallible>(may_try.then(|| trial(size, size <= most)))
        };
        let Ok(is_confirmed) = found.confirm(&SolveControl::new(), attempt);
        is_confirmed
    }

    #[test]
    fn the_answer_is_the_largest_size_that_fits_when_it_is_tried() {
        for most in 4..=40 {
            let mut found = found(Some(4), Some(40));
            assert_eq!(confirmed(&mut found, most, usize::MAX), most > 4, "{most}");
            assert_eq!(found.with, Some(most));
        }
    }

    #[test]
    fn the_answer_stays_where_no_size_was_refuted() {
        let mut unknown = found(Some(4), Some(40));
        assert!(!confirmed(&mut unknown, 30, 0));
        assert_eq!(unknown.with, Some(40));
        let mut late = found(None, Some(40));
        let over = SolveControl::new().time_limit(Duration::ZERO);
        let is_confirmed = late.confirm(&over, |size| Ok::<_, Infallible>(Some(trial(size, false))));
        assert_eq!(
            (is_confirmed, late.with, late.is_out_of_time),
            (Ok(false), Some(40), true)
        );
    }

    #[test]
    fn where_all_that_was_tried_is_refuted_nothing_is_promised() {
        let mut none = found(None, Some(40));
        assert!(!confirmed(&mut none, 0, 1));
        assert_eq!(none.with, None);
        assert_eq!(none.require_size().unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn no_answer_is_an_error_even_where_no_size_was_tried() {
        let none = found(None, None);
        assert_eq!(none.require_size().unwrap_err().kind(), ErrorKind::Limit);
        assert!(found(Some(1), Some(1)).require_size().is_ok());
    }
}
