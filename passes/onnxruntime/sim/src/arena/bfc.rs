//! Best fit with coalescing: chunks of regions, split when handed out, merged with free neighbours when given back.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::{ArenaSettings, Growth, RegionOrder};

/// Sizes are multiples of this.
pub(super) const GRAIN: u64 = 256;
/// What the system hands out at once.
const PAGE: u64 = 4096;

/// A handle to memory that was handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk(usize);

#[derive(Clone, Debug)]
struct Node {
    address: u64,
    size: u64,
    free: bool,
    previous: Option<usize>,
    next: Option<usize>,
}

/// The arena.
#[derive(Debug)]
pub(super) struct Bfc {
    settings: ArenaSettings,
    /// Size of the next region.
    next_region: u64,
    held: u64,
    tables: u64,
    regions: u64,
    chunks: Vec<Node>,
    /// Handles of merged chunks, to be used again.
    spare: Vec<usize>,
    /// Free chunks by size, then address: bins of doubling sizes come to the same.
    free: BTreeSet<(u64, u64, usize)>,
    /// Pages in which something was handed out, as ranges that do not meet: starts and ends.
    touched: BTreeMap<u64, u64>,
}

/// Bytes of the table of a region: an entry for each grain.
pub(super) fn table(region: u64) -> u64 {
    region / GRAIN * 8
}

impl Bfc {
    pub(super) fn new(settings: &ArenaSettings) -> Self {
        Self {
            settings: *settings,
            next_region: settings.initial_bytes.max(GRAIN).next_multiple_of(GRAIN),
            held: 0,
            tables: 0,
            regions: 0,
            chunks: Vec::new(),
            spare: Vec::new(),
            free: BTreeSet::new(),
            touched: BTreeMap::new(),
        }
    }

    /// Bytes taken from the system: regions, and a table with an entry of 8 bytes per grain of each.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Bytes of the pages in which something was ever handed out, and of the tables.
    pub(super) fn touched(&self) -> u64 {
        let pages = self.touched.iter().map(|(start, end)| end - start);
        pages.sum::<u64>() + self.tables
    }

    /// How many regions there are.
    pub(super) fn regions(&self) -> u64 {
        self.regions
    }

    /// Hands out the smallest free chunk that fits, after growing if none does; `None` for 0 bytes and for sizes no machine
    /// has.
    pub(super) fn alloc(&mut self, bytes: u64) -> Option<Chunk> {
        if bytes == 0 {
            return None;
        }
        let size = bytes.checked_next_multiple_of(GRAIN)?;
        if self.fit(size).is_none() {
            self.extend(size)?;
        }
        let id = self.fit(size)?;
        self.take(id);
        let found = self.chunks[id].size;
        if found / 2 >= size || found - size >= self.settings.largest_waste {
            self.split(id, size);
        }
        self.chunks[id].free = false;
        self.touch(self.chunks[id].address, bytes);
        Some(Chunk(id))
    }

    /// Notes that bytes are written.
    fn touch(&mut self, address: u64, bytes: u64) {
        let (mut start, mut end) = (address / PAGE * PAGE, (address + bytes).next_multiple_of(PAGE));
        while let Some((&from, &to)) = self.touched.range(..=end).next_back() {
            if to < start {
                break;
            }
            if from <= start && to >= end {
                return;
            }
            (start, end) = (start.min(from), end.max(to));
            self.touched.remove(&from);
        }
        self.touched.insert(start, end);
    }

    /// Takes a chunk back and merges it with its free neighbours.
    pub(super) fn free(&mut self, Chunk(id): Chunk) {
        self.chunks[id].free = true;
        let mut id = id;
        if let Some(next) = self.chunks[id].next.filter(|&next| self.chunks[next].free) {
            self.take(next);
            self.merge(id, next);
        }
        if let Some(previous) = self.chunks[id].previous.filter(|&previous| self.chunks[previous].free) {
            self.take(previous);
            self.merge(previous, id);
            id = previous;
        }
        self.give(id);
    }

    fn fit(&self, size: u64) -> Option<usize> {
        self.free.range((size, 0, 0)..).next().map(|&(_, _, id)| id)
    }

    fn extend(&mut self, size: u64) -> Option<()> {
        let bytes = match self.settings.growth {
            Growth::SameAsRequested => size,
            Growth::NextPowerOfTwo => {
                let mut grown = false;
                while size > self.next_region {
                    self.next_region = self.next_region.checked_mul(2)?;
                    grown = true;
                }
                let bytes = self.next_region;
                if !grown {
                    self.next_region = self.next_region.saturating_mul(2);
                }
                bytes
            }
        };
        self.held = self.held.checked_add(bytes)?.checked_add(table(bytes))?;
        self.tables += table(bytes);
        self.regions += 1;
        let node = Node {
            address: self.address(bytes)?,
            size: bytes,
            free: true,
            previous: None,
            next: None,
        };
        let id = self.add(node);
        self.give(id);
        Some(())
    }

    /// Address of the region of so many bytes that was just added to what is held: on a page, and far enough from the others that no two
    /// overlap.
    fn address(&self, bytes: u64) -> Option<u64> {
        const MIDDLE: u64 = 1 << 62;
        let below = match self.settings.regions {
            RegionOrder::Descending => true,
            RegionOrder::Ascending => false,
            RegionOrder::Alternating => self.regions.is_multiple_of(2),
        };
        if below {
            Some(MIDDLE.checked_sub(self.held)? / PAGE * PAGE)
        } else {
            let before = self.held.checked_sub(bytes)?;
            MIDDLE.checked_add(before)?.checked_next_multiple_of(PAGE)
        }
    }

