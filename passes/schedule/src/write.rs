//! Schedules from plans, and plans from schedules.

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use remat_plan::{OpId, Plan, Problem, StorageId, StorageRole};
use thiserror::Error;

use crate::format::{Expected, FREE, MAGIC, MOST, PAGE_IN, PAGE_OUT, RUN, VERSION, checksum};
use crate::read::{Schedule, Step};

/// What a replay found of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Most bytes in memory at once.
    pub peak: u64,
    /// Most bytes in the second memory at once.
    pub second_peak: u64,
}

/// Why there is no schedule of a plan, or no plan of a schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WriteError {
    /// The plan names an op or a storage that is not there, or a storage that belongs to the caller or the session.
    #[error("step {step} names {what} {id}, which is not one of the {count} that a schedule can name")]
    Unknown {
        /// Position of the step, from 0.
        step: usize,
        /// `op` or `storage`.
        what: &'static str,
        /// The id.
        id: usize,
        /// How many there are.
        count: usize,
    },
    /// More than the format holds.
    #[error("a schedule holds up to {MOST} {what}, and there are {count}")]
    TooMany {
        /// `ops`, `storages` or `steps`.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
    /// The schedule is that of another model.
    #[error("the schedule is for {schedule} {what}, and `{model}` has {count}")]
    OtherModel {
        /// `ops` or `storages`.
        what: &'static str,
        /// In the schedule.
        schedule: u32,
        /// In the model.
        count: usize,
        /// Name of the model.
        model: String,
    },
}

/// Which numbers storages have in schedules: those that ops make, in the order of the problem. Ops have the numbers of the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbering {
    storages: Vec<StorageId>,
    numbers: Vec<Option<u32>>,
}

impl Numbering {
    /// The numbers of a problem's storages.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let storages = problem.storages.iter_enumerated();
        let made = storages.filter(|(_, storage)| storage.role != StorageRole::External);
        let storages: Vec<StorageId> = made.map(|(id, _)| id).collect();
        let mut numbers = std::vec![None; problem.storages.len()];
        for (number, storage) in (0..).zip(&storages) {
            numbers[storage.index()] = Some(number);
        }
        Self { storages, numbers }
    }

    /// The storages, by number.
    #[must_use]
    pub fn storages(&self) -> &[StorageId] {
        &self.storages
    }

    /// The number of a storage that ops make.
    #[must_use]
    pub fn number(&self, storage: StorageId) -> Option<u32> {
        self.numbers.get(storage.index()).copied().flatten()
    }
}

/// The schedule of a plan that the checker accepts, with what it found of it.
///
/// # Errors
/// [`WriteError`] if the plan is not one for the problem, or exceeds the format.
pub fn encode(problem: &Problem, plan: &Plan, figures: Figures) -> Result<Vec<u8>, WriteError> {
    let numbering = Numbering::of(problem);
    let counts = [
        ("ops", problem.ops.len()),
        ("storages", numbering.storages.len()),
        ("steps", plan.steps.len()),
    ];
    let mut bytes = MAGIC.to_vec();
    bytes.push(VERSION);
    for (what, count) in counts {
        if count as u64 > MOST {
            return Err(WriteError::TooMany { what, count });
        }
        push(&mut bytes, count as u64);
    }
    push(&mut bytes, figures.peak);
    push(&mut bytes, figures.second_peak);
    push_sizes(&mut bytes, problem, &numbering);
    let mut expected = Expected::default();
    for (position, &step) in plan.steps.iter().enumerate() {
        let (kind, id) = code(problem, &numbering, position, step)?;
        let difference = i64::from(id) - expected.of(kind);
        expected.see(kind, id);
        let zigzag = difference.unsigned_abs() * 2 - u64::from(difference < 0);
        push(&mut bytes, zigzag << 2 | kind as u64);
    }
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    Ok(bytes)
}

/// The plan that a schedule spells out.
///
/// # Errors
/// [`WriteError::OtherModel`] if the numbers of ops or storages differ from the problem's.
pub fn plan_of(problem: &Problem, schedule: &Schedule<'_>) -> Result<Plan, WriteError> {
    let numbering = Numbering::of(problem);
    let counts = [
        ("ops", schedule.ops(), problem.ops.len()),
        ("storages", schedule.storages(), numbering.storages.len()),
    ];
    for (what, schedule, count) in counts {
        if schedule as usize != count {
            let model = problem.name.clone();
            return Err(WriteError::OtherModel {
                what,
                schedule,
                count,
                model,
            });
        }
    }
    let mut ran = std::vec![false; problem.ops.len()];
    let storage = |number: u32| numbering.storages[number as usize];
    let step = |step| match step {
        Step::Run(op) if std::mem::replace(&mut ran[op as usize], true) => {
            remat_plan::Step::Recompute(OpId::new(op as usize))
        }
        Step::Run(op) => remat_plan::Step::Compute(OpId::new(op as usize)),
        Step::Free(number) => remat_plan::Step::Free(storage(number)),
        Step::PageOut(number) => remat_plan::Step::PageOut(storage(number)),
        Step::PageIn(number) => remat_plan::Step::PageIn(storage(number)),
    };
    let steps = schedule.steps().map(step).collect();
    Ok(Plan { steps })
}

/// Distinct sizes, ascending, then for each storage which of them it has.
fn push_sizes(bytes: &mut Vec<u8>, problem: &Problem, numbering: &Numbering) {
    let size = |&storage: &StorageId| problem.storages[storage].bytes;
    let mut distinct: BTreeMap<u64, u64> = numbering.storages.iter().map(|storage| (size(storage), 0)).collect();
    push(bytes, distinct.len() as u64);
    for (index, (&size, place)) in (0..).zip(&mut distinct) {
        push(bytes, size);
        *place = index;
    }
    for storage in &numbering.storages {
        push(bytes, distinct[&size(storage)]);
    }
}

/// Kind and number of a step.
fn code(
    problem: &Problem,
    numbering: &Numbering,
    position: usize,
    step: remat_plan::Step,
) -> Result<(usize, u32), WriteError> {
    let unknown = |what, id, count| WriteError::Unknown {
        step: position,
        what,
        id,
        count,
    };
    let storage = |kind: usize, storage: StorageId| {
        let number = numbering.number(storage);
        let unknown = || unknown("storage", storage.index(), numbering.storages.len());
        Ok((kind, number.ok_or_else(unknown)?))
    };
    match step {
        remat_plan::Step::Compute(op) | remat_plan::Step::Recompute(op) => {
            let count = problem.ops.len();
            let number = u32::try_from(op.index()).ok().filter(|_| op.index() < count);
            Ok((RUN, number.ok_or_else(|| unknown("op", op.index(), count))?))
        }
        remat_plan::Step::Free(id) => storage(FREE, id),
        remat_plan::Step::PageOut(id) => storage(PAGE_OUT, id),
        remat_plan::Step::PageIn(id) => storage(PAGE_IN, id),
    }
}

/// Seven bits a byte, lowest first.
fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
