//! Schedules for devices.

use remat_plan::{BlockPlacement, Plan};
use remat_schedule::{FormatError, PlanPeaks, Schedule, Step, encode, placement_of, plan_of};
use remat_verify::{check_block, replay};

use crate::sample;

/// Reads a schedule, and the same with the right checksum, which mutation does not hit.
pub(crate) fn body(data: &[u8]) -> bool {
    let content = data.split_last_chunk::<4>().map_or(data, |(content, _)| content);
    let sealed = [content, &checksum(content).to_le_bytes()].concat();
    read(data) | read(&sealed)
}

/// Whether it is a schedule.
fn read(data: &[u8]) -> bool {
    let schedule = match Schedule::open(data) {
        Ok(schedule) => schedule,
        Err(FormatError::Trailing { offset } | FormatError::Number { offset } | FormatError::Range { offset }) => {
            assert!(offset <= data.len(), "an error at byte {offset} of {}", data.len());
            return false;
        }
        Err(_) => return false,
    };
    assert_eq!(schedule.steps().count(), schedule.steps().len());
    assert_eq!(schedule.sizes().count(), schedule.storages() as usize);
    for step in schedule.steps() {
        let (number, count) = match step {
            Step::Run(op) => (op, schedule.ops()),
            Step::Free(storage)
            | Step::PageOut(storage)
            | Step::PageIn(storage)
            | Step::Place { storage, .. }
            | Step::Duplicate { storage, .. } => (storage, schedule.storages()),
            Step::Workspace { .. } => (0, 1),
        };
        assert!(number < count, "{step:?} of {count}");
        if let Step::Place { offset, .. } | Step::Duplicate { offset, .. } | Step::Workspace { offset } = step {
            let block = schedule.block().expect("an offset is one in a block");
            assert!(
                offset <= block.bytes && offset.is_multiple_of(block.alignment),
                "{step:?} in {block:?}"
            );
        }
    }
    let problem = sample::problem();
    let Ok(plan) = plan_of(problem, &schedule) else {
        return true;
    };
    drop(replay(problem, &plan));
    let figures = PlanPeaks {
        peak: schedule.peak(),
        second_peak: schedule.second_peak(),
    };
    let written = encode(problem, &plan, figures, None).expect("the plan names what the problem has");
    let again = Schedule::open(&written).expect("what was written is read");
    assert_eq!(plan_of(problem, &again).as_ref(), Ok(&plan));
    if let Some(placement) = placement_of(problem, &plan, &schedule) {
        places(&plan, figures, placement);
    } else {
        let is_same = schedule.steps().eq(again.steps());
        assert!(is_same, "a step is another one after writing");
    }
    true
}

/// What stands where it does not belong is not written again; the rest is written and read as it is. The checker must not panic.
fn places(plan: &Plan, figures: PlanPeaks, mut placement: BlockPlacement) {
    let problem = sample::problem();
    if let Ok(found) = replay(problem, plan) {
        drop(check_block(problem, plan, &found, &placement));
    }
    placement.intervals.retain(|placed| placed.step < plan.steps.len());
    let written = encode(problem, plan, figures, Some(&placement)).expect("offsets that were read are multiples");
    let again = Schedule::open(&written).expect("what was written is read");
    assert_eq!(plan_of(problem, &again).as_ref(), Ok(plan));
    assert_eq!(placement_of(problem, plan, &again), Some(placement));
}

/// The CRC-32 of IEEE 802.3, bit by bit: not the code that is tested.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes
        .iter()
        .fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}
