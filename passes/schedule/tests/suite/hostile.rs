//! Bytes that are no schedule. `tools/fuzz` has the mutants.

use remat_schedule::{FormatError, Schedule, encode};

use super::linear;

/// The usual checksum, written down once more.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes
        .iter()
        .fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}

/// Content with the right checksum.
pub(super) fn sealed(content: &[u8]) -> Vec<u8> {
    [content, &checksum(content).to_le_bytes()].concat()
}

/// A schedule that makes each error, by the name of what is wrong.
pub(super) fn broken() -> Vec<(&'static str, Vec<u8>, FormatError)> {
    let with = |numbers: &[u8]| sealed(&[b"RMTS\x01", numbers].concat());
    // Two ops, one storage of seven bytes; the steps follow.
    let body = |steps: u8, codes: &[u8]| with(&[&[2, 1, steps, 7, 0, 1, 7, 0], codes].concat());
    // The same in a block of 64 bytes, with offsets in eights.
    let head: &[u8] = b"RMTS\x02";
    let placed = |steps: u8, codes: &[u8]| sealed(&[head, &[2, 1, steps, 7, 0, 64, 8, 0, 1, 7, 0], codes].concat());
    let number = |offset| FormatError::Number { offset };
    let range = |offset| FormatError::Range { offset };
    vec![
        ("nothing", Vec::new(), FormatError::Truncated),
        ("other mark", sealed(b"PNG\0\x01"), FormatError::Magic),
        ("no version", b"RMTS".to_vec(), FormatError::Truncated),
        ("later version", sealed(b"RMTS\x03"), FormatError::Version(3)),
        ("no checksum", b"RMTS\x01".to_vec(), FormatError::Truncated),
        ("no content", with(&[]), FormatError::Truncated),
        ("too many ops", with(&[0x80, 0x80, 0x80, 0x80, 1]), number(5)),
        ("long number", with(&[0x82, 0]), number(5)),
        ("number without end", with(&[0xff; 12]), number(5)),
        (
            "more than 64 bits",
            with(&[2, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
            number(8),
        ),
        ("fewer steps than stated", body(2, &[0]), FormatError::Truncated),
        (
            "more steps than stated",
            body(1, &[0, 0]),
            FormatError::Trailing { offset: 14 },
        ),
        ("size that is not there", with(&[2, 1, 0, 7, 0, 1, 7, 1]), range(12)),
        ("op that is not there", body(1, &[4 << 2]), range(13)),
        ("op before the first", body(1, &[1 << 2]), range(13)),
        ("storage that is not there", body(1, &[2 << 2 | 1]), range(13)),
        ("third of two ops", body(3, &[0, 0, 0]), range(15)),
        (
            "no block",
            sealed(b"RMTS\x02\x02\x01\x00\x07\x00"),
            FormatError::Truncated,
        ),
        (
            "alignment of nothing",
            sealed(b"RMTS\x02\x02\x01\x00\x07\x00\x40\x00"),
            range(11),
        ),
        (
            "more outputs than the block holds",
            sealed(b"RMTS\x02\x02\x01\x00\x07\x00\x40\x08\x41"),
            range(12),
        ),
        ("offset behind the block", placed(1, &[4, 9]), range(17)),
        ("place of what is not there", placed(1, &[2 << 3 | 4, 0]), range(16)),
        ("place without an offset", placed(1, &[4]), FormatError::Truncated),
        ("workspace of something", placed(1, &[1 << 3 | 6, 0]), range(16)),
        ("workspace behind the block", placed(1, &[6, 9]), range(17)),
        ("step of no kind", placed(1, &[7]), range(16)),
        ("step of 35 bits", body(1, &[0x80, 0x80, 0x80, 0x80, 0x40]), number(13)),
    ]
}

#[test]
fn each_mistake_is_told() {
    for (what, bytes, error) in broken() {
        assert_eq!(Schedule::open(&bytes).map(|_| ()), Err(error), "{what}");
    }
}

#[test]
fn no_shorter_or_changed_schedule_is_accepted() {
    let (problem, plan, figures) = linear();
    let bytes = encode(&problem, &plan, figures, None).unwrap();
    for length in 0..bytes.len() {
        assert!(Schedule::open(&bytes[..length]).is_err(), "{length}");
    }
    let mut changed = bytes.clone();
    for bit in 0..8 * bytes.len() {
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(Schedule::open(&changed).is_err(), "{bit}");
        changed[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(Schedule::open(&changed).is_ok());
}
