//! Who has which bytes of a file: pages, each under a ticket that is never given out again.
//!
//! A page belongs to the node that made it and to the run in which it did. A run that ends early takes its pages back from no one, so they go
//! when it is seen that it has ended: the node runs again in a run of the same identity, which only one run at a time has, or the node itself
//! is gone.

use std::collections::BTreeMap;

/// Pages begin at multiples of this.
pub(crate) const GRAIN: u64 = 4096;

/// The number of a page; positive.
pub(crate) type Ticket = u64;

/// Who made a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The node, by a number of its own.
    pub(crate) node: usize,
    /// The run, by what no other run has while it goes on; 0 where that is not known.
    pub(crate) run: usize,
}

/// Where a page is on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Its bytes are being written.
    Leaving,
    /// Its bytes are in the file.
    Out,
    /// It could not be written.
    Failed(String),
}

/// A page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The extents of the tensor.
    pub(crate) dims: Vec<i64>,
    /// The type of its elements, as the runtime numbers them.
    pub(crate) element: i32,
    pub(crate) stage: Stage,
    owner: Owner,
    /// Given up while it was being written: it goes when that has ended.
    is_given_up: bool,
}

/// The pages of one file.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    last: Ticket,
    pages: BTreeMap<Ticket, Page>,
    /// Holes before the end, by where they begin; no two touch.
    holes: BTreeMap<u64, u64>,
    end: u64,
    held: u64,
    most: u64,
}

impl Slots {
    /// Room for a tensor that is about to be written.
    pub(crate) fn take(&mut self, owner: Owner, bytes: u64, dims: Vec<i64>, element: i32) -> Ticket {
        let room = rounded(bytes);
        let fitting = self.holes.iter().filter(|&(_, &hole)| hole >= room);
        let best = fitting
            .min_by_key(|&(&offset, &hole)| (hole, offset))
            .map(|(&offset, &hole)| (offset, hole));
        let offset = match best {
            Some((offset, hole)) => {
                self.holes.remove(&offset);
                if hole > room {
                    self.holes.insert(offset + room, hole - room);
                }
                offset
            }
            None => {
                let offset = self.end;
                self.end = self.end.saturating_add(room);
                offset
            }
        };
        self.held += room;
        self.most = self.most.max(self.held);
        self.last += 1;
        let page = Page {
            offset,
            bytes,
            dims,
            element,
            stage: Stage::Leaving,
            owner,
            is_given_up: false,
        };
        self.pages.insert(self.last, page);
        self.last
    }

    /// The page of a ticket; `None` where there is none any more.
    pub(crate) fn page(&self, ticket: Ticket) -> Option<&Page> {
        self.pages.get(&ticket).filter(|page| !page.is_given_up)
    }

    /// Where a page lies and how many bytes it has, as long as these are taken.
    pub(crate) fn place(&self, ticket: Ticket) -> Option<(u64, u64)> {
        self.pages.get(&ticket).map(|page| (page.offset, page.bytes))
    }

    /// Its bytes were written, or could not be.
    pub(crate) fn has_left(&mut self, ticket: Ticket, outcome: Result<(), String>) {
        let Some(page) = self.pages.get_mut(&ticket) else {
            return;
        };
        page.stage = match outcome {
            Ok(()) => Stage::Out,
            Err(why) => Stage::Failed(why),
        };
        if page.is_given_up {
            self.release(ticket);
        }
    }

    /// Nobody needs the page any more.
    pub(crate) fn release(&mut self, ticket: Ticket) {
        let Some(page) = self.pages.get_mut(&ticket) else {
            return;
        };
        if page.stage == Stage::Leaving {
            page.is_given_up = true;
            return;
        }
        let (offset, room) = (page.offset, rounded(page.bytes));
        self.pages.remove(&ticket);
        self.held -= room;
        self.free(offset, room);
    }

    fn free(&mut self, mut offset: u64, mut room: u64) {
        let before = self.holes.range(..offset).next_back();
        if let Some((&before, &hole)) = before.filter(|&(&before, &hole)| before + hole == offset) {
            self.holes.remove(&before);
            (offset, room) = (before, room + hole);
        }
        if let Some(hole) = self.holes.remove(&(offset + room)) {
            room += hole;
        }
        if offset + room == self.end {
            self.end = offset;
        } else if room > 0 {
            self.holes.insert(offset, room);
        }
    }

