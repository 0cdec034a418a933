//! Offsets in a block for the buffers of a run, given their sizes.
//!
//! Buffers get the lowest free offset, one after the other. For every placement there is an order in which this yields a block that is no
//! larger: that of its offsets. So a plan holds orders in place of offsets, and one plan serves all sizes: of its orders, and that by
//! size, the best for the sizes at hand is taken.

use std::cmp::Reverse;

use crate::plan::ArenaPlan;

/// Share of what is live at one time, as a divisor, by which a block may be larger without another order being tried.
const CLOSE: u64 = 128;

/// What does not depend on the sizes.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// When each buffer is live.
    lives: Vec<(u64, u64)>,
    /// Those that lie in the block, in each of the orders.
    orders: Vec<Vec<usize>>,
    /// How many of these come before all others.
    first: usize,
    /// Where buffers of the block begin and end to be live, by time.
    changes: Vec<(usize, bool)>,
    /// The same of buffers outside.
    changes_outside: Vec<(usize, bool)>,
    /// Every offset is a multiple of this.
    alignment: u64,
}

/// Where buffers lie.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Placed {
    /// The offset of each buffer; none for those outside and those without bytes.
    pub(crate) offsets: Vec<Option<u64>>,
    /// The end of the highest one.
    pub(crate) block_bytes: u64,
}

/// A buffer that has its offset.
struct Taken {
    offset: u64,
    end: u64,
    life: (u64, u64),
}

impl Layout {
    pub(crate) fn new(plan: &ArenaPlan, alignment: u64) -> Self {
        let buffers = &plan.buffers;
        let in_block = || {
            buffers
                .iter()
                .enumerate()
                .filter_map(|(place, buffer)| Some((place, buffer.ranks.as_ref()?)))
        };
        let order = |order: usize| {
            let mut places: Vec<(bool, u32, usize)> = in_block()
                .map(|(place, ranks)| (place >= plan.first, ranks.get(order).copied().unwrap_or(0), place))
                .collect();
            places
                .iter_mut()
                .filter(|(is_later, ..)| !is_later)
                .for_each(|(_, rank, _)| *rank = 0);
            places.sort_unstable();
            places.into_iter().map(|(.., place)| place).collect()
        };
        let changes = |is_in_block: bool| {
            let places = (0..buffers.len()).filter(|&place| buffers[place].ranks.is_some() == is_in_block);
            let mut changes: Vec<(u64, bool, usize)> = places
                .flat_map(|place| [(buffers[place].first, true, place), (buffers[place].last, false, place)])
                .collect();
            // What ends makes room for what begins.
            changes.sort_unstable();
            changes.into_iter().map(|(_, begins, place)| (place, begins)).collect()
        };
        Self {
            lives: buffers.iter().map(|buffer| (buffer.first, buffer.last)).collect(),
            orders: (0..plan.orders).map(order).collect(),
            first: in_block().filter(|&(place, _)| place < plan.first).count(),
            changes: changes(true),
            changes_outside: changes(false),
            alignment,
        }
    }

    /// When a buffer is live.
    #[cfg(not(arena_library))]
    pub(crate) fn life(&self, place: usize) -> Option<(u64, u64)> {
        self.lives.get(place).copied()
    }

    /// Most bytes that are live at one time in the block, as whole multiples of the alignment.
    pub(crate) fn load(&self, sizes: &[u64]) -> u64 {
        most_at_once(&self.changes, |place| self.aligned(sizes, place))
    }

    /// Most bytes that are live at one time outside of the block.
    pub(crate) fn load_outside(&self, sizes: &[u64]) -> u64 {
        most_at_once(&self.changes_outside, |place| sizes.get(place).copied().unwrap_or(0))
    }

    /// The lowest block that is found for buffers of these sizes, of which some lie where they lie.
    pub(crate) fn place(&self, sizes: &[u64], pinned: &[(usize, u64)]) -> Placed {
        let load = self.load(sizes);
        let mut best = None;
        let most = |best: &Option<Placed>| best.as_ref().map_or(u64::MAX, |best| best.block_bytes);
        for order in &self.orders {
            best = self.in_order(sizes, pinned, order, most(&best)).or(best);
            if most(&best) <= load + load / CLOSE {
                return best.unwrap_or_default();
            }
        }
        if let Some(order) = self.orders.first() {
            let mut by_size = order.clone();
            if let Some(later) = by_size.get_mut(self.first..) {
                later.sort_by_key(|&place| (Reverse(self.aligned(sizes, place)), place));
            }
            best = self.in_order(sizes, pinned, &by_size, most(&best)).or(best);
        }
        best.unwrap_or_else(|| Placed {
            offsets: vec![None; self.lives.len()],
            block_bytes: 0,
        })
    }

    /// The block in which buffers get the lowest free offset in this order; `None` where it is no lower than another one.
    fn in_order(&self, sizes: &[u64], pinned: &[(usize, u64)], order: &[usize], than: u64) -> Option<Placed> {
        // By offset.
        let mut taken: Vec<Taken> = Vec::with_capacity(order.len());
        let mut placed = Placed {
            offsets: vec![None; self.lives.len()],
            block_bytes: 0,
        };
        let mut put = |taken: &mut Vec<Taken>, place: usize, offset: u64, bytes: u64| {
            let at = taken.partition_point(|other| other.offset <= offset);
            let end = offset.saturating_add(bytes);
            let life = self.lives[place];
            taken.insert(at, Taken { offset, end, life });
            placed.offsets[place] = Some(offset);
            placed.block_bytes = placed.block_bytes.max(end);
            placed.block_bytes < than
        };
        for &(place, offset) in pinned {
            if !put(&mut taken, place, offset, self.aligned(sizes, place)) {
                return None;
            }
        }
        for &place in order {
            let bytes = self.aligned(sizes, place);
            if bytes == 0 || pinned.iter().any(|&(other, _)| other == place) {
                continue;
            }
            let (begin, end) = self.lives[place];
            let mut offset = 0u64;
            for other in &taken {
                if other.offset >= offset.saturating_add(bytes) {
                    break;
                }
                if other.life.0 < end && begin < other.life.1 {
                    offset = offset.max(other.end);
                }
            }
            if !put(&mut taken, place, offset, bytes) {
                return None;
            }
        }
        Some(placed)
    }

    fn aligned(&self, sizes: &[u64], place: usize) -> u64 {
        sizes
            .get(place)
            .map_or(0, |bytes| bytes.next_multiple_of(self.alignment))
    }
}

fn most_at_once(changes: &[(usize, bool)], size: impl Fn(usize) -> u64) -> u64 {
    let (mut now, mut most) = (0u64, 0);
    for &(place, begins) in changes {
        let bytes = size(place);
        now = if begins {
            now.saturating_add(bytes)
        } else {
            now.saturating_sub(bytes)
        };
        most = most.max(now);
    }
    most
}
