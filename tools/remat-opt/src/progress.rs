//! What a person sees while the search runs: one line on a terminal, nothing elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use remat::plan::Plan;
use remat::solver::{Observer, Progress};

use crate::units;

/// Shows the incumbent, the bound and the gap; on a terminal only.
pub(crate) struct Spinner {
    bar: ProgressBar,
    baseline: u64,
}

impl Spinner {
    /// Starts the line. `baseline` is the duration without rematerialization.
    pub(crate) fn start(quiet: bool, baseline: u64) -> Self {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("the template is constant");
        bar.set_style(style);
        bar.set_message("searching for a plan (Ctrl-C stops with the best so far)");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, baseline }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Spinner {
    fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
        let overhead = |duration: u64| units::percent(duration, self.baseline) - 100.0;
        self.bar.set_message(format!(
            "peak {}, overhead {:+.3} % (bound {:+.3} %, gap {:.3} %), {} steps",
            units::bytes(progress.peak),
            overhead(progress.objective),
            overhead(progress.bound),
            100.0 * progress.gap,
            progress.steps
        ));
    }
}
