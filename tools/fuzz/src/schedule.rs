//! Schedules for devices.

use remat_schedule::{Figures, FormatError, Schedule, Step, encode, plan_of};
use remat_verify::replay;

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
            Step::Free(storage) | Step::PageOut(storage) | Step::PageIn(storage) => (storage, schedule.storages()),
        };
        assert!(number < count, "{step:?} of {count}");
    }
    let problem = sample::problem();
    let Ok(plan) = plan_of(problem, &schedule) else {
        return true;
    };
    drop(replay(problem, &plan));
    let figures = Figures {
        peak: schedule.peak(),
        second_peak: schedule.second_peak(),
    };
    let written = encode(problem, &plan, figures).expect("the plan names what the problem has");
    let again = Schedule::open(&written).expect("what was written is read");
    assert_eq!(plan_of(problem, &again), Ok(plan));
    assert!(
        schedule.steps().eq(again.steps()),
        "a step is another one after writing"
    );
    true
}

/// The CRC-32 of IEEE 802.3, bit by bit: not the code that is tested.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes
        .iter()
        .fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}
