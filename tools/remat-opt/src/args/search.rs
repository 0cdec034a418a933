//! What a search runs with.

use std::path::PathBuf;

use clap::Args;
use remat::plan::parse_bytes;
use remat::solver::{MAX_THREADS, SolveControl};

use super::SEARCH;
use crate::library::surroundings;

/// What a search runs with, besides its limits in time and steps.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Threads to search with [default: 2, or 1 where there is one core].
    #[arg(long, value_name = "N", value_parser = parse_threads, help_heading = SEARCH, hide_short_help = true)]
    threads: Option<usize>,
    /// Memory limit of the process, such as `4GiB`; a search that reaches it stops with the best plan so far.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = SEARCH, hide_short_help = true)]
    memory_limit: Option<u64>,
    /// Seed of the random choices.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SEARCH, hide_short_help = true)]
    seed: u64,
    /// Say on stderr where the time of the local search went, round by round.
    #[arg(long, help_heading = SEARCH, hide_short_help = true)]
    search_profile: bool,
    /// Shared library of OR-Tools, for solvers that prove, or `none` to do without it [default: `REMAT_ORTOOLS_LIBRARY`, the wheel `ortools` in
    /// the checkout the program runs from, `VIRTUAL_ENV`, `CONDA_PREFIX` or the python on `PATH`, the system's].
    #[arg(long, value_name = "PATH", help_heading = SEARCH, hide_short_help = true)]
    ortools_library: Option<PathBuf>,
}

impl SearchArgs {
    /// Says where OR-Tools' library may lie. One that is named is loaded; all others when a solver first needs them.
    ///
    /// # Errors
    /// If the library that is named cannot be used.
    pub(crate) fn find_library(&self) -> anyhow::Result<()> {
        let surroundings = surroundings(self.ortools_library.as_ref(), &["REMAT_ORTOOLS_LIBRARY"]);
        remat::ortools::look_in(&surroundings);
        if surroundings.named.is_some() && !surroundings.is_none() {
            remat::ortools::loaded()?;
        }
        Ok(())
    }

    /// What the command line says of it, for another command.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(threads) = self.threads {
            add("--threads", threads.to_string());
        }
        if let Some(bytes) = self.memory_limit {
            add("--memory-limit", bytes.to_string());
        }
        if self.seed != 0 {
            add("--seed", self.seed.to_string());
        }
        words
    }

    /// A control with these options, which Ctrl-C cancels; limits on time and steps are the command's own.
    pub(crate) fn control(&self) -> SolveControl<'static> {
        let mut control = SolveControl::new()
            .threads(self.threads.unwrap_or_else(default_threads))
            .seed(self.seed)
            .cancel(crate::interrupt::flag());
        control.memory_limit = self.memory_limit;
        control.profile = self.search_profile.then(|| &crate::context::current().profile);
        control
    }
}

/// Two threads, or one where there is one core.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(2))
}

/// A number of threads that is not above what any search makes use of.
pub(super) fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok();
    threads
        .filter(|threads| (1..=MAX_THREADS).contains(threads))
        .ok_or_else(|| format!("from 1 to {MAX_THREADS} threads are possible"))
}
