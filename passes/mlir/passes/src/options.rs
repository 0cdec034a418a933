//! The options of the passes, by the names that they have in pipelines; those of `remat-opt`, where it has them too.

use std::time::Duration;

use remat::fission::Exactness;
use remat::plan::{BudgetSpec, Objective, OrderMode, PagingMode};
use remat::profile::ProfileFile;
use remat::solver::MAX_THREADS;
use remat::{FissionRequest, Goal, LoadOptions, SecondMemory, SolveRequest};
use remat_mlir::BlockSource;
use thiserror::Error;

/// How long a pass searches, where nothing else is said.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// An option that has no meaning.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("option `{name}` of the pass: {why}")]
pub struct OptionError {
    name: String,
    why: String,
}

/// How costs and sizes are found.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// Device, profile, order, limit on computes.
    pub load: LoadOptions,
    /// What dynamic extents count as.
    pub dynamic_extent: Option<u64>,
}

/// What `remat` is to do.
#[derive(Clone, Debug)]
pub struct PassOptions {
    /// How costs and sizes are found.
    pub model: ModelOptions,
    /// Budget and solver.
    pub request: SolveRequest,
    /// What the schedule is to be good at within the budget.
    pub goal: Goal,
    /// Longest time to search.
    pub time_limit: Duration,
    /// Most search steps to take.
    pub step_limit: Option<u64>,
    /// Threads to search with.
    pub threads: usize,
    /// Seed of random choices.
    pub seed: u64,
    /// Which operations may run tile by tile; absent: none.
    pub fission: Option<FissionRequest>,
    /// Whether markers say where tensors are released.
    pub dealloc: bool,
    /// Whether a remark says what was done.
    pub remarks: bool,
}

impl Default for PassOptions {
    fn default() -> Self {
        Self {
            model: ModelOptions::default(),
            request: SolveRequest {
                budget: BudgetSpec::Auto,
                max_overhead: None,
                solver: remat::default_solver().name().to_owned(),
            },
            goal: Goal::default(),
            time_limit: TIME_LIMIT,
            step_limit: None,
            threads: 1,
            seed: 0,
            fission: None,
            dealloc: true,
            remarks: true,
        }
    }
}

/// What `remat-verify` is to hold the schedule against.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// Bytes that the peak may reach; absent: what `remat` noted at the function.
    pub budget: Option<u64>,
    /// What dynamic extents count as.
    pub dynamic_extent: Option<u64>,
}

/// How `remat-place` is to place buffers.
#[derive(Clone, Copy, Debug)]
pub struct PlaceOptions {
    /// Where the block comes from.
    pub source: BlockSource,
    /// Longest time to search.
    pub time_limit: Duration,
    /// Most tries of a buffer at an offset.
    pub step_limit: Option<u64>,
    /// Seed of random choices.
    pub seed: u64,
    /// Whether remarks say what was done, and what was left.
    pub remarks: bool,
}

impl Default for PlaceOptions {
    fn default() -> Self {
        Self {
            source: BlockSource::Allocated,
            time_limit: TIME_LIMIT,
            step_limit: None,
            seed: 0,
            remarks: true,
        }
    }
}

impl PlaceOptions {
    /// Sets the option `name`.
    ///
    /// # Errors
    /// [`OptionError`] if there is none of this name, or the value has no meaning.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name {
            "block" => {
                let sources = [("alloc", BlockSource::Allocated), ("argument", BlockSource::Argument)];
                self.source = one_of(name, value, &sources)?;
            }
            "time-limit" => self.time_limit = duration(name, value)?,
            "step-limit" => self.step_limit = Some(number(name, value)?),
            "seed" => self.seed = number(name, value)?,
            "remarks" => self.remarks = truth(name, value)?,
            _ => return Err(wrong(name, "there is no such option".to_owned())),
        }
        Ok(())
    }
}