    /// The node is about to make a page. Where one of it is there from a run of the same identity, that run has ended, and its pages go.
    pub(crate) fn begins(&mut self, owner: Owner) {
        let has_ended = owner.run != 0 && self.pages.values().any(|page| page.owner == owner && !page.is_given_up);
        if has_ended {
            self.release_where(|of| of.run == owner.run);
        }
    }

    /// A node is gone, and the pages that it made with it.
    pub(crate) fn forget_node(&mut self, node: usize) {
        self.release_where(|of| of.node == node);
    }

    fn release_where(&mut self, is_meant: impl Fn(Owner) -> bool) {
        let of = |(&ticket, page): (&Ticket, &Page)| is_meant(page.owner).then_some(ticket);
        let gone: Vec<Ticket> = self.pages.iter().filter_map(of).collect();
        gone.into_iter().for_each(|ticket| self.release(ticket));
    }

    /// How long the file has to be.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of pages now.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Most such bytes at one time.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

/// What a page takes of the file.
fn rounded(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(GRAIN).saturating_mul(GRAIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANYONE: Owner = Owner { node: 1, run: 7 };

    fn out(slots: &mut Slots, owner: Owner, bytes: u64) -> Ticket {
        let ticket = slots.take(owner, bytes, vec![], 1);
        slots.has_left(ticket, Ok(()));
        ticket
    }

    #[test]
    fn tickets_never_come_back_and_bytes_do() {
        let mut slots = Slots::default();
        let first = out(&mut slots, ANYONE, 5_000);
        let offset = slots.page(first).map(|page| page.offset);
        slots.release(first);
        assert_eq!((slots.held(), slots.end(), slots.most()), (0, 0, 8_192));
        let second = out(&mut slots, ANYONE, 1);
        assert_ne!(first, second);
        assert_eq!(slots.page(second).map(|page| page.offset), offset);
        assert_eq!(slots.page(first), None);
        slots.release(first);
        assert_eq!(slots.held(), GRAIN);
    }

    #[test]
    fn what_is_being_written_keeps_its_bytes_until_that_has_ended() {
        let mut slots = Slots::default();
        let leaving = slots.take(ANYONE, 1, vec![], 1);
        slots.release(leaving);
        assert_eq!((slots.page(leaving), slots.held()), (None, GRAIN));
        slots.has_left(leaving, Err("no space".to_owned()));
        assert_eq!((slots.held(), slots.end()), (0, 0));
    }

    #[test]
    fn pages_of_a_run_that_ended_go_when_its_identity_comes_again() {
        let mut slots = Slots::default();
        let [first, other] = [(1, 7), (2, 7)].map(|(node, run)| out(&mut slots, Owner { node, run }, 1));
        let of_another = out(&mut slots, Owner { node: 1, run: 8 }, 1);
        slots.begins(Owner { node: 3, run: 7 });
        assert!(slots.page(first).is_some());
        slots.begins(Owner { node: 1, run: 7 });
        assert_eq!((slots.page(first), slots.page(other)), (None, None));
        assert!(slots.page(of_another).is_some());
        slots.forget_node(1);
        assert_eq!(slots.held(), 0);
    }

    #[test]
    fn runs_without_identity_end_with_their_nodes_only() {
        let mut slots = Slots::default();
        let owner = Owner { node: 1, run: 0 };
        let page = out(&mut slots, owner, 1);
        slots.begins(owner);
        assert!(slots.page(page).is_some());
    }

    proptest! {
        #[test]
        fn no_two_pages_share_bytes(steps in prop::collection::vec((0u8..3, 0u64..40_000, 0usize..8), 0..80)) {
            let mut slots = Slots::default();
            let mut live: Vec<Ticket> = Vec::new();
            for (what, bytes, place) in steps {
                match what {
                    0 => live.push(out(&mut slots, ANYONE, bytes)),
                    1 => live.push(slots.take(ANYONE, bytes, vec![], 1)),
                    _ if live.is_empty() => {}
                    _ => {
                        let ticket = live.remove(place % live.len());
                        slots.has_left(ticket, Ok(()));
                        slots.release(ticket);
                    }
                }
                let mut taken: Vec<(u64, u64)> = live
                    .iter()
                    .filter_map(|&ticket| slots.page(ticket))
                    .map(|page| (page.offset, page.offset + page.bytes.max(1)))
                    .collect();
                taken.sort_unstable();
                prop_assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                prop_assert!(taken.iter().all(|&(_, end)| end <= slots.end()));
            }
            for ticket in live {
                slots.has_left(ticket, Ok(()));
                slots.release(ticket);
            }
            prop_assert_eq!((slots.held(), slots.end()), (0, 0));
        }
    }
}