    /// Cuts a chunk that is in no bin to `size`; the rest becomes free.
    fn split(&mut self, id: usize, size: u64) {
        let whole = self.chunks[id].clone();
        let rest = self.add(Node {
            address: whole.address + size,
            size: whole.size - size,
            free: true,
            previous: Some(id),
            next: whole.next,
        });
        if let Some(next) = whole.next {
            self.chunks[next].previous = Some(rest);
        }
        self.chunks[id].size = size;
        self.chunks[id].next = Some(rest);
        self.give(rest);
    }

    /// Joins two neighbours that are in no bin.
    fn merge(&mut self, first: usize, second: usize) {
        let Node { size, next, .. } = self.chunks[second];
        self.chunks[first].size += size;
        self.chunks[first].next = next;
        if let Some(next) = next {
            self.chunks[next].previous = Some(first);
        }
        self.spare.push(second);
    }

    fn add(&mut self, node: Node) -> usize {
        if let Some(id) = self.spare.pop() {
            self.chunks[id] = node;
            return id;
        }
        self.chunks.push(node);
        self.chunks.len() - 1
    }

    fn give(&mut self, id: usize) {
        let Node { size, address, .. } = self.chunks[id];
        self.free.insert((size, address, id));
    }

    fn take(&mut self, id: usize) {
        let Node { size, address, .. } = self.chunks[id];
        self.free.remove(&(size, address, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Bfc {
        Bfc::new(&ArenaSettings::default())
    }

    const MIB: u64 = 1 << 20;

    fn with_table(bytes: u64) -> u64 {
        bytes + bytes / 32
    }

    #[test]
    fn regions_double_and_large_requests_skip_sizes() {
        let mut arena = arena();
        arena.alloc(1).unwrap();
        assert_eq!(arena.held(), with_table(MIB));
        // The region after the first is of 2 MiB, a request of 5 MiB makes one of 8 MiB.
        arena.alloc(MIB).unwrap();
        assert_eq!(arena.held(), with_table(3 * MIB));
        arena.alloc(5 * MIB).unwrap();
        assert_eq!(arena.held(), with_table(11 * MIB));
        // It was grown to fit, so the next one is as large again.
        arena.alloc(8 * MIB).unwrap();
        assert_eq!(arena.held(), with_table(19 * MIB));
        assert!(arena.alloc(0).is_none());
        assert!(arena.alloc(u64::MAX).is_none());
    }

    #[test]
    fn neighbours_merge_so_that_the_whole_region_can_be_handed_out_again() {
        let mut arena = arena();
        let chunks: Vec<Chunk> = (0..4).map(|_| arena.alloc(MIB / 4).unwrap()).collect();
        assert_eq!(arena.held(), with_table(MIB));
        for index in [1, 3, 0, 2] {
            arena.free(chunks[index]);
        }
        arena.alloc(MIB).unwrap();
        assert_eq!(arena.held(), with_table(MIB));
    }

    #[test]
    fn a_chunk_is_split_only_if_half_of_it_is_left() {
        let mut arena = arena();
        let first = arena.alloc(600 << 10).unwrap();
        assert_eq!(arena.chunks[first.0].size, MIB);
        arena.free(first);
        let first = arena.alloc(512 << 10).unwrap();
        assert_eq!(arena.chunks[first.0].size, 512 << 10);
    }

    #[test]
    fn of_equal_chunks_the_lowest_is_handed_out_so_that_the_place_of_regions_decides_on_growth() {
        let held = |regions: RegionOrder| {
            let mut arena = Bfc::new(&ArenaSettings {
                regions,
                ..ArenaSettings::default()
            });
            let [first, second, third] = [(); 3].map(|()| arena.alloc(MIB).unwrap());
            arena.free(first);
            arena.free(second);
            arena.alloc(MIB).unwrap();
            arena.free(third);
            arena.alloc(2 * MIB).unwrap();
            arena.held()
        };
        // The second region is whole again only if the first one served the fourth request.
        assert_eq!(held(RegionOrder::Ascending), with_table(3 * MIB));
        assert_eq!(held(RegionOrder::Descending), with_table(7 * MIB));
    }

    #[test]
    fn pages_count_once_however_often_they_are_handed_out() {
        let mut arena = arena();
        let pages = |arena: &Bfc| arena.touched() - table(MIB);
        let first = arena.alloc(5000).unwrap();
        assert_eq!(pages(&arena), 8192);
        arena.free(first);
        let again = arena.alloc(9000).unwrap();
        assert_eq!(pages(&arena), 12_288);
        arena.alloc(100).unwrap();
        arena.free(again);
        assert_eq!(pages(&arena), 12_288);
        arena.alloc(MIB / 2).unwrap();
        assert_eq!(pages(&arena), 12_288 + MIB / 2);
    }

    #[test]
    fn growing_as_requested_takes_no_more() {
        let mut arena = Bfc::new(&ArenaSettings {
            growth: Growth::SameAsRequested,
            ..ArenaSettings::default()
        });
        arena.alloc(1000).unwrap();
        arena.alloc(5000).unwrap();
        assert_eq!(arena.held(), with_table(1024 + 5120));
    }
}
