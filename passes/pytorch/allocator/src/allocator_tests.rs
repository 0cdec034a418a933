use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MB: u64 = 1 << 20;
const DEVICE: Device = Device {
    total_bytes: 4096 * MB,
    free_bytes: 4000 * MB,
};

fn allocator(settings: &str) -> Allocator {
    Allocator::with_text(settings, DEVICE).expect("settings that are known")
}

#[test]
fn small_blocks_share_a_segment_and_large_ones_are_cut_from_twenty_mebibytes() {
    let mut allocator = allocator("");
    let small: Vec<u64> = (0..4).map(|_| allocator.malloc(1000, 0, None).unwrap()).collect();
    assert!(small.windows(2).all(|pair| pair[1] - pair[0] == 1024));
    assert_eq!(allocator.figures().reserved, 2 * MB);
    allocator.malloc(MB + 1, 0, None).unwrap();
    allocator.malloc(8 * MB, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 22 * MB);
    allocator.malloc(12 * MB + 1, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 36 * MB);
    // What is free of another stream is not taken.
    allocator.malloc(1000, 1, None).unwrap();
    assert_eq!(allocator.figures().reserved, 38 * MB);
    // Nor that of a private pool.
    allocator.malloc(1000, 0, Some(7)).unwrap();
    assert_eq!(allocator.figures().reserved, 40 * MB);
}

#[test]
fn what_another_stream_uses_comes_back_when_it_is_done() {
    let mut allocator = allocator("");
    let first = allocator.malloc(MB, 0, None).unwrap();
    allocator.malloc(MB, 0, None).unwrap();
    allocator.record_stream(first, 3).unwrap();
    allocator.free(first).unwrap();
    assert_eq!(allocator.figures().allocated, MB);
    assert_ne!(allocator.malloc(MB, 0, None).unwrap(), first);
    allocator.complete(first).unwrap();
    assert_eq!(allocator.complete(first), Err(Misuse::NotAwaited(first)));
    assert_eq!(allocator.malloc(MB, 0, None).unwrap(), first);
    assert_eq!(allocator.free(first + 1), Err(Misuse::NotAllocated(first + 1)));
}

#[test]
fn what_is_free_goes_back_before_memory_runs_out() {
    let mut allocator = allocator("");
    let first = allocator.malloc(2000 * MB, 0, None).unwrap();
    let second = allocator.malloc(1900 * MB, 0, None).unwrap();
    allocator.free(first).unwrap();
    allocator.malloc(2050 * MB, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 3950 * MB);
    allocator.free(second).unwrap();
    let error = allocator.malloc(1960 * MB, 0, None).unwrap_err();
    assert_eq!((error.requested, error.free), (1960 * MB, 1950 * MB));
}

#[test]
fn what_no_device_has_is_no_panic() {
    let endless = Device {
        total_bytes: u64::MAX,
        free_bytes: u64::MAX,
    };
    for settings in [
        "",
        "expandable_segments:True",
        "roundup_power2_divisions:8",
        "max_split_size_mb:64",
    ] {
        let mut allocator = Allocator::with_text(settings, endless).unwrap();
        for bytes in [u64::MAX, u64::MAX / 2 + 1, 1 << 51, (1 << 50) + 1] {
            assert_eq!(allocator.malloc(bytes, 0, None).unwrap_err().requested, bytes);
        }
        for stream in 0..20 {
            allocator.malloc(1 << 40, stream, None).unwrap();
        }
    }
    let entry = |address, bytes| crate::Entry {
        action: "segment_alloc".to_owned(),
        address,
        bytes,
        stream: 0,
    };
    for absurd in [entry(u64::MAX, 512), entry(512, u64::MAX)] {
        let why = crate::replay(Settings::default(), endless, &[absurd]).unwrap_err();
        assert!(why.simulated.contains("no device has"), "{why}");
    }
}

#[test]
fn oversized_blocks_are_not_split_and_go_back_first() {
    let mut allocator = allocator("max_split_size_mb:100");
    let large = allocator.malloc(3000 * MB, 0, None).unwrap();
    allocator.free(large).unwrap();
    // It is neither cut for this,
    let other = allocator.malloc(90 * MB, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 3090 * MB);
    // nor given for what is more than 20 MiB smaller; it goes back instead.
    allocator.malloc(2900 * MB, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 2990 * MB);
    allocator.free(other).unwrap();
}

#[test]
fn old_blocks_are_collected_where_more_is_reserved_than_a_share_of_what_is_allowed() {
    let settings = Settings {
        allowed_bytes: Some(1000 * MB),
        collection_permille: 500,
        ..Settings::default()
    };
    let mut allocator = Allocator::new(settings, DEVICE);
    let [old, new] = [300, 400].map(|size: u64| allocator.malloc(size * MB, 0, None).unwrap());
    allocator.free(old).unwrap();
    for _ in 0..8 {
        let own = allocator.malloc(20 * MB, 5, None).unwrap();
        allocator.free(own).unwrap();
    }
    allocator.free(new).unwrap();
    // 720 MiB are reserved, 220 above the share: the oldest goes, not all.
    allocator.malloc(100 * MB, 1, None).unwrap();
    assert_eq!(allocator.figures().reserved, (400 + 20 + 100) * MB);
}

