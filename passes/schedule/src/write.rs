//! Schedules from plans, and plans from schedules.

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use remat_plan::{BlockPlacement, OpId, PlacedInterval, Plan, Problem, Resident, StorageId, StorageRole};
use thiserror::Error;

use crate::format::{
    DUPLICATE, Expected, FREE, MAGIC, MOST, PAGE_IN, PAGE_OUT, PLACE, RUN, VERSION, VERSION_PLACED, WORKSPACE,
    checksum, kind_bits,
};
use crate::read::{Schedule, Step};

/// What a replay found of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlanPeaks {
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
    /// An offset that is not a multiple of the alignment.
    #[error("step {step} gives the offset {offset}, which is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// Position of the step, from 0.
        step: usize,
        /// The offset.
        offset: u64,
        /// The alignment of the block.
        alignment: u64,
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

/// The schedule of a plan that the checker accepts, with what it found of it and, where there is a placement that it accepts, its offsets.
///
/// # Errors
/// [`WriteError`] if the plan is not one for the problem, or exceeds the format; [`WriteError::Misaligned`] for offsets that are no multiples
/// of the alignment.
pub fn encode(
    problem: &Problem,
    plan: &Plan,
    figures: PlanPeaks,
    placement: Option<&BlockPlacement>,
) -> Result<Vec<u8>, WriteError> {
    let version = placement.map_or(VERSION, |_| VERSION_PLACED);
    Writer::new(problem, version).write(plan, figures, placement)
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
            Some(remat_plan::Step::Recompute(OpId::new(op as usize)))
        }
        Step::Run(op) => Some(remat_plan::Step::Compute(OpId::new(op as usize))),
        Step::Free(number) => Some(remat_plan::Step::Free(storage(number))),
        Step::PageOut(number) => Some(remat_plan::Step::PageOut(storage(number))),
        Step::PageIn(number) => Some(remat_plan::Step::PageIn(storage(number))),
        Step::Place { .. } | Step::Duplicate { .. } | Step::Workspace { .. } => None,
    };
    let steps = schedule.steps().filter_map(step).collect();
    Ok(Plan { steps })
}

/// The placement that a schedule of the problem spells out, whose plan is `plan`; `None` where it gives no offsets. A workspace that no run
/// follows is left out.
#[must_use]
pub fn placement_of(problem: &Problem, plan: &Plan, schedule: &Schedule<'_>) -> Option<BlockPlacement> {
    let block = schedule.block()?;
    let numbering = Numbering::of(problem);
    let mut intervals = Vec::new();
    let mut position = 0;
    for step in schedule.steps() {
        let (what, offset) = match step {
            Step::Place { storage, offset } | Step::Duplicate { storage, offset } => {
                (Resident::Storage(numbering.storages[storage as usize]), offset)
            }
            Step::Workspace { offset } => match plan.steps.get(position) {
                Some(&(remat_plan::Step::Compute(op) | remat_plan::Step::Recompute(op))) => {
                    (Resident::Workspace(op), offset)
                }
                _ => continue,
            },
            _ => {
                position += 1;
                continue;
            }
        };
        intervals.push(PlacedInterval {
            step: position,
            what,
            offset,
        });
    }
    intervals.sort_unstable();
    Some(BlockPlacement {
        block: remat_plan::Block {
            bytes: block.bytes,
            alignment: block.alignment,
            outputs_bytes: (block.outputs_bytes > 0).then_some(block.outputs_bytes),
            certificate: None,
        },
        intervals,
    })
}

/// A schedule that is being written.
struct Writer<'a> {
    problem: &'a Problem,
    numbering: Numbering,
    version: u8,
    expected: Expected,
    /// How many steps are written, and their bytes.
    steps: u64,
    body: Vec<u8>,
    /// Which storages are in memory.
    resident: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn new(problem: &'a Problem, version: u8) -> Self {
        Self {
            problem,
            numbering: Numbering::of(problem),
            version,
            expected: Expected::default(),
            steps: 0,
            body: Vec::new(),
            resident: std::vec![false; problem.storages.len()],
        }
    }

    fn write(
        mut self,
        plan: &Plan,
        figures: PlanPeaks,
        placement: Option<&BlockPlacement>,
    ) -> Result<Vec<u8>, WriteError> {
        for (position, &step) in plan.steps.iter().enumerate() {
            if let Some(placement) = placement {
                self.places(position, placement)?;
            }
            let (kind, id) = code(self.problem, &self.numbering, position, step)?;
            self.step(kind, id);
            if let remat_plan::Step::Free(storage) | remat_plan::Step::PageOut(storage) = step {
                self.resident[storage.index()] = false;
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.version);
        let counts = [
            ("ops", self.problem.ops.len() as u64),
            ("storages", self.numbering.storages.len() as u64),
            ("steps", self.steps),
        ];
        for (what, count) in counts {
            if count > MOST {
                let count = count as usize;
                return Err(WriteError::TooMany { what, count });
            }
            push(&mut bytes, count);
        }
        push(&mut bytes, figures.peak);
        push(&mut bytes, figures.second_peak);
        if let Some(placement) = placement {
            let block = &placement.block;
            push(&mut bytes, block.bytes);
            push(&mut bytes, block.alignment);
            push(&mut bytes, block.outputs_bytes.unwrap_or(0));
        }
        push_sizes(&mut bytes, self.problem, &self.numbering);
        bytes.append(&mut self.body);
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        Ok(bytes)
    }

    /// One step that names an op or a storage.
    fn step(&mut self, kind: usize, id: u32) {
        let difference = i64::from(id) - self.expected.of(kind);
        self.expected.see(kind, id);
        let zigzag = difference.unsigned_abs() * 2 - u64::from(difference < 0);
        self.steps += 1;
        push(&mut self.body, zigzag << kind_bits(self.version) | kind as u64);
    }

    /// Where things lie from the step at `position` on.
    fn places(&mut self, position: usize, placement: &BlockPlacement) -> Result<(), WriteError> {
        let alignment = placement.block.alignment;
        for placed in placement.at(position) {
            let offset = placed.offset;
            if alignment == 0 || !offset.is_multiple_of(alignment) {
                return Err(WriteError::Misaligned {
                    step: position,
                    offset,
                    alignment,
                });
            }
            match placed.what {
                Resident::Storage(storage) => {
                    let number = self.numbering.number(storage).ok_or_else(|| WriteError::Unknown {
                        step: position,
                        what: "storage",
                        id: storage.index(),
                        count: self.numbering.storages.len(),
                    })?;
                    let is_there = std::mem::replace(&mut self.resident[storage.index()], true);
                    self.step(if is_there { DUPLICATE } else { PLACE }, number);
                }
                Resident::Workspace(_) => {
                    self.steps += 1;
                    push(&mut self.body, WORKSPACE as u64);
                }
            }
            push(&mut self.body, offset / alignment);
        }
        Ok(())
    }
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
