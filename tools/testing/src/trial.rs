//! Tests with needs, and running them.

use std::process::ExitCode;

use libtest_mimic::Arguments;

use crate::Need;

/// A test and what it needs.
pub struct Trial {
    name: String,
    needs: &'static [Need],
    test: fn(),
}

impl Trial {
    /// A test that panics if it fails. [`trial!`](crate::trial) gives it the name of its function.
    #[must_use]
    pub fn new(name: &str, needs: &'static [Need], test: fn()) -> Self {
        let name = name.to_owned();
        Self { name, needs, test }
    }

    fn into_mimic(self) -> libtest_mimic::Trial {
        let missing = |need: &Need| Some((*need, need.missing()?));
        let Some((need, why)) = self.needs.iter().find_map(missing) else {
            let test = self.test;
            return libtest_mimic::Trial::test(self.name, move || {
                test();
                Ok(())
            });
        };
        if need.is_required() {
            let failure = format!("{why}, and `{}` requires `{}`", crate::REQUIRED, need.name());
            return libtest_mimic::Trial::test(self.name, move || Err(failure.into()));
        }
        let absent = format!("skipped: {why}");
        libtest_mimic::Trial::test(self.name, move || Err(why.into()))
            .with_kind(absent)
            .with_ignored_flag(true)
    }
}

/// Tests that their modules list, under the names of those.
pub fn within<'a>(modules: impl IntoIterator<Item = (&'a str, Vec<Trial>)>) -> impl Iterator<Item = Trial> {
    modules.into_iter().flat_map(|(module, trials)| {
        trials.into_iter().map(move |trial| Trial {
            name: format!("{module}::{}", trial.name),
            ..trial
        })
    })
}

/// Runs tests as the standard harness does, with its arguments: the `main` of a target with `harness = false`.
pub fn run(trials: impl IntoIterator<Item = Trial>) -> ExitCode {
    let trials = trials.into_iter().map(Trial::into_mimic).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The test of a function by its path, and what it needs: `trial!(module::function, Need::Graphs)`.
#[macro_export]
macro_rules! trial {
    ($($part:ident)::+ $(, $need:expr)* $(,)?) => {
        $crate::Trial::new(&[$(stringify!($part)),+].join("::"), &[$($need),*], $($part)::+)
    };
}