impl ModelOptions {
    /// Sets the option `name`.
    ///
    /// # Errors
    /// [`OptionError`] if there is none of this name, or the value has no meaning.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name {
            "device" => self.load.device = Some(value.to_owned()),
            "profile" => {
                let text =
                    std::fs::read_to_string(value).map_err(|error| wrong(name, format!("`{value}`: {error}")))?;
                self.load.profile =
                    Some(ProfileFile::from_json(&text).map_err(|error| wrong(name, error.to_string()))?);
            }
            "dynamic-extent" => self.dynamic_extent = Some(number(name, value)?),
            _ => return Err(wrong(name, "there is no such option".to_owned())),
        }
        Ok(())
    }
}

impl PassOptions {
    /// Sets the option `name`.
    ///
    /// # Errors
    /// [`OptionError`] if there is none of this name, or the value has no meaning.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let because = |why: String| wrong(name, why);
        match name {
            "budget" => {
                let budget: Result<_, remat::plan::QuantityError> = value.parse();
                self.request.budget = budget.map_err(|error| because(error.to_string()))?;
            }
            "max-overhead" => {
                self.request.max_overhead =
                    Some(remat::plan::parse_share(value).map_err(|error| because(error.to_string()))?);
            }
            "solver" => value.clone_into(&mut self.request.solver),
            "time-limit" => self.time_limit = duration(name, value)?,
            "step-limit" => self.step_limit = Some(number(name, value)?),
            "threads" => {
                let threads = usize::try_from(number(name, value)?).ok();
                let possible = threads.filter(|threads| (1..=MAX_THREADS).contains(threads));
                self.threads = possible.ok_or_else(|| because(format!("`{value}` is not from 1 to {MAX_THREADS}")))?;
            }
            "seed" => self.seed = number(name, value)?,
            "order" => {
                let orders = [("free", OrderMode::Free), ("fixed", OrderMode::Fixed)];
                self.model.load.order = Some(one_of(name, value, &orders)?);
            }
            "max-computes" => {
                let most = number(name, value)?;
                let most = u32::try_from(most).ok().filter(|&most| most > 0);
                self.model.load.max_computes =
                    Some(most.ok_or_else(|| because(format!("`{value}` is not a number from 1 to 4294967295")))?);
            }
            "paging" => {
                let modes = [
                    ("off", None),
                    ("sync", Some(PagingMode::Sync)),
                    ("dma", Some(PagingMode::Dma)),
                ];
                let mode = one_of(name, value, &modes)?;
                self.model.load.second_memory = mode.map(|mode| SecondMemory::Used { mode, capacity: None });
            }
            "tier-capacity" => {
                let bytes = bytes(name, value)?;
                let Some(SecondMemory::Used { capacity, .. }) = &mut self.model.load.second_memory else {
                    return Err(because("it says nothing without `paging`".to_owned()));
                };
                *capacity = Some(bytes);
            }
            "objective" => {
                let objectives = [
                    ("time", Objective::Time),
                    ("energy", Objective::Energy),
                    ("peak", Objective::Peak),
                ];
                self.goal.objective = one_of(name, value, &objectives)?;
            }
            "deadline" => {
                let deadline = value.parse();
                self.goal.deadline =
                    Some(deadline.map_err(|error: remat::plan::QuantityError| because(error.to_string()))?);
            }
            "fission" => {
                let close = FissionRequest {
                    exactness: Exactness::Close,
                    ..FissionRequest::EXACT
                };
                let requests = [
                    ("off", None),
                    ("exact", Some(FissionRequest::EXACT)),
                    ("close", Some(close)),
                ];
                self.fission = one_of(name, value, &requests)?;
            }
            "tiles" => {
                let numbers = value
                    .split(',')
                    .map(|number| number.trim().parse().ok().filter(|&number| number >= 2));
                let numbers: Option<Vec<u32>> = numbers.collect();
                let numbers =
                    numbers.ok_or_else(|| because(format!("`{value}` is not a list of numbers from 2 on")))?;
                let fission = self.fission.as_mut();
                fission
                    .ok_or_else(|| because("say `fission=exact` first".to_owned()))?
                    .tiles = numbers;
            }
            "dealloc" => self.dealloc = truth(name, value)?,
            "remarks" => self.remarks = truth(name, value)?,
            _ => self.model.set(name, value)?,
        }
        Ok(())
    }
}

