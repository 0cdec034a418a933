//! An arena under runs whose allocations are known: what it holds, and what of that is ever written.

use super::bfc::{Bfc, Chunk, GRAIN, table};
use super::settings::{ArenaSettings, Growth};

/// A buffer of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLife {
    /// Its size.
    pub bytes: u64,
    /// When it is allocated; no two allocations and frees of a run are at one time.
    pub first: u64,
    /// When it is freed; `None` of an output, which is freed after the run.
    pub last: Option<u64>,
}

/// What an arena takes after a run and those before it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Replayed {
    /// Bytes of its regions, and of their tables.
    pub held: u64,
    /// How much of that was written, in whole pages.
    pub touched: u64,
    /// How many regions there are.
    pub regions: u64,
}

/// Runs the buffers of each run through an arena from which a session kept so many bytes when it was loaded. What it takes then, before the
/// first run, comes first.
#[must_use]
pub fn replay(kept: u64, runs: &[Vec<BufferLife>], settings: &ArenaSettings) -> Vec<Replayed> {
    let mut arena = Bfc::new(settings);
    arena.alloc(kept);
    let now = |arena: &Bfc| Replayed {
        held: arena.held(),
        touched: arena.touched(),
        regions: arena.regions(),
    };
    let mut taken = vec![now(&arena)];
    let once = |run: &Vec<BufferLife>| {
        let mut chunks: Vec<Option<Chunk>> = vec![None; run.len()];
        for (_, buffer, is_first) in events(run) {
            if is_first {
                chunks[buffer] = arena.alloc(run[buffer].bytes);
            } else if let Some(chunk) = chunks[buffer].take() {
                arena.free(chunk);
            }
        }
        taken.push(now(&arena));
        chunks.into_iter().flatten().for_each(|chunk| arena.free(chunk));
    };
    runs.iter().for_each(once);
    taken
}

/// Size of the first region of an arena that grows no more in these runs and writes as few bytes as any such size tried; `None` where
/// no size at most twice the load does. `kept` is as for [`replay`].
#[must_use]
pub fn lowest_first_region(kept: u64, runs: &[Vec<BufferLife>], settings: &ArenaSettings) -> Option<u64> {
    /// So many sizes are tried between the load and twice it.
    const TRIES: u64 = 96;
    let load = runs.iter().map(|run| most_bytes(run, GRAIN)).max()? + kept.next_multiple_of(GRAIN);
    let tried = (0..=TRIES).filter_map(|place| {
        let bytes = (load + load / TRIES * place).next_multiple_of(GRAIN);
        let settings = ArenaSettings {
            growth: Growth::NextPowerOfTwo,
            initial_bytes: bytes,
            ..*settings
        };
        let last = *replay(kept, runs, &settings).last()?;
        (last.held == bytes + table(bytes)).then_some((last.touched, bytes))
    });
    tried.min().map(|(_, bytes)| bytes)
}

/// Most bytes at one time, each buffer rounded up to a multiple of `grain`.
#[must_use]
pub fn most_bytes(run: &[BufferLife], grain: u64) -> u64 {
    let (mut live, mut most) = (0, 0);
    for (_, buffer, is_first) in events(run) {
        let bytes = run[buffer].bytes.next_multiple_of(grain);
        live = if is_first { live + bytes } else { live - bytes };
        most = most.max(live);
    }
    most
}

/// Time, buffer, and whether it is allocated then, or else freed; in order.
fn events(run: &[BufferLife]) -> Vec<(u64, usize, bool)> {
    let firsts = run
        .iter()
        .enumerate()
        .map(|(place, buffer)| (buffer.first, place, true));
    let lasts = run
        .iter()
        .enumerate()
        .filter_map(|(place, buffer)| Some((buffer.last?, place, false)));
    let mut events: Vec<_> = firsts.chain(lasts).collect();
    events.sort_unstable();
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn life(mib: u64, first: u64, last: Option<u64>) -> BufferLife {
        BufferLife {
            bytes: mib * MIB,
            first,
            last,
        }
    }

    #[test]
    fn a_first_region_of_the_load_is_all_that_a_simple_run_takes() {
        // Each is freed when the next one is there: load 5.
        let run = vec![life(3, 0, Some(2)), life(2, 1, Some(4)), life(3, 3, None)];
        let runs = vec![run.clone(), run];
        let split = ArenaSettings {
            largest_waste: GRAIN,
            ..ArenaSettings::default()
        };
        let first = lowest_first_region(0, &runs, &split).unwrap();
        assert_eq!(first, 5 * MIB);
        let beside = lowest_first_region(1000, &runs, &split).unwrap();
        assert_eq!(beside, 5 * MIB + 1024);
        let settings = ArenaSettings {
            initial_bytes: first,
            ..split
        };
        let whole = Replayed {
            held: first + table(first),
            touched: first + table(first),
            regions: 1,
        };
        assert_eq!(replay(0, &runs, &settings), [Replayed::default(), whole, whole]);
        // The runtime's own settings make regions of 1, 2, 4, 8 MiB of it.
        let stock = replay(0, &runs, &ArenaSettings::default());
        assert!(
            stock[1].held > whole.held && stock[1].touched <= stock[1].held,
            "{stock:?}"
        );
    }

    #[test]
    fn what_is_held_and_never_written_is_not_touched() {
        let runs = [vec![life(1, 0, Some(1))]];
        let settings = ArenaSettings {
            initial_bytes: 64 * MIB,
            ..ArenaSettings::default()
        };
        let [_, replayed] = replay(0, &runs, &settings)[..] else {
            panic!("one run")
        };
        assert_eq!(replayed.held, 64 * MIB + table(64 * MIB));
        assert_eq!(replayed.touched, MIB + table(64 * MIB));
    }

    #[test]
    fn no_buffers_need_no_region() {
        assert_eq!(lowest_first_region(0, &[], &ArenaSettings::default()), None);
    }
}