#[test]
fn segments_that_grow_take_what_is_missing_and_give_whole_pages_back() {
    let mut allocator = allocator("expandable_segments:True");
    let first = allocator.malloc(30 * MB, 0, None).unwrap();
    assert_eq!(allocator.figures().reserved, 40 * MB);
    let second = allocator.malloc(50 * MB, 0, None).unwrap();
    assert_eq!((second - first, allocator.figures().reserved), (30 * MB, 80 * MB));
    allocator.free(first).unwrap();
    allocator.empty_cache();
    assert_eq!(allocator.figures().reserved, 60 * MB);
    assert_eq!(allocator.segments().len(), 1);
    assert_eq!(allocator.malloc(30 * MB, 0, None).unwrap(), first);
    allocator.free(first).unwrap();
    allocator.free(second).unwrap();
    allocator.empty_cache();
    assert_eq!((allocator.figures().reserved, allocator.segments().len()), (0, 0));
}

/// What a program does.
#[derive(Clone, Debug)]
enum Step {
    Malloc {
        bytes: u64,
        stream: u64,
        private: Option<u64>,
    },
    Free(prop::sample::Index),
    Share(prop::sample::Index),
    Complete,
    Empty,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![0..5000_u64, 0..3 * MB, 0..300 * MB];
    let step = prop_oneof![
        6 => (bytes, 0..2_u64, prop::option::weighted(0.1, 0..2_u64))
            .prop_map(|(bytes, stream, private)| Step::Malloc { bytes, stream, private }),
        5 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => any::<prop::sample::Index>().prop_map(Step::Share),
        1 => Just(Step::Complete),
        1 => Just(Step::Empty),
    ];
    prop::collection::vec(step, 0..120)
}

fn settings() -> impl Strategy<Value = Settings> {
    let divisions = prop_oneof![Just(0), Just(1), Just(4), Just(8)];
    let allowed = prop::option::weighted(0.3, 200 * MB..3000 * MB);
    (
        any::<bool>(),
        prop::option::weighted(0.3, 21..400_u64),
        divisions,
        allowed,
    )
        .prop_map(|(expandable_segments, split, divisions, allowed_bytes)| Settings {
            expandable_segments,
            max_split_bytes: split.map(|mib| mib * MB),
            divisions: [divisions; 16],
            collection_permille: if allowed_bytes.is_some() { 600 } else { 0 },
            allowed_bytes,
        })
}

proptest! {
    #[test]
    fn blocks_are_apart_and_segments_add_up(settings in settings(), steps in steps()) {
        let mut allocator = Allocator::new(settings.clone(), DEVICE);
        let (mut live, mut awaited): (BTreeMap<u64, (u64, bool)>, Vec<u64>) = (BTreeMap::new(), Vec::new());
        for step in steps {
            match step {
                Step::Malloc { bytes, stream, private } => match allocator.malloc(bytes, stream, private) {
                    Ok(address) => {
                        prop_assert!(live.insert(address, (bytes, false)).is_none());
                    }
                    Err(error) => {
                        let pages = if settings.expandable_segments { 40 * MB } else { 0 };
                        prop_assert!(taken(rounded(&settings, bytes)) + pages > error.free);
                    }
                },
                Step::Free(place) if !live.is_empty() => {
                    let &(&address, &(_, is_shared)) = place.get(&live.iter().collect::<Vec<_>>());
                    live.remove(&address);
                    allocator.free(address).unwrap();
                    if is_shared {
                        awaited.push(address);
                    }
                }
                Step::Share(place) if !live.is_empty() => {
                    let address = *place.get(&live.keys().copied().collect::<Vec<_>>());
                    allocator.record_stream(address, 9).unwrap();
                    live.get_mut(&address).unwrap().1 = true;
                }
                Step::Complete => {
                    if let Some(address) = awaited.pop() {
                        allocator.complete(address).unwrap();
                    }
                }
                Step::Empty => {
                    allocator.empty_cache();
                    awaited.clear();
                }
                Step::Free(_) | Step::Share(_) => {}
            }
            // A request that fails has given all back that can go, and waited for it.
            awaited.retain(|&address| allocator.awaited.contains_key(&address));
            let figures = allocator.figures();
            let ends: Vec<(u64, u64)> = live.iter().map(|(&address, &(bytes, _))| (address, address + bytes)).collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            prop_assert!(figures.requested >= live.values().map(|(bytes, _)| bytes).sum());
            let pages = if settings.expandable_segments { 20 * MB } else { 0 };
            let allowed = settings.allowed_bytes.map_or(u64::MAX, |allowed| allowed + pages);
            prop_assert!(figures.reserved <= allowed.min(DEVICE.free_bytes));
            let segments = allocator.segments();
            prop_assert_eq!(figures.reserved, segments.iter().map(|segment| segment.bytes).sum::<u64>());
            let blocks = segments.iter().flat_map(|segment| &segment.blocks);
            let active: u64 = blocks.filter(|block| block.is_active).map(|block| block.bytes).sum();
            prop_assert!(active >= figures.allocated && figures.allocated >= figures.requested - awaited_bytes(&allocator));
            // Free neighbours are one block.
            let apart = segments.iter().all(|segment| segment.blocks.windows(2).all(|pair| pair[0].is_active || pair[1].is_active));
            prop_assert!(apart);
        }
        for address in live.into_keys() {
            allocator.free(address).unwrap();
        }
        allocator.empty_cache();
        prop_assert_eq!((allocator.figures().allocated, allocator.figures().requested), (0, 0));
        let private = allocator.memory.blocks.pools.keys().any(|key| key.private.is_some());
        prop_assert!(private || allocator.figures().reserved == 0);
    }
}

/// What was asked for of blocks that are waited for.
fn awaited_bytes(allocator: &Allocator) -> u64 {
    allocator
        .awaited
        .values()
        .map(|&id| allocator.memory.blocks.get(id).requested)
        .sum()
}