impl VerifyOptions {
    /// Sets the option `name`.
    ///
    /// # Errors
    /// [`OptionError`] if there is none of this name, or the value has no meaning.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name {
            "budget" => self.budget = Some(bytes(name, value)?),
            "dynamic-extent" => self.dynamic_extent = Some(number(name, value)?),
            _ => return Err(wrong(name, "there is no such option".to_owned())),
        }
        Ok(())
    }
}

fn wrong(name: &str, why: String) -> OptionError {
    OptionError {
        name: name.to_owned(),
        why,
    }
}

/// What a word stands for.
fn one_of<T: Clone>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, OptionError> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        wrong(
            name,
            match words.as_slice() {
                [one, other] => format!("`{value}` is neither {one} nor {other}"),
                [first @ .., last] => format!("`{value}` is none of {} and {last}", first.join(", ")),
                [] => format!("`{value}` has no meaning"),
            },
        )
    })
}

fn number(name: &str, value: &str) -> Result<u64, OptionError> {
    value
        .trim()
        .parse()
        .map_err(|_| wrong(name, format!("`{value}` is not a non-negative integer")))
}

fn bytes(name: &str, value: &str) -> Result<u64, OptionError> {
    remat::plan::parse_bytes(value).map_err(|error| wrong(name, error.to_string()))
}

fn duration(name: &str, value: &str) -> Result<Duration, OptionError> {
    remat::plan::parse_duration(value).map_err(|error| wrong(name, error.to_string()))
}

fn truth(name: &str, value: &str) -> Result<bool, OptionError> {
    let value = match value {
        "1" => "true",
        "0" => "false",
        word => word,
    };
    one_of(name, value, &[("true", true), ("false", false)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_values_of_the_command_line() {
        let mut options = PassOptions::default();
        for (name, value) in [
            ("budget", "80%"),
            ("time-limit", "500ms"),
            ("max-overhead", "3%"),
            ("dealloc", "false"),
            ("order", "fixed"),
            ("max-computes", "2"),
            ("paging", "dma"),
            ("tier-capacity", "2MiB"),
            ("objective", "energy"),
            ("deadline", "1.5x"),
        ] {
            options.set(name, value).unwrap();
        }
        assert_eq!(options.request.budget, BudgetSpec::Share(800_000));
        assert_eq!(options.time_limit, Duration::from_millis(500));
        assert_eq!(options.request.max_overhead, Some(30_000));
        assert!(!options.dealloc);
        assert_eq!(options.model.load.order, Some(OrderMode::Fixed));
        assert_eq!(options.model.load.max_computes, Some(2));
        assert_eq!(
            options.model.load.second_memory,
            Some(SecondMemory::Used {
                mode: PagingMode::Dma,
                capacity: Some(2 << 20)
            })
        );
        assert_eq!(options.goal.objective, Objective::Energy);
        assert_eq!(options.goal.deadline, Some(remat::plan::Deadline::Factor(1_500_000)));
    }

    #[test]
    fn values_without_meaning_are_rejected_by_name() {
        for (name, value) in [
            ("budget", "much"),
            ("threads", "-1"),
            ("order", "any"),
            ("dealloc", "maybe"),
            ("fission", "perhaps"),
            ("tiles", "4"),
            ("max-computes", "0"),
            ("speed", "1"),
            ("profile", "/none"),
            ("paging", "on"),
            ("tier-capacity", "2MiB"),
            ("objective", "beauty"),
            ("deadline", "soon"),
        ] {
            let error = PassOptions::default().set(name, value).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("option `{name}` of the pass: ")),
                "{error}"
            );
        }
        assert!(VerifyOptions::default().set("budget", "80%").is_err());
        for (name, value) in [
            ("block", "stack"),
            ("time-limit", "soon"),
            ("seed", "-1"),
            ("budget", "80%"),
        ] {
            assert!(PlaceOptions::default().set(name, value).is_err(), "{name}={value}");
        }
    }
}
